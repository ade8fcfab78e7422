"""Watching real folders: which places come, and that what is ignored brings none."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ragpilot.config import CorpusSettings
from ragpilot.errors import RootError
from ragpilot.ingest import watcher as watcher_module
from ragpilot.ingest.watch_look import Look, can_be_asked_for, look
from ragpilot.ingest.watcher import CorpusWatcher
from tests.trees import git

SECONDS = 20
SILENCE = 0.6
"""Longer than it takes for a change to come through."""


def write(file: Path, text: str = "x = 1\n") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


class Watched:
    """The places of a watcher, as a run after the other would ask for them."""

    def __init__(self, places: AsyncGenerator[Path | None, None], root: Path) -> None:
        self._places = places
        self._root = root
        self._waiting: asyncio.Task[Path | None] | None = None
        self.said: list[str] = []

    async def next(self) -> str | None:
        """The next place, relative to the root; None: everything."""
        task, self._waiting = self._waiting or self._ask(), None
        async with asyncio.timeout(SECONDS):
            place = await task
        return None if place is None else place.relative_to(self._root).as_posix()

    async def nothing(self) -> bool:
        """Whether no place comes for a while."""
        self._waiting = self._waiting or self._ask()
        done, _ = await asyncio.wait({self._waiting}, timeout=SILENCE)
        return not done

    def _ask(self) -> asyncio.Task[Path | None]:
        return asyncio.ensure_future(anext(self._places))

    async def end(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            await asyncio.wait({self._waiting})


@asynccontextmanager
async def watching(
    root: Path, *, path: Path | None = None, roots: list[Path] | None = None, **options: Any
) -> AsyncIterator[Watched]:
    corpus = CorpusSettings(roots=[str(folder) for folder in roots or [root]])
    said: list[str] = []
    watcher = CorpusWatcher(corpus, root.parent / "state", path=path, say=said.append, **options)
    async with aclosing(watcher.places()) as places:
        watched = Watched(places, root)
        watched.said = said
        assert await watched.next() is None
        try:
            yield watched
        finally:
            await watched.end()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    write(folder / "src/a.py")
    write(folder / "docs/guide.md")
    return folder


@pytest.fixture
def repository(root: Path) -> Path:
    write(root / ".gitignore", "*.log\nbuild/\n")
    write(root / "build/out.py")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


def atomically(file: Path) -> None:
    """As editors save: beside it, then over it."""
    beside = write(file.with_name(f".{file.name}.swp"), "y = 2\n")
    beside.replace(file)


def edit(root: Path) -> None:
    write(root / "src/a.py", "x = 2\n")


def exchange(root: Path, other: Path) -> None:
    root.rename(root.with_name("old"))
    other.rename(root)


CHANGES: dict[str, tuple[Callable[[Path], object], str | None]] = {
    "edited": (edit, "src/a.py"),
    "new": (lambda root: write(root / "src/b.py"), "src/b.py"),
    "deleted": (lambda root: (root / "src/a.py").unlink(), "src"),
    "saved atomically": (lambda root: atomically(root / "src/a.py"), "src"),
    "moved": (lambda root: (root / "src/a.py").rename(root / "src/z.py"), "src"),
    "moved afar": (lambda root: (root / "src/a.py").rename(root / "docs/z.py"), None),
    "new folders": (lambda root: write(root / "src/deep/er/c.py"), "src/deep"),
    "folder moved": (lambda root: (root / "src").rename(root / "lib"), None),
    "folder deleted": (lambda root: shutil.rmtree(root / "src"), None),
    "two": (lambda root: [write(root / "src/one/x.py"), write(root / "src/two/x.py")], "src"),
    "a link": (lambda root: (root / "src/link.py").symlink_to("a.py"), "src"),
    "own rules": (lambda root: write(root / "src/.ragpilotignore", "a.py\n"), "src"),
}


WHOLE_TREES = ("edited", "deleted", "new folders", "folder deleted")
"""Tried again as systems do it that watch a tree as a whole."""


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("change", "one_by_one"), [*((change, True) for change in CHANGES), *((change, False) for change in WHOLE_TREES)]
)
async def test_what_changes_is_to_be_covered(repository: Path, change: str, one_by_one: bool) -> None:
    act, place = CHANGES[change]
    async with watching(repository, one_by_one=one_by_one) as watched:
        act(repository)
        assert await watched.next() == place


@pytest.mark.asyncio
@pytest.mark.parametrize("one_by_one", [True, False])
async def test_what_is_ignored_brings_no_run(repository: Path, one_by_one: bool) -> None:
    async with watching(repository, one_by_one=one_by_one) as watched:
        for number in range(30):
            write(repository / f"build/deep/{number}/x.py")
        write(repository / "server.log")
        write(repository / ".git/FETCH_HEAD")
        assert await watched.nothing()
        write(repository / "server.log", "more\n")
        assert await watched.nothing()
        edit(repository)
        assert await watched.next() == "src/a.py"


@pytest.mark.asyncio
async def test_what_tools_keep_is_not_even_watched(root: Path) -> None:
    write(root / "node_modules/left/pad.js")
    write(root / ".venv/lib/a.py")
    write(root / ".git/not/a/repository")
    seen = look(CorpusSettings(roots=[str(root)]), root / "none", None)
    assert {Path(folder).relative_to(root).as_posix() for folder in seen.folders_to_watch(one_by_one=True)} == {
        ".",
        "src",
        "docs",
    }
    assert seen.folders_to_watch(one_by_one=False) == [str(root)]


@pytest.mark.asyncio
async def test_a_folder_that_came_is_watched_from_then_on(root: Path) -> None:
    async with watching(root) as watched:
        write(root / "src/new/a.py")
        assert await watched.next() == "src/new"
        write(root / "src/new/deep/b.py")
        assert await watched.next() == "src/new/deep"
        write(root / "src/new/deep/b.py", "y = 3\n")
        assert await watched.next() == "src/new/deep/b.py"


@pytest.mark.asyncio
async def test_a_folder_made_again_is_watched_again(root: Path) -> None:
    async with watching(root) as watched:
        shutil.rmtree(root / "src")
        assert await watched.next() is None
        write(root / "src/a.py")
        assert await watched.next() == "src"
        edit(root)
        assert await watched.next() == "src/a.py"


@pytest.mark.asyncio
async def test_changes_during_a_run_are_in_the_next_place(root: Path) -> None:
    async with watching(root) as watched:
        edit(root)
        assert await watched.next() == "src/a.py"
        edit(root)  # while the consumer is at work
        write(root / "src/b.py")
        assert await watched.next() == "src"
        assert await watched.nothing()


@pytest.mark.asyncio
async def test_rules_that_change_decide_anew(repository: Path) -> None:
    async with watching(repository) as watched:
        write(repository / ".gitignore", "*.log\n")
        assert await watched.next() is None
        write(repository / "build/out.py", "z = 1\n")
        assert await watched.next() == "build/out.py"
        write(repository / ".git/info/exclude", "build/\n")
        assert await watched.next() is None
        write(repository / "build/out.py", "z = 2\n")
        assert await watched.nothing()


@pytest.mark.asyncio
async def test_an_ignored_file_that_git_is_told_to_keep(repository: Path) -> None:
    write(repository / "kept.log", "text\n")
    async with watching(repository) as watched:
        git(repository, "add", "-f", "kept.log")
        assert await watched.next() is None
        write(repository / "kept.log", "other text\n")
        assert await watched.next() == "kept.log"


@pytest.mark.asyncio
async def test_a_checkout_is_one_run(repository: Path) -> None:
    for number in range(400):
        write(repository / f"src/part{number % 20}/f{number}.py")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "many")
    async with watching(repository) as watched:
        git(repository, "checkout", "-q", "HEAD~1")
        assert await watched.next() is None
        assert await watched.nothing()


@pytest.mark.asyncio
async def test_a_run_waits_until_git_lets_go(repository: Path) -> None:
    async with watching(repository) as watched:
        lock = write(repository / ".git/index.lock", "")
        edit(repository)
        assert await watched.nothing()
        lock.unlink()
        assert await watched.next() == "src/a.py"


@pytest.mark.asyncio
async def test_a_lock_that_was_left_behind_is_not_waited_for(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module, "LOCK_SECONDS", 0.5)
    write(repository / ".git/index.lock", "")
    async with watching(repository) as watched:
        edit(repository)
        assert await watched.next() == "src/a.py"


@pytest.mark.asyncio
async def test_a_root_may_go_and_come_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module, "ROOTS_SECONDS", 0.05)
    async with watching(root) as watched:
        shutil.rmtree(root)
        assert await watched.nothing()
        assert watched.said == [f"The root {root} does not exist. Its return is waited for; what is indexed stays."]
        write(root / "src/a.py")
        assert await watched.next() is None
        write(root / "src/a.py", "x = 3\n")
        assert await watched.next() == "src/a.py"


@pytest.mark.asyncio
async def test_a_root_may_be_exchanged_for_another(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module, "ROOTS_SECONDS", 0.05)
    other = root.with_name("other")
    write(other / "src/n.py")
    async with watching(root) as watched:
        exchange(root, other)
        assert await watched.next() is None
        while await watched.nothing() is False:
            assert await watched.next() is None
        write(root / "src/n.py", "n = 2\n")
        assert await watched.next() == "src/n.py"


@pytest.mark.asyncio
async def test_a_root_that_is_missing_at_the_beginning(tmp_path: Path) -> None:
    watcher = CorpusWatcher(CorpusSettings(roots=[str(tmp_path / "none")]), tmp_path)
    with pytest.raises(RootError):
        await anext(watcher.places())


@pytest.mark.asyncio
async def test_a_name_that_is_no_text(root: Path) -> None:
    async with watching(root) as watched:
        write(root / os.fsdecode(b"src/b\xff.py"))
        assert await watched.next() is None
        edit(root)
        assert await watched.next() == "src/a.py"


@pytest.mark.asyncio
@pytest.mark.parametrize("target", ["src", "src/a.py"])
async def test_a_part_of_a_corpus(root: Path, target: str) -> None:
    async with watching(root, path=root / target) as watched:
        write(root / "docs/guide.md", "# Other\n")
        write(root / "top.py")
        assert await watched.nothing()
        edit(root)
        assert await watched.next() == (None if target == "src/a.py" else "src/a.py")


@pytest.mark.asyncio
async def test_several_roots(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(other / "b.py")
    async with watching(tmp_path, roots=[root, other]) as watched:
        write(other / "b.py", "y = 2\n")
        assert await watched.next() == "other/b.py"
        edit(root)
        write(other / "b.py", "y = 3\n")
        assert await watched.next() is None


@pytest.mark.asyncio
async def test_the_state_folder_inside_a_root_is_not_watched(root: Path) -> None:
    corpus = CorpusSettings(roots=[str(root)])
    write(root / "state/manifest.txt")
    watcher = CorpusWatcher(corpus, root / "state")
    async with aclosing(watcher.places()) as places:
        watched = Watched(places, root)
        assert await watched.next() is None
        write(root / "state/manifest.txt", "more\n")
        assert await watched.nothing()
        await watched.end()


@pytest.mark.asyncio
async def test_without_notifications_everything_is_looked_at_now_and_then(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> AsyncGenerator[set[tuple[int, str]], None]:
        raise OSError("OS file watch limit reached.")

    monkeypatch.setattr(watcher_module, "awatch", refuse)
    monkeypatch.setattr(watcher_module, "DEAF_SECONDS", 0.2)
    monkeypatch.setattr(watcher_module, "ROOTS_SECONDS", 0.05)
    async with watching(root) as watched:
        assert await watched.next() is None
        assert await watched.next() is None
        (said,) = watched.said
        assert "OS file watch limit reached" in said
        assert "looked at every" in said


def test_ignore_files_above_a_root_count(repository: Path) -> None:
    seen = look(CorpusSettings(roots=[str(repository / "src")]), repository / "none", None)
    assert seen.tree.concerns(str(repository / ".gitignore"))
    assert seen.tree.concerns(str(repository / ".git/index"))
    assert not seen.tree.concerns(str(repository / "docs/guide.md"))
    assert {str(repository), str(repository / ".git"), str(repository / ".git/info")} == set(seen.beside)


def test_what_a_run_can_be_asked_for(root: Path) -> None:
    (root / "link").symlink_to("src")
    assert can_be_asked_for(str(root / "src"))
    assert not can_be_asked_for(str(root / "link"))
    assert not can_be_asked_for(str(root / "none"))
    assert not can_be_asked_for(str(root / "b\udcff.py"))
    assert isinstance(look(CorpusSettings(roots=[str(root)]), root, None), Look)
