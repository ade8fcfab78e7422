"""Which files of a tree are walked: rules of git and of our own, links, what lies outside."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

from ragpilot.ingest import gitfiles
from ragpilot.ingest.reasons import Reason
from ragpilot.ingest.roots import Root
from ragpilot.ingest.walk import walk
from ragpilot.types import LeftOut
from tests.trees import both_ways, git, needs_git, of_git, paths, reasons, write

TREES: dict[str, dict[str, str]] = {
    "anchored": {
        ".gitignore": "/Library/\nbuild/\n*.log\n/only-top\n",
        "Library/a.py": "1",
        "src/Library/b.py": "1",
        "src/build/c.py": "1",
        "build": "a file of that name is no folder",
        "x.log": "1",
        "only-top": "1",
        "deep/only-top": "1",
    },
    "negated": {
        ".gitignore": "**/vendor/\nd/\n!d/sub/*\n",
        "a/.gitignore": "!vendor\n",
        "a/vendor/f.txt": "1",
        "b/vendor/g.txt": "1",
        "d/sub/f.txt": "1",
    },
    "allow list": {
        ".gitignore": "*\n!*/\n!*.c\n!.gitignore\n",
        "src/a.c": "1",
        "src/a.h": "1",
        "b.c": "1",
        "b.h": "1",
    },
    "escapes": {
        ".gitignore": "\\#hash.txt\n\\!bang.txt\n# comment\ntrailing\\ \nspaces   \n\n!\n/\n",
        "#hash.txt": "1",
        "!bang.txt": "1",
        "trailing ": "1",
        "spaces": "1",
        "# comment": "1",
    },
    "stars": {
        ".gitignore": "a/**/z.txt\n**/deep/*.tmp\nfoo/**\n*.[oa]\n?.md\n[!x]y\nn[a-c]\n[[:digit:]]*\nbroken[\n",
        "a/z.txt": "1",
        "a/b/c/z.txt": "1",
        "deep/1.tmp": "1",
        "q/deep/2.tmp": "1",
        "q/deep/r/3.tmp": "1",
        "foo/x/y": "1",
        "lib.o": "1",
        "lib.a": "1",
        "lib.so": "1",
        "x.md": "1",
        "xx.md": "1",
        "xy": "1",
        "zy": "1",
        "nb": "1",
        "nd": "1",
        "9lives": "1",
        "broken[": "1",
    },
    "other ignore files": {
        ".prettierignore": "*\n!src/\n",
        ".dockerignore": "*\n",
        ".gitignore": "dist/\r\n",
        "src/app.py": "1",
        "dist/bundle.py": "1",
    },
    "marks": {".gitignore": "\ufeffhidden\n", "hidden": "1", "shown": "1"},
    "odd names": {"a\nb.py": "1", "tab\t.py": "1", "back\\slash.py": "1", "\u202eevil.py": "1", "é.py": "1", "*": "1"},
}


@needs_git
@pytest.mark.parametrize("name", TREES)
def test_agrees_with_git(name: str, tmp_path: Path) -> None:
    root = write(tmp_path / "tree", TREES[name])
    git(root, "init", "-q")
    assert paths(walk(Root(root))) == of_git(root)
    assert paths(walk(Root(root), use_git=False)) == of_git(root)


@needs_git
@pytest.mark.parametrize("name", TREES)
def test_the_same_rules_hold_outside_a_repository(name: str, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", TREES[name])
    inside = write(tmp_path / "inside", TREES[name])
    git(inside, "init", "-q")
    assert paths(walk(Root(outside))) == of_git(inside)


@needs_git
@both_ways
def test_tracked_files_count_though_ignored(use_git: bool, tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {".gitignore": "*.log\nout/\n", "kept.log": "1", "other.log": "1", "out/t.py": "1"})
    git(root, "init", "-q")
    git(root, "add", "-f", "kept.log", "out/t.py", ".gitignore")
    (root / "deleted.py").touch()
    git(root, "add", "deleted.py")
    (root / "deleted.py").unlink()
    assert paths(walk(Root(root), use_git=use_git)) == [".gitignore", "kept.log", "out/t.py"]


@needs_git
@both_ways
def test_a_submodule_in_an_ignored_folder_is_walked(use_git: bool, tmp_path: Path) -> None:
    library = write(tmp_path / "library", {"lib.py": "1"})
    git(library, "init", "-q")
    git(library, "add", "-A")
    git(library, "commit", "-qm", "one")
    root = write(tmp_path / "root", {"a.py": "1"})
    git(root, "init", "-q")
    git(root, "submodule", "add", "-q", str(library), "vendor/library")
    write(root, {".gitignore": "vendor/\n", "vendor/other.py": "1"})
    assert paths(walk(Root(root), use_git=use_git)) == [".gitignore", ".gitmodules", "a.py", "vendor/library/lib.py"]


@needs_git
@both_ways
def test_a_repository_made_around_files_of_the_outer_one_is_none_of_its_own(use_git: bool, tmp_path: Path) -> None:
    root = write(tmp_path / "root", {".gitignore": "*.tmp\n", "sub/a.py": "1", "sub/b.tmp": "1", "sub/c.py": "1"})
    git(root, "init", "-q")
    git(root, "add", "sub/a.py")
    git(root / "sub", "init", "-q")
    assert paths(walk(Root(root), use_git=use_git)) == of_git(root) == [".gitignore", "sub/a.py", "sub/c.py"]


@needs_git
@both_ways
def test_a_linked_worktree_has_its_rules_and_is_not_listed_twice(use_git: bool, tmp_path: Path) -> None:
    main = write(tmp_path / "work" / "main", {"m.py": "1", ".gitignore": ".agents/\n"})
    git(main, "init", "-q")
    git(main, "add", "-A")
    git(main, "commit", "-qm", "one")
    git(main, "worktree", "add", "-q", ".agents/one", "-b", "one")
    git(main, "worktree", "add", "-q", "inner", "-b", "two")
    git(main, "worktree", "add", "-q", "../beside", "-b", "three")
    write(main, {".git/info/exclude": "scratch/\n"})
    write(tmp_path / "work" / "beside", {"scratch/s.py": "1"})

    listing = walk(Root(main), use_git=use_git)
    assert paths(listing) == [".gitignore", "m.py"]
    assert reasons(listing)["inner/"] == Reason.LINKED_WORKTREE
    assert paths(walk(Root(tmp_path / "work" / "beside"), use_git=use_git)) == [".gitignore", "m.py"]
    assert paths(walk(Root(main / ".agents" / "one"), use_git=use_git)) == [".gitignore", "m.py"]
    above = walk(Root(tmp_path / "work"), use_git=use_git)
    assert paths(above) == ["main/.gitignore", "main/m.py"]
    assert reasons(above)["beside/"] == Reason.LINKED_WORKTREE


@needs_git
@both_ways
def test_worktrees_of_a_bare_repository_are_all_there_is(use_git: bool, tmp_path: Path) -> None:
    seed = write(tmp_path / "seed", {"m.py": "1"})
    git(seed, "init", "-q")
    git(seed, "add", "-A")
    git(seed, "commit", "-qm", "one")
    project = tmp_path / "project"
    git(tmp_path, "clone", "-q", "--bare", str(seed), str(project / ".bare"))
    git(project / ".bare", "worktree", "add", "-q", "../feature", "-b", "feature")
    found = paths(walk(Root(project), use_git=use_git))
    assert [path for path in found if not path.startswith(".bare/")] == ["feature/m.py"]


@needs_git
@both_ways
def test_repositories_inside_are_walked_by_their_own_rules(use_git: bool, tmp_path: Path) -> None:
    library = write(tmp_path / "library", {"lib.py": "1"})
    git(library, "init", "-q")
    git(library, "add", "-A")
    git(library, "commit", "-qm", "one")
    root = write(tmp_path / "root", {".gitignore": "hidden/\n*.tmp\n", "a.py": "1"})
    git(root, "init", "-q")
    git(root, "submodule", "add", "-q", str(library), "libs/library")
    for name in ("clone", "hidden"):
        write(root / name, {"c.py": "1", "c.tmp": "1", "ign": "1", ".gitignore": "ign\n"})
        git(root / name, "init", "-q")
    write(root, {"broken/.git": "gitdir: ../.git/modules/nowhere\n", "broken/s.py": "1"})

    found = paths(walk(Root(root), use_git=use_git))
    own = [path for path in of_git(root) if not (root / path).is_dir()]
    assert sorted({*own, "clone/.gitignore", "clone/c.py", "clone/c.tmp", "libs/library/lib.py"}) == found


@needs_git
@both_ways
def test_a_part_of_a_repository_keeps_the_rules_above_it(use_git: bool, tmp_path: Path) -> None:
    top = write(
        tmp_path / "top", {".gitignore": "gen/\n/sub/skip.py\n", "sub/gen/a": "1", "sub/skip.py": "1", "sub/b": "1"}
    )
    git(top, "init", "-q")
    write(top, {".ragpilotignore": "*.secret\n/sub/quiet/\n", "sub/x.secret": "1", "sub/quiet/q": "1"})
    assert paths(walk(Root(top / "sub"), use_git=use_git)) == ["b"]


@needs_git
@both_ways
def test_a_root_that_the_repository_around_it_ignores_is_walked_and_said(use_git: bool, tmp_path: Path) -> None:
    top = write(tmp_path / "top", {".gitignore": "notes/\n", "notes/a.md": "1", "notes/.gitignore": "*.tmp\n"})
    write(top, {"notes/b.tmp": "1"})
    git(top, "init", "-q")
    listing = walk(Root(top / "notes"), use_git=use_git)
    assert paths(listing) == [".gitignore", "a.md"]
    assert "is ignored by the repository around it" in listing.notes[0]


def test_own_ignore_files_hold_at_every_level(tmp_path: Path) -> None:
    root = write(
        tmp_path / "tree",
        {
            ".ragpilotignore": "docs/**\n!docs/keep.md\n/big/\n*.gen.py\n",
            "docs/keep.md": "1",
            "docs/drop.md": "1",
            "big/a/b.py": "1",
            "src/.ragpilotignore": "!ok.gen.py\n",
            "src/ok.gen.py": "1",
            "src/no.gen.py": "1",
            "src/big/c.py": "1",
        },
    )
    listing = walk(Root(root))
    kept = [path for path in paths(listing) if not path.endswith("ignore")]
    assert kept == ["docs/keep.md", "src/big/c.py", "src/ok.gen.py"]
    assert reasons(listing)["big/"] == Reason.IGNORED


def test_default_excludes_hold_outside_repositories(tmp_path: Path) -> None:
    files = ["main.py", "node_modules/p/i.js", ".venv/x.py", "env/pyvenv.cfg", "env/x.py", "env2/x.py", "cache/x.py"]
    root = write(tmp_path / "tree", dict.fromkeys(files, "1"))
    write(root, {"cache/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55", "p/__pycache__/m.pyc": "1"})
    listing = walk(Root(root))
    assert paths(listing) == ["env2/x.py", "main.py"]
    assert reasons(listing) == dict.fromkeys(
        [".venv/", "cache/", "env/", "node_modules/", "p/__pycache__/"], Reason.IGNORED
    )


ASKED = """
*.log
!debug.log
!keep/*.log
/keep/noisy.log
!*.min.js
!data/*.csv
!/package-lock.json
!/schema.json
!\\[1].map
!src/*
!*.go
!.prettierignore
!/*.tx[t]
"""


ASKED_TREE = [
    *("debug.log", "sub/debug.log", "other.log", "keep/one.log", "keep/noisy.log", "app.min.js", "data/orders.csv"),
    *("package-lock.json", "sub/package-lock.json", "schema.json", "[1].map", "2.map", "src/cart.min.css", "src/a.svg"),
    *("api.pb.go", ".prettierignore", "notes.txt", "plain.csv", "id_rsa"),
]


@both_ways
@pytest.mark.parametrize("repository", [pytest.param(True, marks=needs_git), False], ids=["repository", "folder"])
@pytest.mark.parametrize("rules", [".gitignore", ".ragpilotignore"])
def test_negated_patterns_that_name_something_ask_for_it(
    rules: str, repository: bool, use_git: bool, tmp_path: Path
) -> None:
    """Others, ``src/*`` or ``*.go``, only take back what was said before them."""
    root = write(tmp_path / "t", {rules: ASKED, **dict.fromkeys(ASKED_TREE, "1")})
    if repository:
        git(root, "init", "-q")
    listing = walk(Root(root), use_git=use_git)
    assert set(paths(listing)) == {rules, *ASKED_TREE} - {"other.log", "keep/noisy.log"}
    wanted = {"debug.log", "sub/debug.log", "keep/one.log", "app.min.js", "data/orders.csv", "package-lock.json"}
    wanted |= {"schema.json", "[1].map"}
    # In a .gitignore it is how people keep such files in git.
    wanted |= {".prettierignore"} if rules == ".ragpilotignore" else set()
    assert {entry.path for entry in listing.files if entry.asked_for} == wanted


@needs_git
@both_ways
def test_what_is_asked_for_is_what_the_nearest_rules_say(use_git: bool, tmp_path: Path) -> None:
    root = write(
        tmp_path / "t",
        {
            ".gitignore": "!a.log\n",
            "a.log": "1",
            "sub/.gitignore": "*.log\n",
            "sub/a.log": "1",
            "clone/a.log": "1",
            "clone/b.log": "1",
            "clone/.gitignore": "!b.log\n",
            "kept/.ragpilotignore": "a.log\n",
            "kept/a.log": "1",
        },
    )
    git(root, "init", "-q")
    git(root / "clone", "init", "-q")
    write(root, {".git/info/exclude": "*.log\n!c.log\n", "c.log": "1", "d.log": "1"})
    for start, expected in (("", ["a.log", "c.log", "clone/b.log"]), ("clone", ["b.log"]), ("kept", []), ("sub", [])):
        listing = walk(Root(root / start), use_git=use_git)
        assert sorted(entry.path for entry in listing.files if entry.asked_for) == expected


@pytest.mark.parametrize("rules", [".gitignore", ".ragpilotignore"])
def test_tools_folders_that_are_asked_for_are_walked(rules: str, tmp_path: Path) -> None:
    asked = "!*/\n!.venv/\n!env\n!/p/node_modules/\n!*.egg-info/\n"
    inside = [
        *(".venv/lib/x.py", ".venv/node_modules/y.js", "env/x.py", "p/node_modules/z.js", "node_modules/z.js"),
        *("a.egg-info/top.txt", ".tox/t.py", "cache/c.py"),
    ]
    root = write(tmp_path / "t", {rules: asked, **dict.fromkeys(inside, "1")})
    write(root, {"env/pyvenv.cfg": "1", "cache/CACHEDIR.TAG": "1"})
    found = [path for path in paths(walk(Root(root))) if path != rules]
    assert found == [".venv/lib/x.py", "a.egg-info/top.txt", "env/pyvenv.cfg", "env/x.py", "p/node_modules/z.js"]


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="paths are short there")
@both_ways
@pytest.mark.parametrize("repository", [pytest.param(True, marks=needs_git), False], ids=["repository", "folder"])
def test_trees_deeper_than_calls_can_nest(
    use_git: bool, repository: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "t", {"a.py": "1"})
    if repository:
        git(root, "init", "-q")
    depth = sys.getrecursionlimit() + 200
    monkeypatch.chdir(root)
    for _ in range(depth):
        os.mkdir("d")  # noqa: PTH102 - beside the folder that the process is in, whose whole path is too long for some
        os.chdir("d")
    file = Path("deep.py")
    file.write_text("1", encoding="utf-8")
    try:
        assert paths(walk(Root(root), use_git=use_git)) == ["a.py", "d/" * depth + "deep.py"]
    finally:  # shutil removes no tree that is so deep
        file.unlink()
        for _ in range(depth):
            os.chdir("..")
            os.rmdir("d")  # noqa: PTH106


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@both_ways
@pytest.mark.parametrize("repository", [pytest.param(True, marks=needs_git), False], ids=["repository", "folder"])
def test_links_and_special_files_are_left_out(use_git: bool, repository: bool, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.py": "OUTSIDE"})
    root = write(tmp_path / "tree", {"a/real.py": "1", "b/other.py": "1"})
    for link, target in {
        "a/loop": "..",
        "b/self": ".",
        "z_root": "/",
        "broken.py": "missing",
        "outside.py": str(outside / "secret.py"),
        "alias": "a",
        "again.py": "a/real.py",
    }.items():
        (root / link).symlink_to(target)
    os.mkfifo(root / "pipe.py")
    if repository:
        git(root, "init", "-q")
    listing = walk(Root(root), use_git=use_git)
    assert paths(listing) == ["a/real.py", "b/other.py"]
    details = {item.path: item.detail for item in listing.left_out}
    assert details["outside.py"] == details["z_root"] == "leads outside the root"
    assert details["alias"] == details["again.py"] == details["a/loop"] == "leads inside the root"
    assert details["broken.py"] == "leads nowhere"


@needs_git
@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@both_ways
def test_a_tracked_folder_that_became_a_link_leads_nowhere_out(use_git: bool, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"x.py": "OUTSIDE"})
    root = write(tmp_path / "tree", {"pkg/x.py": "1", "y.py": "1"})
    git(root, "init", "-q")
    git(root, "add", "-A")
    shutil.rmtree(root / "pkg")
    (root / "pkg").symlink_to(outside)
    assert paths(walk(Root(root), use_git=use_git)) == ["y.py"]


