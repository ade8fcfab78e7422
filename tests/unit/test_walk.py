"""The walk agrees with git, with git and without it, and never leaves its root."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragpilot.config import CorpusSettings
from ragpilot.errors import RootError
from ragpilot.ingest import gitfiles
from ragpilot.ingest.ignore import ignored, parse
from ragpilot.ingest.paths import raw_path, shown_path
from ragpilot.ingest.reasons import Reason
from ragpilot.ingest.roots import Root, commit_of, locate, nested_roots, resolve_roots, scopes
from ragpilot.ingest.walk import Listing, walk
from ragpilot.types import LeftOut

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
both_ways = pytest.mark.parametrize("use_git", [pytest.param(True, marks=needs_git), False], ids=["git", "by-hand"])


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return root


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, timeout=60)  # noqa: S603 - the tests' own commands
    return done.stdout.decode("utf-8", "surrogateescape")


def of_git(folder: Path) -> list[str]:
    listed = git(folder, "ls-files", "-co", "--exclude-standard", "-z").split("\0")
    return sorted({shown_path(os.fsencode(name)) for name in listed if name and not name.endswith("/")})


def paths(listing: Listing) -> list[str]:
    return sorted(entry.path for entry in listing.files)


def reasons(listing: Listing) -> dict[str, str]:
    return {item.path: item.reason for item in listing.left_out}


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
@pytest.mark.parametrize("seed", range(6))
def test_random_rules_agree_with_git(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret depends on it
    names = ["a", "b", "ab", "a.c", "b.h", "vendor", "sub", "[x]", "x y", "é"]
    pieces = ["a", "b", "*", "**", "/", "/", "?", "[ab]", "[!a]", ".c", "vendor", "sub", "\\[x]", "!", " "]
    root = tmp_path / "tree"
    for _ in range(120):
        file = root.joinpath(*(dice.choice(names) for _ in range(dice.randint(1, 4))))
        if not any(parent.is_file() for parent in file.parents) and not file.exists():
            write(root, {str(file.relative_to(root)): "1"})
    folders = [root, *(folder for folder in root.rglob("*") if folder.is_dir())]
    for folder in dice.sample(folders, min(8, len(folders))):
        lines = ["".join(dice.choice(pieces) for _ in range(dice.randint(1, 5))) for _ in range(4)]
        write(folder, {".gitignore": "\n".join(lines) + "\n"})
    git(root, "init", "-q")
    tracked = dice.sample(sorted(file for file in root.rglob("*") if file.is_file() and ".git" not in file.parts), 5)
    git(root, "add", "-f", *map(str, tracked))
    expected = of_git(root)
    assert paths(walk(Root(root))) == expected
    assert paths(walk(Root(root), use_git=False)) == expected


@needs_git
@pytest.mark.parametrize("seed", range(60))
def test_random_patterns_match_what_git_matches(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret depends on it
    pieces = ["a", "b", "A", "é", ".", "*", "**", "/", "//", "?", "!", "#", " ", "\\ ", "\t", "\r", "\0", "\\", "\\*"]
    pieces += [
        "[ab]",
        "[!a]",
        "[a-c]",
        "[c-a]",
        "[]a]",
        "[[:upper:]]",
        "[[:space:]x]",
        "[[:none:]]",
        "[a",
        "[a-]",
        "[/]",
    ]
    names = [
        "a",
        "b",
        "A",
        "c",
        "é",
        "ab",
        "a.b",
        "a b",
        " a",
        "a ",
        "*",
        "\\",
        "[",
        "]",
        "-",
        "!a",
        "#",
        "\t",
        "(a)",
        "$",
    ]
    content = "\n".join("".join(dice.choices(pieces, k=dice.randint(1, 6))) for _ in range(3)).encode()
    candidates = {"/".join(dice.choices(names, k=dice.randint(1, 4))).encode() for _ in range(60)}
    (tmp_path / ".gitignore").write_bytes(content)
    git(tmp_path, "init", "-q")
    command = ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "-z", "--stdin"]
    asked = b"".join(path + b"\0" for path in candidates)
    done = subprocess.run(command, check=False, input=asked, capture_output=True, timeout=60)  # noqa: S603
    file = parse(b"/r", content)
    rules = () if file is None else (file,)
    expected = set(done.stdout.split(b"\0")) - {b""}
    found = {
        path for path in candidates if any(ignored(rules, step, folder=folder) for step, folder in _steps(b"/r", path))
    }
    assert found == expected, content


def _steps(base: bytes, path: bytes) -> Iterator[tuple[bytes, bool]]:
    """A file's folders and the file itself, each with whether it is a folder."""
    parts = path.split(b"/")
    for depth in range(1, len(parts) + 1):
        yield base + b"/" + b"/".join(parts[:depth]), depth < len(parts)


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
@pytest.mark.parametrize("version", ["2", "4"])
def test_indexes_of_every_version_are_read(version: str, tmp_path: Path) -> None:
    root = write(
        tmp_path / "tree", {".gitignore": "*\n", "a/long/folder/name/one.py": "1", "a/long/folder/two.py": "1"}
    )
    git(root, "init", "-q")
    git(root, "update-index", "--index-version", version)
    git(root, "add", "-f", "a")
    assert paths(walk(Root(root), use_git=False)) == of_git(root) != []


