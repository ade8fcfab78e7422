"""Roots of corpora, and the places in them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ragpilot.config import CorpusSettings
from ragpilot.errors import RootError
from ragpilot.ingest.roots import Root, commit_of, locate, nested_roots, resolve_roots, scopes
from tests.trees import git, needs_git, write


def test_roots_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, {"file": "1"}) / "file"
    home = tmp_path / "users" / "me"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for root, words in {
        tmp_path / "none": "does not exist",
        file: "is no folder",
        home: "home folder",
        home.parent: "home folder",
        Path("/"): "home folder",
    }.items():
        with pytest.raises(RootError, match=words):
            resolve_roots(CorpusSettings(roots=[str(root)]))
    assert resolve_roots(CorpusSettings(roots=[str(home)]), allow_broad=True)[0].folder == home
    (home / "project").mkdir()
    assert resolve_roots(CorpusSettings(roots=[str(home / "project")]))[0].prefix == ""


def test_several_roots_have_names_of_their_own(tmp_path: Path) -> None:
    folders = [tmp_path / part for part in ("x/app", "y/app", "lib", "z/y/app", "x/app/inner")]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    roots = resolve_roots(CorpusSettings(roots=[*map(str, folders), str(tmp_path / "x" / ".." / "lib")]))
    assert [root.prefix for root in roots] == ["x-app/", "y-app/", "lib/", "y-app-2/", "inner/"]
    assert nested_roots(roots[0], roots) == {os.fsencode(folders[4])}


def test_scopes_lie_in_a_root(tmp_path: Path) -> None:
    (tmp_path / "r" / "sub" / "inner").mkdir(parents=True)
    outer, inner = Root(tmp_path / "r", "r/"), Root(tmp_path / "r" / "sub" / "inner", "inner/")
    roots = (outer, inner)
    assert [scope.shown for scope in scopes(roots, None)] == ["r", "inner"]
    assert [scope.shown for scope in scopes(roots, tmp_path / "r" / "sub")] == ["r/sub", "inner"]
    assert [scope.shown for scope in scopes(roots, tmp_path / "r" / "sub" / "inner" / "x.py")] == ["inner/x.py"]
    with pytest.raises(RootError, match="outside"):
        scopes(roots, tmp_path / "elsewhere")
    with pytest.raises(RootError, match="outside"):
        scopes(roots, tmp_path / "r" / ".." / "elsewhere")


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_path_of_the_index_never_leads_out(tmp_path: Path) -> None:
    write(tmp_path, {"out/x": "1", "r/in": "1"})
    (tmp_path / "r" / "link").symlink_to(tmp_path / "out")
    (tmp_path / "r" / "file").symlink_to(tmp_path / "out" / "x")
    roots = (Root(tmp_path / "r"),)
    assert locate(roots, "in") == tmp_path / "r" / "in"
    for path in ("link/x", "file", "../out/x", "", "none", "/etc/passwd", "in\\x00"):
        assert locate(roots, path) is None


@needs_git
def test_the_commit_of_a_root(tmp_path: Path) -> None:
    root = write(tmp_path / "t", {"sub/a": "1"})
    assert commit_of(root) is None
    git(root, "init", "-q")
    assert commit_of(root) is None
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    head = git(root, "rev-parse", "HEAD").strip()
    assert commit_of(root / "sub") == head
    git(root, "pack-refs", "--all")
    assert commit_of(root) == head
    git(root, "checkout", "-q", "--detach")
    assert commit_of(root) == head