@needs_git
@pytest.mark.skipif(sys.platform == "win32", reason="a shell script is the bait")
def test_a_hostile_configuration_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path / "tree", {"a.py": "1"})
    git(root, "init", "-q")
    git(root, "add", "-A")
    ran = tmp_path / "ran"
    bait = write(tmp_path, {"bait.sh": f"#!/bin/sh\ntouch {ran}\n"}) / "bait.sh"
    bait.chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "filter.x.clean", "diff.external"):
        git(root, "config", key, str(bait))
    write(root, {".gitattributes": "* filter=x\n", "b.py": "1"})
    for hook in ("post-index-change", "post-checkout"):
        shutil.copy(bait, root / ".git" / "hooks" / hook)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(bait))
    assert paths(walk(Root(root))) == [".gitattributes", "a.py", "b.py"]
    assert not ran.exists()


def test_a_git_that_lies_in_the_root_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write(tmp_path / "tree", {"bin/git": "#!/bin/sh\n"}) / "bin" / "git"
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    assert gitfiles.git_program(outside=os.fsencode(tmp_path / "tree")) is None
    assert gitfiles.git_program(outside=os.fsencode(tmp_path / "other")) == str(program)


def test_sockets_and_unreadable_folders(tmp_path: Path) -> None:
    root = write(tmp_path / "t", {"a.py": "1", "closed/b.py": "1"})
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(root / "s"))
    (root / "closed").chmod(0)
    try:
        listing = walk(Root(root))
    finally:
        listener.close()
        (root / "closed").chmod(0o755)
    assert reasons(listing)["s"] == Reason.SPECIAL
    if os.geteuid():
        assert paths(listing) == ["a.py"]
        assert reasons(listing)["closed/"] == Reason.NO_PERMISSION


