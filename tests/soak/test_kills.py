"""``kill -9`` at random moments of runs, with edits, moves and deletions between them.

Nothing that was acknowledged is lost, nothing that was deleted comes back, what was indexed before still answers, and
in the end the index is that of a clean run, chunk by chunk.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.errors import StoreInUseError
from ragpilot.lexical import question_vector
from ragpilot.types import Chunk, IngestReport, IngestScope, StoreQuery
from tests.fakes import OPERATOR, FakeEmbedder
from tests.soak.child import CHARS, CORPUS, service

SCOPE = IngestScope(OPERATOR, CORPUS)
ALL = 1_000_000
SECONDS = 60
QUESTIONS = ("where is value 3 returned", "function alpha of the third part", "words of a document")
REPOSITORY = Path(__file__).parents[2]


@dataclass
class Held:
    """What the store holds."""

    chunks: dict[str, Chunk] = field(default_factory=dict)
    headers: set[str] = field(default_factory=set)
    bodies: set[str] = field(default_factory=set)
    scores: dict[str, list[tuple[float | None, float | None, float]]] = field(default_factory=dict)
    """Chunk -> its scores for each question, in every branch."""

    def ids(self, document: str) -> set[str]:
        return {chunk.id for chunk in self.chunks.values() if chunk.document_id == document}

    @property
    def documents(self) -> set[str]:
        return {chunk.document_id for chunk in self.chunks.values()}

    def comparable(self) -> dict[str, tuple[Chunk, bool, bool, list[Any]]]:
        return {
            id_: (replace(chunk, indexed_at=0), id_ in self.headers, id_ in self.bodies, self.scores[id_])
            for id_, chunk in self.chunks.items()
        }


@asynccontextmanager
async def opened(state: Path) -> AsyncIterator[EdgeStore]:
    """The store, once the owner process that a kill has left behind is gone."""
    store = EdgeStore(state / "store")
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                with suppress(StoreInUseError):
                    await store.describe(CORPUS)
                    break
                await asyncio.sleep(0.05)
        yield store
    finally:
        await store.aclose()


async def look(state: Path) -> Held:
    """Everything that the store holds."""
    held = Held()
    async with opened(state) as store:
        if await store.describe(CORPUS) is None:
            return held
        without = {name: await store.without_vector(SCOPE, name, limit=ALL) for name in ("header", "body")}
        embedder = FakeEmbedder()
        for question in QUESTIONS:
            query = StoreQuery(CORPUS, embedder.vector(question), question_vector(question), ALL, ALL)
            for candidate in await store.search(OPERATOR, query):
                held.chunks[candidate.chunk.id] = candidate.chunk
                scores = (candidate.header_score, candidate.body_score, candidate.lexical_score)
                held.scores.setdefault(candidate.chunk.id, []).append(
                    tuple(None if score is None else round(score, 4) for score in scores)  # type: ignore[arg-type]
                )
        held.chunks |= {chunk.id: chunk for chunk in without["header"]}
        held.headers = held.chunks.keys() - {chunk.id for chunk in without["header"]}
        held.bodies = held.chunks.keys() - {chunk.id for chunk in without["body"]}
    return held


class Child:
    """A run in a process of its own."""

    def __init__(self, root: Path, state: Path, chars: int = CHARS) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own module
            [sys.executable, "-m", "tests.soak.child", str(root), str(state), str(chars)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.told: list[dict[str, Any]] = []

    def facts(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.told.append(json.loads(line))
            yield self.told[-1]

    def killed(self, after: int, dice: random.Random) -> bool:
        """Kill it once it has told of ``after`` steps, or a moment later; False where it had ended before."""
        if after:
            for _ in self.facts():
                if len(self.told) == after:
                    break
            else:
                return self.ended() != 0
        time.sleep(dice.choice((0.0, 0.0, dice.uniform(0, 0.03))))
        owner = self.told[-1]["owner"] if self.told else None
        how = dice.choices(("run", "both", "owner"), (6, 2, 2))[0]
        if owner and how != "run":
            with suppress(ProcessLookupError):
                os.kill(owner, signal.SIGKILL)
        if owner and how == "owner":  # the run starts another one, and dies while it works with that
            more = len(self.told) + dice.randint(1, 6)
            for _ in self.facts():
                if len(self.told) == more:
                    break
        self._process.kill()
        return self.ended() == -signal.SIGKILL

    def ended(self) -> int:
        """Read the rest of what it tells; its status."""
        for _ in self.facts():
            pass
        status = self._process.wait(timeout=SECONDS)
        assert self._process.stderr is not None
        words = self._process.stderr.read()
        assert status in (0, -signal.SIGKILL), words
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.stderr.close()
        return status


def check(before: Held, told: list[dict[str, Any]], now: Held) -> None:
    """What a killed run may have left: the state before it, less and more what was told of."""
    certain = {document: before.ids(document) for document in before.documents}
    under_way: list[dict[str, Any]] = []
    vectors = {"header": set(before.headers), "body": set(before.bodies)}
    for fact in told:
        if "write" in fact:
            under_way.append(fact)
            continue
        under_way.remove(next(one for one in under_way if (one["write"], one["ids"]) == (fact["done"], fact["ids"])
                              and one["documents"] == fact["documents"]))  # fmt: skip
        for document in fact["documents"]:
            certain[document] = set(fact["ids"])
        if fact["done"] in vectors:
            vectors[fact["done"]] |= set(fact["ids"])
    open_documents = {document for fact in under_way for document in fact["documents"]}
    open_vectors = {(fact["write"], id_) for fact in under_way for id_ in fact["ids"]}

    for document in (certain.keys() | now.documents) - open_documents:
        assert now.ids(document) == certain.get(document, set()), "a document is not what was acknowledged"
    settled = {id_ for id_, chunk in now.chunks.items() if chunk.document_id not in open_documents}
    for name, having in (("header", now.headers), ("body", now.bodies)):
        lost = (vectors[name] & settled) - having
        assert not lost, f"{len(lost)} {name} vectors that were acknowledged are missing"
        grown = having - vectors[name] - {id_ for kind, id_ in open_vectors if kind == name}
        assert not grown & settled, f"{name} vectors that nobody has stored"
    for document in open_documents & before.documents:
        # Its chunks are those of before, those to come, or some of each; none of another document.
        coming = {id_ for fact in under_way if document in fact["documents"] for id_ in fact["ids"]}
        known = before.ids(document) | certain.get(document, set()) | coming
        assert now.ids(document) <= known


# --- a tree that changes


def text_of(dice: random.Random) -> str:
    parts = [f"def {dice.choice(('alpha', 'beta', 'gamma'))}_{n}(value):\n    return value + {dice.randint(0, 9)}\n"
             for n in range(dice.randint(1, 9))]  # fmt: skip
    return "\n\n".join(parts)


def new_name(root: Path, dice: random.Random) -> Path:
    suffix = dice.choice((".py", ".py", ".md", ".txt"))
    return root / dice.choice("abcdef") / dice.choice("xyz") / f"m{dice.randint(0, 400)}{suffix}"


def grow(root: Path, dice: random.Random, files: int) -> None:
    while len(files_of(root)) < files:
        write(new_name(root, dice), text_of(dice))


def files_of(root: Path) -> list[Path]:
    return sorted(file for file in root.rglob("*") if file.is_file())


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def change(root: Path, dice: random.Random) -> None:
    """One thing that people do to their files."""
    file = dice.choice(files_of(root))
    match dice.choice(
        ("edit", "edit", "append", "shrink", "delete", "delete", "move", "copy", "folder", "new", "empty")
    ):
        case "edit":
            write(file, file.read_text().replace("value + ", f"value * {dice.randint(2, 9)} + ", 1))
        case "append":
            write(file, file.read_text() + f"\n\n\ndef added_{dice.randint(0, 99)}():\n    return None\n")
        case "shrink":
            write(file, file.read_text()[: dice.randint(20, 200)])
        case "delete":
            file.unlink()
        case "move":
            target = new_name(root, dice)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.rename(target)
        case "copy":
            write(new_name(root, dice), file.read_text())
        case "folder":
            target = root / f"moved{dice.randint(0, 3)}"
            if target != file.parent:
                shutil.rmtree(target, ignore_errors=True)
                file.parent.rename(target)
        case "new":
            write(new_name(root, dice), text_of(dice))
        case "empty":
            write(file, "")


async def finish(root: Path, state: Path, chars: int = CHARS, *, path: Path | None = None) -> IngestReport:
    """A run, here."""
    async with opened(state) as store:
        ingestion, corpus = service(root, state, store, chars)
        events = [event async for event in ingestion.run(OPERATOR, corpus, path=path)]
    report = events[-1]
    assert isinstance(report, IngestReport)
    return report


async def soak(folder: Path, *, kills: int, files: int, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret depends on it
    root, state = folder / "root", folder / "state"
    grow(root, dice, files)
    steps, done, before = 3 * files, 0, Held()
    while done < kills:
        child = Child(root, state)
        killed = child.killed(dice.choice((dice.randint(0, steps),) * 4 + (ALL,)), dice)
        now = await look(state)
        check(before, child.told, now)
        if not killed:
            shown = {file.relative_to(root).as_posix() for file in files_of(root) if file.read_text().strip()}
            assert {chunk.path for chunk in now.chunks.values()} == shown
            assert now.chunks.keys() == now.headers == now.bodies
        done += killed
        before = now
        changes = dice.randint(1, files // 6)
        for _ in range(changes):
            change(root, dice)
        grow(root, dice, files // 2)
        steps = 3 * changes + 6
    assert (await finish(root, state)).outcome == "complete"
    again = await finish(root, state)
    assert (again.added, again.changed, again.removed, again.embedded) == (0, 0, 0, 0)
    assert (await finish(root, folder / "clean")).outcome == "complete"
    held, clean = await look(state), await look(folder / "clean")
    assert held.chunks.keys() == held.headers == held.bodies
    assert held.comparable() == clean.comparable()


async def cut_anew_and_killed(folder: Path, *, kills: int, files: int, seed: int) -> None:
    """An index that is cut anew, by runs that are killed, and at last by one that was asked for a part of it."""
    dice = random.Random(seed)  # noqa: S311 - no secret depends on it
    root, state, chars = folder / "root", folder / "state", CHARS
    grow(root, dice, files)
    assert (await finish(root, state)).outcome == "complete"
    before = await look(state)
    shown = {chunk.path for chunk in before.chunks.values()}
    done, again = 0, True
    while done < kills:
        # A run that came to its end has left the next one nothing to do; another update gives it something.
        chars = 500 - chars if again else chars
        child = Child(root, state, chars)
        killed = child.killed(dice.randint(0, 2 * files), dice)
        again = not killed or dice.random() < 0.3
        now = await look(state)
        check(before, child.told, now)
        assert {chunk.path for chunk in now.chunks.values()} == shown, "what was indexed does not answer"
        done += killed
        before = now
    part = dice.choice(files_of(root)).parent
    assert (await finish(root, state, chars, path=part)).outcome == "complete"
    report = await finish(root, state, chars)
    assert (report.added, report.changed, report.removed, report.embedded, report.notes) == (0, 0, 0, 0, ())
    assert (await finish(root, folder / "clean", chars)).outcome == "complete"
    held, clean = await look(state), await look(folder / "clean")
    assert held.chunks.keys() == held.headers == held.bodies
    assert held.comparable() == clean.comparable()


@pytest.mark.asyncio
async def test_kills_while_everything_is_cut_anew(tmp_path: Path) -> None:
    await cut_anew_and_killed(tmp_path, kills=2, files=24, seed=3)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.asyncio
async def test_many_kills_while_everything_is_cut_anew(tmp_path: Path) -> None:
    await cut_anew_and_killed(tmp_path, kills=10, files=40, seed=4)


@pytest.mark.asyncio
async def test_a_few_kills(tmp_path: Path) -> None:
    await soak(tmp_path, kills=3, files=30, seed=7)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.asyncio
@pytest.mark.parametrize("seed", [1, 2])
async def test_fifty_kills(seed: int, tmp_path: Path) -> None:
    await soak(tmp_path, kills=25, files=150, seed=seed)
