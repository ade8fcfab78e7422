"""Ingestion: walking, reading, cutting and embedding real sources; a run without changes; a very large tree.

The sources are what packages and toolchains of this machine hold; a language that none of them has is passed over.
More folders can be named in BENCH_TREES, separated as in PATH.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import resource
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from benchmarks.tables import Table
from ragpilot.adapters.edge_store import EdgeStore
from ragpilot.adapters.minilm import MiniLmEmbedder
from ragpilot.config import CorpusSettings, IngestSettings
from ragpilot.ingest.chunkers import chunk_text_with_notes
from ragpilot.ingest.documents import body_text, header_text
from ragpilot.ingest.pipeline import IngestService
from ragpilot.ingest.prepare import Preparer, Task
from ragpilot.ingest.read import Refusal, read_file, text_of
from ragpilot.ingest.roots import Root
from ragpilot.ingest.secrets import redact
from ragpilot.ingest.walk import FileEntry, walk
from ragpilot.ports import ChunkStore, Embedder
from ragpilot.types import (
    Actor,
    Chunk,
    CollectionInfo,
    IndexedChunk,
    IndexIdentity,
    IngestReport,
    IngestScope,
    Vector,
    VectorName,
)

ACTOR = Actor("benchmark", frozenset({"team:everyone"}), frozenset({"ask", "ingest"}))
SETTINGS = IngestSettings()
EMBEDDED = 600
"""Chunks of a tree that are embedded, spread over all of it."""
UNCHANGED, LARGE = 5_000, 100_000

_T = TypeVar("_T")
_Given = TypeVar("_Given")


def run() -> list[Table]:
    """Some minutes, most of them for the tree of 100,000 files."""
    with tempfile.TemporaryDirectory(prefix="ragpilot-bench-") as folder:
        base = Path(folder)
        tables = [asyncio.run(_sources(base)), asyncio.run(_unchanged(base))]
        # Alone in a process of its own, so that its memory is its own.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as alone:
            tables.append(alone.submit(_large, base).result())
        return tables


# --- real sources


def _trees(base: Path) -> Iterator[tuple[str, Path]]:
    """What there is to measure: a name, and a folder that holds it alone."""
    packages = Path(sysconfig.get_paths()["purelib"])
    found = [
        ("Python: textual, numpy", [packages / "textual", packages / "numpy"], (".py",)),
        ("C: numpy, mypyc", [packages / "numpy", packages / "mypyc"], (".c", ".h")),
        ("JavaScript: npm", _asked("npm", "root", "-g", inside="npm"), (".js",)),
        ("Go: net, encoding", _asked("go", "env", "GOROOT", inside="src/net", also="src/encoding"), (".go",)),
    ]
    for name, folders, suffixes in found:
        target = base / "trees" / name.split(":")[0]
        if sum(_copy(folder, target, suffixes) for folder in folders):
            yield name, target
    for folder in filter(None, os.environ.get("BENCH_TREES", "").split(os.pathsep)):
        yield folder, Path(folder).resolve()


def _asked(program: str, *arguments: str, inside: str, also: str | None = None) -> list[Path]:
    """Folders below the one that a program of this machine names."""
    path = shutil.which(program)
    if path is None:
        return []
    done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    named = done.stdout.strip()
    return [Path(named, part) for part in (inside, also) if named and part]


def _copy(folder: Path, target: Path, suffixes: Sequence[str]) -> int:
    """Copy the files of a language, so that neither what was built beside them nor ignore rules count."""
    count = 0
    for file in folder.rglob("*"):
        if file.suffix in suffixes and file.is_file():
            copied = target / folder.name / file.relative_to(folder)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copied)
            count += 1
    return count


async def _sources(base: Path) -> Table:
    table = Table(
        "Ingestion of sources on this machine (warm file cache)",
        ("sources", "files", "MB", "walked/s", "read/s", "chunks", "cut/s", "stored/s", "headers/s", "bodies/s"),
    )
    embedder = MiniLmEmbedder()
    await embedder.embed_documents(["loads the model"])
    for name, folder in _trees(base):
        listed, walked = _timed(_walk, folder)
        size, read = _timed(_read, listed)
        chunks, cut = _timed(_cut, listed)
        stored = await _stored(folder, base / "states" / folder.name)
        sample = [entry.chunk for entry in chunks[:: max(1, len(chunks) // EMBEDDED)]]
        speeds = [
            len(sample) / await _embedding(embedder, [text(chunk) for chunk in sample])
            for text in (header_text, body_text)
        ]
        counted = [len(listed) / walked, len(listed) / read, len(chunks), len(chunks) / cut, stored, *speeds]
        table.add(name, f"{len(listed):,}", f"{size / 1e6:.1f}", *(f"{number:,.0f}" for number in counted))
    await embedder.aclose()
    return table


def _timed(work: Callable[[_Given], _T], given: _Given) -> tuple[_T, float]:
    """The result of blocking work, and its seconds."""
    started = time.perf_counter()
    result = work(given)
    return result, time.perf_counter() - started


def _walk(folder: Path) -> list[FileEntry]:
    return walk(Root(folder)).files


def _read(listed: Sequence[FileEntry]) -> int:
    """Read, decode and redact files as a run does; gives their bytes."""
    for entry in listed:
        raw = read_file(entry.file, inside=entry.root, max_bytes=SETTINGS.max_file_bytes)
        text = raw if isinstance(raw, Refusal) else text_of(raw)
        if not isinstance(text, Refusal):
            redact(text)
    return sum(entry.size for entry in listed)


def _cut(listed: Sequence[FileEntry]) -> list[IndexedChunk]:
    """Read and cut files, and make the lexical vectors."""
    preparer = Preparer("bench", SETTINGS, chunk_text_with_notes, chunker="")
    readers = frozenset({"team:everyone"})
    prepared = (preparer.prepare(Task(entry, readers, None, None)) for entry in listed)
    return [chunk for one in prepared for chunk in one.chunks or ()]


async def _embedding(embedder: Embedder, texts: list[str]) -> float:
    """Seconds that the texts take."""
    started = time.perf_counter()
    for at in range(0, len(texts), 64):
        await embedder.embed_documents(texts[at : at + 64])
    return time.perf_counter() - started


async def _stored(folder: Path, state: Path) -> float:
    """Chunks a second of a whole run up to its lexical vectors, into the embedded store."""
    store = EdgeStore(state / "store")
    report = await _run(store, NoEmbedder(), folder, state, bodies=False)
    await store.aclose()
    return report.chunks / report.seconds_to_searchable


async def _run(
    store: ChunkStore, embedder: Embedder, folder: Path, state: Path, *, bodies: bool = True
) -> IngestReport:
    corpus = CorpusSettings(name="bench", roots=[str(folder)])
    service = IngestService(store, embedder, SETTINGS, state, corpora=[corpus])
    async with aclosing(service.run(ACTOR, corpus, bodies=bodies)) as events:
        async for event in events:
            if isinstance(event, IngestReport):
                return event
    raise RuntimeError("a run ended without a report")


class NoEmbedder(MiniLmEmbedder):
    """Gives the same vector for every text, at no cost: what is measured is everything else."""

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        vector = np.zeros(self.identity.dimensions, dtype=np.float32)
        vector[0] = 1.0
        return [vector] * len(texts)


# --- a run without changes


async def _unchanged(base: Path) -> Table:
    table = Table(f"A run over {UNCHANGED:,} files, by a new process's state", ("what", "files", "seconds"))
    for kind in ("folder", "git repository"):
        folder, state = base / kind / "tree", base / kind / "state"
        _generate(folder, UNCHANGED)
        if kind != "folder":
            if shutil.which("git") is None:
                continue
            _git(folder, "init", "-q")
            _git(folder, "add", "-A")
        for what in ("first run", "nothing changed", "one file changed"):
            if what == "nothing changed":
                await asyncio.sleep(2.5)  # files as old as their own timestamps' grain are read again
            if what == "one file changed":
                (folder / "part0/file0.py").write_text("x = 1\n")
            store = EdgeStore(state / "store")
            await store.describe("bench")  # its process is started
            report = await _run(store, NoEmbedder(), folder, state)
            await store.aclose()
            table.add(
                f"{kind}: {what}", f"{report.added + report.changed + report.unchanged:,}", f"{report.seconds:.2f}"
            )
    return table


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)  # noqa: S603, S607


def _generate(folder: Path, files: int) -> None:
    for number in range(files):
        file = folder / f"part{number // 250}" / f"file{number}.py"
        if number % 250 == 0:
            file.parent.mkdir(parents=True)
        file.write_text(
            f'"""Part {number} of a generated tree."""\n\nLIMIT = {number}\n\n\n'
            f"def first_{number}(values):\n    return [value + {number} for value in values if value < LIMIT]\n\n\n"
            f"class Holder{number}:\n    def total(self):\n        return sum(self.values) * {number}\n"
        )


# --- a very large tree


def _large(base: Path) -> Table:
    """Walk and cut, without embedding and without a store: everything a run keeps in this process is in its memory."""
    folder = base / "large"
    _generate(folder, LARGE)
    before = _peak()
    started = time.perf_counter()
    store = Discarding()
    report = asyncio.run(_run(cast("ChunkStore", store), NoEmbedder(), folder, base / "large-state", bodies=False))
    seconds = time.perf_counter() - started
    table = Table(
        f"Walk and cut of a generated tree of {LARGE:,} files, nothing embedded",
        ("files", "chunks", "seconds", "files/s", "chunks/s", "peak MB", "before MB"),
    )
    counted = [report.added, store.chunks, seconds, report.added / seconds, store.chunks / seconds, _peak(), before]
    table.add(*(f"{number:,.0f}" for number in counted))
    return table


def _peak() -> float:
    """The most memory that this process has had, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # What the system reports as the most resident counts that of the process which started this one, too.
        held = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"), re.MULTILINE)
        if held:
            return int(held[1]) / 1000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


class Discarding:
    """A store that acknowledges everything and keeps nothing."""

    def __init__(self) -> None:
        self._info: CollectionInfo | None = None
        self.chunks = 0

    async def describe(self, *_: object) -> CollectionInfo | None:
        return self._info

    async def ensure(self, scope: IngestScope, identity: IndexIdentity) -> CollectionInfo:
        self._info = self._info or CollectionInfo(scope.corpus, identity, 0, None)
        return self._info

    async def upsert(self, scope: IngestScope, document_id: str, chunks: Sequence[IndexedChunk]) -> None:
        del scope, document_id
        self.chunks += len(chunks)
        if self._info:
            self._info = replace(self._info, revision=self._info.revision + 1)

    async def count(self, *_: object, having: VectorName) -> int:
        del having
        return 0

    async def without_vector(self, *_: object, limit: int) -> list[Chunk]:
        del limit
        return []

    async def record_ingestion(self, *_: object) -> None:
        return None