@pytest.mark.parametrize("repository", [True, False])
def test_what_was_asked_for_and_is_no_file_is_named(repository: bool, tmp_path: Path) -> None:
    root = write(tmp_path / "t", {"docs/a.md": "1"})
    if repository:
        git(root, "init", "-q")
    os.mkfifo(root / "docs/fifo.md")
    (root / "docs/empty").mkdir()
    listing = walk(Root(root), scope=b"docs/fifo.md")
    assert (listing.files, listing.left_out) == ([], [LeftOut("docs/fifo.md", "special file")])
    for other in (b"docs/empty", b"docs/absent", b"docs/fifo.md/x"):
        assert walk(Root(root), scope=other).left_out == []


def test_a_scope_lists_what_the_whole_would(tmp_path: Path) -> None:
    root = write(tmp_path / "t", {".gitignore": "/a/x\n", "a/x/1": "", "a/y/2": "", "a/yy/3": "", "b/4": ""})
    whole = paths(walk(Root(root)))
    assert paths(walk(Root(root), scope=b"a/y")) == ["a/y/2"]
    assert paths(walk(Root(root), scope=b"a")) == [path for path in whole if path.startswith("a/")]
    assert paths(walk(Root(root), scope=b"b/4")) == ["b/4"]
    hidden = walk(Root(root), scope=b"a/x")
    assert paths(hidden) == []
    assert reasons(hidden) == {"a/x/": Reason.IGNORED}


def test_skipped_folders_are_passed_over(tmp_path: Path) -> None:
    root = write(tmp_path / "t", {"state/x": "", "a": ""})
    assert paths(walk(Root(root), skip=frozenset({os.fsencode(root / "state")}))) == ["a"]
