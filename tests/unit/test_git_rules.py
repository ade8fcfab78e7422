"""Git's rules, read from its files as git reads them: patterns, excludes, configuration, index."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragpilot.ingest import gitfiles
from ragpilot.ingest.ignore import ignored, parse
from ragpilot.ingest.roots import Root
from ragpilot.ingest.walk import walk
from tests.trees import both_ways, git, needs_git, of_git, paths, write


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


@needs_git
@both_ways
def test_settings_of_the_environment_hold_before_those_of_files(
    use_git: bool, tmp_path: Path, own_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "tree", {"x.swp": "1", "y.bak": "1"})
    git(root, "init", "-q")
    write(own_environment, {"mine": "*.swp\n", "other": "*.bak\n"})
    git(root, "config", "core.excludesFile", str(own_environment / "other"))
    assert paths(walk(Root(root), use_git=use_git)) == ["x.swp"]
    for name, value in {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "x",
        "GIT_CONFIG_KEY_1": "core.excludesFile",
        "GIT_CONFIG_VALUE_1": "~/mine",
    }.items():
        monkeypatch.setenv(name, value)
    assert paths(walk(Root(root), use_git=use_git)) == ["y.bak"]


@needs_git
def test_settings_of_the_environment_run_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path / "tree", {"a.py": "1"})
    git(root, "init", "-q")
    git(root, "add", ".")
    for name, value in {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": f"touch {tmp_path / 'ran'}; false",
    }.items():
        monkeypatch.setenv(name, value)
    assert paths(walk(Root(root))) == ["a.py"]
    assert not (tmp_path / "ran").exists()


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
    assert paths(walk(Root(root))) == ["x.swp", "y"]


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
def test_git_that_refuses_is_replaced(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {".gitignore": "*.log\n", "a.py": "1", "b.log": "1"})
    git(root, "init", "-q")
    write(root, {".git/config": "this is no configuration"})
    assert gitfiles.list_files("git", os.fsencode(root), lambda: False) is None
    assert paths(walk(Root(root))) == [".gitignore", "a.py"]


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


def test_a_repository_whose_own_files_are_folders(tmp_path: Path) -> None:
    root = write(tmp_path / "t", {"a.py": "1", "x.log": "1", ".gitignore": "*.log\n"})
    git(root, "init", "-q")
    (root / ".git/config").unlink()
    for name in ("config", "index", "info/exclude"):
        (root / ".git" / name).unlink(missing_ok=True)
        (root / ".git" / name).mkdir()
    assert paths(walk(Root(root))) == [".gitignore", "a.py"]


def test_patterns_take_no_exponential_time() -> None:
    file = parse(b"/r", b"*a*a*a*a*a*a*a*a*a*a*ab\n**/a/**/a/**/a/**/a/**/a/**/b\n")
    assert file is not None
    long = b"/r/" + b"/".join([b"a" * 250] * 3 + [b"a"] * 1500)
    assert file.deciding(long, folder=False) is None
