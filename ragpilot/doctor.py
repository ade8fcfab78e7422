"""The diagnosis behind ``ragpilot doctor``: configuration, services, parts, indexes, and what to put into config.toml.

It looks and writes nothing. What it would change stands in the findings; whether that is written, the user decides.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ragpilot.config import CorpusSettings, Environment
from ragpilot.disk import NEEDED, free_bytes, in_words
from ragpilot.errors import IndexMismatchError, RagPilotError, StoreInUseError
from ragpilot.identity_words import CUT_ANEW, misfit, only_cut_otherwise
from ragpilot.ports import ChatModel, ChunkStore, Embedder
from ragpilot.settings_loader import passed_over
from ragpilot.types import Actor, Finding, Health, IndexIdentity

_NOBODY = Actor("doctor", frozenset(), frozenset())
MARKS = {"ok": "ok  ", "note": "note", "bad": "BAD "}


def examine_configuration(environment: Environment) -> list[Finding]:
    """Which files are in force, and whether the state folder can be used."""
    files = ", ".join(environment.files)
    told = f"In force: {files}." if files else "No config.toml is in force; everything is a default."
    findings = [Finding("configuration", "ok", told)]
    findings += [Finding("configuration", "note", note) for note in environment.notes]
    if not environment.config and (unread := passed_over(environment.directory)):
        advice = "If it is meant for RagPilot, begin it with that line. Other programs have files of that name too."
        findings.append(Finding("configuration", "note", unread, advice))
    return [*findings, _state_folder(environment.state), *_missing_roots(environment.settings.corpora)]


def _missing_roots(corpora: Iterable[CorpusSettings]) -> list[Finding]:
    advice = "Where its files are to be indexed from here, correct `roots` or create it."
    return [
        Finding(f"corpus {corpus.name}", "note", f"Its root {root} is not on this machine.", advice)
        for corpus in corpora
        for root in corpus.roots
        if not os.path.lexists(root)
    ]


def _state_folder(folder: Path) -> Finding:
    existing = next((parent for parent in (folder, *folder.parents) if parent.exists()), folder)
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Finding(
            "configuration",
            "bad",
            f"The state folder {folder} cannot be written.",
            "Make it writable, or name another place in RAGPILOT_HOME.",
        )
    left = free_bytes(existing)
    told = f"State folder: {folder}; {in_words(left)} are free on its disk."
    if left is not None and left < NEEDED:
        advice = (
            f"Nothing is indexed with less than {in_words(NEEDED)}: make room, or name another place in RAGPILOT_HOME."
        )
        return Finding("configuration", "note", told, advice)
    return Finding("configuration", "ok", told)


async def examine_parts(
    store: ChunkStore, embedder: Embedder, chat: ChatModel, identity: IndexIdentity, corpora: Iterable[str]
) -> list[Finding]:
    """Whether store, embedder and model answer, and whether each corpus's index matches the embedder.

    Args:
        store: The parts, as they are composed.
        embedder: Likewise.
        chat: Likewise.
        identity: What an index would be built with now.
        corpora: Names of the configured corpora.
    """
    health = {"store": await store.check(), "embedder": await embedder.check(), "model": await chat.check()}
    findings = from_health(health)
    if health["store"].ok:
        findings += [await _corpus(store, name, identity) for name in corpora]
    return findings


async def _corpus(store: ChunkStore, name: str, identity: IndexIdentity) -> Finding:
    part = f"corpus {name}"
    try:
        info = await store.describe(name)
        if info is None:
            return Finding(part, "note", "Nothing is indexed yet.", "Index it: ragpilot index")
        await store.count(_NOBODY, name)  # opens it, which shows whether it is whole
    except RagPilotError as error:
        return from_error(error, part)
    if info.identity != identity:
        advice = "Build it anew: ragpilot index --rebuild. Or configure what it was built with."
        if only_cut_otherwise(info.identity, identity):
            advice = CUT_ANEW
        return Finding(part, "bad", f"The index {misfit(info.identity, identity)}.", advice)
    ended = info.last_ingestion
    when = f"last run {ended:%Y-%m-%d %H:%M} UTC" if ended else "its first run has not ended"
    return Finding(part, "ok", f"The index matches the embedder; {when}.")


def from_health(health: Mapping[str, Health]) -> list[Finding]:
    """Findings of a health report: one's own, or that of a running server."""
    return [Finding(part, "ok" if found.ok else "bad", found.detail) for part, found in health.items()]


def from_error(error: RagPilotError, part: str = "configuration") -> Finding:
    """What kept a part from being opened. A store that another process holds is no fault."""
    if isinstance(error, StoreInUseError):
        return Finding("store", "note", error.message, error.hint)
    if isinstance(error, IndexMismatchError):
        return Finding(part, "bad", error.message, error.hint or "Build it anew: ragpilot index --rebuild")
    return Finding(part, "bad", error.message, error.hint)


def is_well(findings: Iterable[Finding]) -> bool:
    """Whether nothing is bad."""
    return all(finding.state != "bad" for finding in findings)


def proposed(findings: Iterable[Finding]) -> dict[str, str | int | bool]:
    """The settings that the findings advise; of several pieces of advice for one key, the first."""
    settings: dict[str, str | int | bool] = {}
    for finding in findings:
        if not settings.keys() & finding.settings.keys():
            settings.update(finding.settings)
    return settings


def render(findings: Sequence[Finding]) -> list[str]:
    """The findings as lines for a terminal, in their order, each with its advice below it."""
    width = max((len(finding.part) for finding in findings), default=0)
    lines = []
    for finding in findings:
        lines.append(f"{MARKS[finding.state]}  {finding.part:<{width}}  {finding.text}")
        if finding.advice:
            lines.append(f"{'':4}  {'':<{width}}  -> {finding.advice}")
    return lines
