"""One file to what the store and the manifest are told of it: read, refused or redacted, chunked, with its words.

Blocking, and works on one file at a time: nothing that lies in one file can harm another.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from ragpilot.config import IngestSettings
from ragpilot.ingest.access_files import is_access_file
from ragpilot.ingest.chunkers import Span
from ragpilot.ingest.documents import chunks_of, document_id
from ragpilot.ingest.filters import refused_by_content, refused_by_name
from ragpilot.ingest.kinds import HEAD, source_type
from ragpilot.ingest.long_rows import shortened
from ragpilot.ingest.manifest import Row
from ragpilot.ingest.read import RawFile, Refusal, read_file, text_of
from ragpilot.ingest.reasons import Reason
from ragpilot.ingest.secrets import redact
from ragpilot.ingest.secrets.file_names import is_secret_file
from ragpilot.ingest.walk import FileEntry
from ragpilot.lexical import document_vector
from ragpilot.types import Chunk, Document, IndexedChunk, LeftOut, SparseVector

RULES_VERSION = "14"
"""Changes when the same file would be refused, decoded, typed or redacted otherwise."""

_KEPT_LOG = 65_536
"""Logs that git tracks are indexed below this size: samples, and output that tests expect."""
_NOTEBOOK_FACTOR = 10
"""Notebooks may be this much larger than other files: most of one is output, which is left out."""
_BATCH_SECONDS, _BATCH_FILES, _BATCH_CHUNKS = 0.2, 64, 500


class ChunkFunction(Protocol):
    """What cuts a text: ``chunk_text_with_notes``."""

    def __call__(self, path: str, text: str, source_type: str, *, max_chars: int) -> tuple[list[Span], list[str]]:
        """The spans, and what a run should report of them."""
        ...


@dataclass(frozen=True, slots=True)
class Task:
    """A file to look at, and what is known of it."""

    entry: FileEntry
    readers: frozenset[str]
    commit: str | None
    known: Row | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What has become of a task.

    ``row`` None: it failed, ``failure`` says how, and what the store holds of it stays. ``chunks`` None: the store
    has nothing to learn from a row that says indexed. ``same``: the bytes are those that were indexed before.
    """

    task: Task
    row: Row | None
    chunks: tuple[IndexedChunk, ...] | None = None
    same: bool = False
    failure: LeftOut | None = None
    notes: tuple[str, ...] = ()
    """What the chunker has to say: why the text could not be read as what it is."""