@needs_git
@both_ways
def test_excludes_of_the_repository_and_the_user(
    use_git: bool, tmp_path: Path, own_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(
        tmp_path / "tree", {"scratch/a": "1", "x.swp": "1", "kept": "1", "y.bak": "1", ".gitignore": "!y.bak\n"}
    )
    git(root, "init", "-q")
    write(root, {".git/info/exclude": "scratch/\n"})
    write(
        own_environment, {"mine": "*.swp\n*.bak\n", "config": '[user]\n\tname = x\n[core]\n\texcludesFile = "~/mine"\n'}
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own_environment / "config"))
    assert paths(walk(Root(root), use_git=use_git)) == [".gitignore", "kept", "y.bak"]
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    write(own_environment, {".config/git/ignore": "kept\n"})
    assert paths(walk(Root(root), use_git=use_git)) == [".gitignore", "x.swp", "y.bak"]


CONFIGURATIONS = {
    "one line": {"config": "[core] excludesFile = ~/mine ; mine"},
    "upper case": {"config": '[CORE]\n\tEXCLUDESFILE="~/mine" # mine'},
    "quotes": {"config": '[core]\n\texcludesFile = "~/m"ine\n\tpager'},
    "continued": {"config": "# first\n[core]\n\texcludesFile = ~/\\\nmine\n\teditor = x\n"},
    "the last one": {"config": "[core]\nexcludesFile = ~/other\n[user]\nname = x\n[core]\nexcludesFile = ~/mine\n"},
    "escapes": {"config": '[core]\nexcludesFile = "~/a \\"b\\" #c"\n', 'a "b" #c': "*.swp\n"},
    "included": {"config": "[include]\n\tpath = more/config\n", "more/config": "[core]\nexcludesFile = ~/mine\n"},
    "included on condition": {
        "config": '[includeIf "gitdir:**/tree/"]\n\tpath = ~/more\n',
        "more": "[core]\nexcludesFile = ~/mine\n",
    },
    "not included": {
        "config": '[includeIf "gitdir:~/elsewhere/"]\n\tpath = ~/more\n[core "sub"]\nexcludesFile = ~/other\n',
        "more": "[core]\nexcludesFile = ~/other\n",
        ".config/git/ignore": "*.swp\n",
    },
    "switched off": {"config": "[core]\nexcludesFile =\n", ".config/git/ignore": "*.bak\n", "mine": "*.swp\n"},
    "broken": {"config": "[core]\nexcludesFile = ~/mine\n[core\n"},
}


@needs_git
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_users_configuration_is_read_as_git_reads_it(
    name: str, tmp_path: Path, own_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "tree", {"x.swp": "1", "y.bak": "1"})
    git(root, "init", "-q")
    write(own_environment, {"mine": "*.swp\n", "other": "*.bak\n", **CONFIGURATIONS[name]})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own_environment / "config"))
    expected = {"switched off": ["x.swp", "y.bak"]}.get(name, ["y.bak"])
    if name != "broken":
        assert of_git(root) == expected
    assert paths(walk(Root(root), use_git=False)) == expected


@needs_git
def test_the_repositorys_configuration_is_read_as_git_reads_it(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {"mine": "*.SWP\n[A-C]x\n", "x.swp": "1", "Bx": "1", "cx": "1", "s/y.Swp": "1"})
    git(root, "init", "-q")
    git(root, "config", "core.excludesFile", "mine")  # from the top on, also for a part of the work tree
    git(root, "config", "core.ignoreCase", "true")
    write(root, {".gitignore": "S/*.PY\n", "s/a.py": "1", "s/b.txt": "1"})
    for part in ("", "s"):
        assert paths(walk(Root(root / part), use_git=False)) == of_git(root / part) != []
    git(root, "config", "extensions.worktreeConfig", "true")
    git(root, "config", "--worktree", "core.ignoreCase", "false")
    assert paths(walk(Root(root), use_git=False)) == of_git(root)
    assert "s/a.py" in of_git(root)


def test_a_configuration_that_includes_itself_is_read_to_an_end(
    tmp_path: Path, own_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "tree", {"x.swp": "1", "y": "1"})
    write(own_environment, {"config": "[include]\n" + "path = config\n" * 1000, "mine": "*.swp\n"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own_environment / "config"))
    started = time.monotonic()
    assert paths(walk(Root(root))) == ["x.swp", "y"]
    assert time.monotonic() - started < 10


@needs_git
def test_an_index_that_shares_another_is_read(tmp_path: Path) -> None:
    names = [f"f{number:03}" for number in range(200)]
    root = write(tmp_path / "tree", {".gitignore": "*\n", **dict.fromkeys([*names, "later"], "1")})
    git(root, "init", "-q")
    git(root, "config", "splitIndex.maxPercentChange", "100")
    git(root, "add", "-f", *names)
    git(root, "update-index", "--split-index")
    git(root, "rm", "-q", "--cached", *names[3:150:2], *names[160:])
    write(root, {names[0]: "changed"})
    git(root, "add", "-f", "later", names[0])
    assert list((root / ".git").glob("sharedindex.*"))
    assert paths(walk(Root(root), use_git=False)) == of_git(root)
    assert {"f000", "f004", "later"} <= set(of_git(root))
    assert "f003" not in of_git(root)


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


@needs_git
def test_git_that_refuses_is_replaced(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {".gitignore": "*.log\n", "a.py": "1", "b.log": "1"})
    git(root, "init", "-q")
    write(root, {".git/config": "this is no configuration"})
    assert gitfiles.list_files("git", os.fsencode(root), lambda: False) is None
    assert paths(walk(Root(root))) == [".gitignore", "a.py"]


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


@pytest.mark.parametrize("use_git", [True, False])
@pytest.mark.parametrize("repository", [True, False])
def test_rules_that_are_no_files(use_git: bool, repository: bool, tmp_path: Path) -> None:
    root = write(tmp_path / "t", {"a.py": "1", ".gitignore/b.py": "1", "c/.ragpilotignore/d.py": "1"})
    if repository:
        git(root, "init", "-q")
    listing = walk(Root(root), use_git=use_git)
    assert paths(listing) == [".gitignore/b.py", "a.py", "c/.ragpilotignore/d.py"]


@needs_git
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes there")
@pytest.mark.parametrize(
    ("pipe", "scope"),
    [
        *((".gitignore", ""), ("sub/.gitignore", ""), (".gitignore", "sub"), (".gitmodules", ""), ("sub/.git", "")),
        *((".git/info/exclude", ""), (".git/index", ""), (".git/config", ""), (".git/HEAD", ""), ("excludes", "")),
        (".ragpilotignore", ""),
    ],
)
def test_git_is_not_waited_for_where_a_pipe_has_its_files_place(pipe: str, scope: str, tmp_path: Path) -> None:
    """Git opens each of these, and would wait for somebody who writes into it."""
    root = write(tmp_path / "t", {"sub/a.py": "1", "b.py": "1", "x.log": "1", "sub/y.log": "1"})
    git(root, "init", "-q")
    git(root, "config", "core.excludesFile", str(root / "excludes"))
    if pipe != ".git/info/exclude":
        write(root, {".git/info/exclude": "*.log\n"})
    (root / pipe).unlink(missing_ok=True)
    os.mkfifo(root / pipe)
    started = time.monotonic()
    found = paths(walk(Root(root / scope)))
    assert time.monotonic() - started < 30
    logs = set() if pipe != ".git/info/exclude" and pipe != ".git/HEAD" else {"x.log", "sub/y.log"}
    wanted = {"sub/a.py", "b.py"} | logs
    assert set(found) == (
        {path.removeprefix("sub/") for path in wanted if path.startswith("sub/")} if scope else wanted
    )


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


def test_a_repository_whose_own_files_are_folders(tmp_path: Path) -> None:
    root = write(tmp_path / "t", {"a.py": "1", "x.log": "1", ".gitignore": "*.log\n"})
    git(root, "init", "-q")
    (root / ".git/config").unlink()
    for name in ("config", "index", "info/exclude"):
        (root / ".git" / name).unlink(missing_ok=True)
        (root / ".git" / name).mkdir()
    assert paths(walk(Root(root))) == [".gitignore", "a.py"]


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


# --- names


def test_any_bytes_survive_and_the_file_is_found_again(tmp_path: Path) -> None:
    names = [
        b"plain.py",
        b"caf\xc3\xa9",
        b"latin\xe9.py",
        b"new\nline",
        b"esc\x1b[0m",
        b"back\\slash",
        b"\\xe9",
        b"a\x7f",
    ]
    root = tmp_path / "t"
    root.mkdir()
    for name in names:
        Path(os.path.join(os.fsencode(root), name).decode("utf-8", "surrogateescape")).write_bytes(name)  # noqa: PTH118
    listing = walk(Root(root))
    assert len({entry.path for entry in listing.files}) == len(names)
    for entry in listing.files:
        assert entry.path.isprintable()
        found = locate((Root(root),), entry.path)
        assert found is not None
        assert found.read_bytes() == raw_path(entry.path)


@given(st.binary(min_size=1, max_size=40).filter(lambda raw: b"\0" not in raw))
def test_shown_paths_lead_back(raw: bytes) -> None:
    shown = shown_path(raw)
    assert raw_path(shown) == raw
    assert shown.isprintable()
    shown.encode("utf-8")


# --- roots


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


def test_patterns_take_no_exponential_time() -> None:
    file = parse(b"/r", b"*a*a*a*a*a*a*a*a*a*a*ab\n**/a/**/a/**/a/**/a/**/a/**/b\n")
    assert file is not None
    long = b"/r/" + b"/".join([b"a" * 250] * 3 + [b"a"] * 1500)
    assert file.deciding(long, folder=False) is None