class Preparer:
    """Prepares the files of one corpus."""

    def __init__(self, corpus: str, settings: IngestSettings, chunk_text: ChunkFunction, *, chunker: str) -> None:
        """``chunker``: what ``chunk_text`` is, as ``IndexIdentity`` names it."""
        self._corpus = corpus
        self._settings = settings
        self._chunk_text = chunk_text
        self.rules = f"{chunker}|{RULES_VERSION};{settings.max_file_bytes}"
        """What ``rules_for`` makes a row's ``rules`` of."""

    def batch(self, tasks: Iterator[Task]) -> list[Prepared]:
        """The next files, as many as take a moment; empty when there are none left."""
        deadline = time.monotonic() + _BATCH_SECONDS
        done: list[Prepared] = []
        chunks = 0
        for task in tasks:
            prepared = self.prepare(task)
            done.append(prepared)
            chunks += len(prepared.chunks or ())
            if len(done) == _BATCH_FILES or chunks >= _BATCH_CHUNKS or time.monotonic() > deadline:
                break
        return done

    def prepare(self, task: Task) -> Prepared:
        """Read and chunk one file. Raises nothing that the file could cause."""
        try:
            return self._prepare(task)
        except OSError as error:
            return _failed(task, Reason.UNREADABLE, error.strerror or type(error).__name__)
        # Chunkers meet whatever people keep in repositories: a file that breaks one must not end the run.
        except Exception as error:  # noqa: BLE001
            return _failed(task, Reason.CHUNKING_FAILED, type(error).__name__)

    def _prepare(self, task: Task) -> Prepared:
        entry = task.entry
        # Before it is opened: what is written meanwhile has a later time, and is read again by the next run.
        checked = time.time_ns()
        refusal = Refusal(Reason.SECRET_FILE) if is_secret_file(entry.path) else refused_by_name(entry.path)
        if refusal is not None and not _is_wanted(entry, refusal.reason):
            return self._refused(task, refusal, checked)
        raw = read_file(entry.file, inside=entry.root, max_bytes=size_limit(entry.path, self._settings))
        if isinstance(raw, Refusal):
            return self._refused(task, raw, checked)
        known = task.known
        same = known is not None and known.indexed and known.content_hash == raw.content_hash
        if known is not None and same and (known.rules, known.mtime_ns) == (rules_for(entry, self.rules), raw.mtime_ns):
            row = replace(known, size=raw.size, checked_ns=checked, readers=task.readers)
            return Prepared(task, row, same=True)
        return self._read(task, raw, checked, same=same)

    def _read(self, task: Task, raw: RawFile, checked: int, *, same: bool) -> Prepared:
        path = task.entry.path
        text = text_of(raw)
        if isinstance(text, Refusal):
            return self._refused(task, text, checked)
        if is_access_file(path, text):
            return self._refused(task, Refusal(Reason.ACCESS_FILE), checked)
        kind = source_type(path, text[:HEAD])
        refusal = refused_by_content(path, text, kind, asked_for=task.entry.asked_for)
        if refusal is not None:
            return self._refused(task, refusal, checked)
        text, redacted = redact(text)
        document = Document(
            id=document_id(self._corpus, path),
            corpus=self._corpus,
            path=path,
            text=shortened(text, kind),
            source_type=kind,
            content_hash=raw.content_hash,
            size=raw.size,
            mtime_ns=raw.mtime_ns,
            readers=task.readers,
            commit=task.commit,
        )
        chunks, notes = self._chunks(document)
        if not chunks:
            return self._refused(task, Refusal(Reason.EMPTY), checked)
        row = Row(
            path=path,
            document_id=document.id,
            mtime_ns=raw.mtime_ns,
            size=raw.size,
            checked_ns=checked,
            content_hash=raw.content_hash,
            chunks=len(chunks),
            readers=task.readers,
            commit=task.commit,
            redacted=redacted,
            source_type=kind,
            rules=rules_for(task.entry, self.rules),
        )
        return Prepared(task, row, chunks, same=same, notes=notes)

    def _chunks(self, document: Document) -> tuple[tuple[IndexedChunk, ...], tuple[str, ...]]:
        spans, notes = self._chunk_text(
            document.path, document.text, document.source_type, max_chars=self._settings.max_chunk_chars
        )
        chunks = chunks_of(document, spans, indexed_at=int(time.time()))
        return tuple(IndexedChunk(chunk, _lexical(chunk)) for chunk in chunks), tuple(notes)

    def _refused(self, task: Task, refusal: Refusal, checked: int) -> Prepared:
        entry = task.entry
        row = Row(
            path=entry.path,
            document_id=document_id(self._corpus, entry.path),
            mtime_ns=entry.mtime_ns,
            size=entry.size,
            checked_ns=checked,
            outcome=refusal.reason,
            detail=refusal.detail,
            rules=rules_for(entry, self.rules),
        )
        return Prepared(task, row)


def rules_for(entry: FileEntry, rules: str) -> str:
    """What a row's ``rules`` must be for its file to be passed over unread: who wants it leaves no trace in a stat."""
    return f"{rules};asked for" if entry.asked_for else f"{rules};tracked" if entry.kept_log else rules


def cut_by(rules: str) -> str:
    """The chunker in a row's ``rules``; empty: not known."""
    return rules.rpartition("|")[0]


def size_limit(path: str, settings: IngestSettings) -> int:
    """The most bytes that the file at ``path`` may have."""
    return settings.max_file_bytes * (_NOTEBOOK_FACTOR if path.endswith(".ipynb") else 1)


def _is_wanted(entry: FileEntry, against: Reason) -> bool:
    """Whether somebody wants the file whose name speaks against it."""
    if entry.asked_for:
        return against != Reason.SECRET_FILE
    return entry.kept_log and entry.size < _KEPT_LOG and against == Reason.DATA


def _lexical(chunk: Chunk) -> SparseVector:
    return document_vector(chunk.text, path=chunk.path, symbol=chunk.symbol, header=chunk.header)


def _failed(task: Task, reason: Reason, detail: str) -> Prepared:
    return Prepared(task, None, failure=LeftOut(task.entry.path, reason, detail))
