"""From pointing at a folder of 1,000 source files to the first answer, and to complete headers and bodies."""

from __future__ import annotations

import asyncio
import sysconfig
import tempfile
import time
from contextlib import aclosing
from pathlib import Path

from benchmarks.tables import Table
from ragpilot.adapters.extractive import ExtractiveModel
from ragpilot.bootstrap import build
from ragpilot.config import ChatSettings, CorpusSettings, Environment, Settings
from ragpilot.types import Actor, AskRequest, IngestProgress

FILES = 1000
QUESTION = "where are connections retried after a timeout?"
ACTOR = Actor("benchmark", frozenset({"team:everyone"}), frozenset({"ask", "ingest"}))


def run() -> list[Table]:
    """Copy 1,000 Python files of the installed packages, index them, and ask as soon as words are in."""
    with tempfile.TemporaryDirectory(prefix="ragpilot-bench-") as folder:
        return [asyncio.run(_measure(Path(folder)))]


async def _measure(folder: Path) -> Table:
    tree = folder / "tree"
    copied = await asyncio.to_thread(_copy, tree)
    settings = Settings(chat=ChatSettings(kind="extractive"), corpora=[CorpusSettings(roots=[str(tree)])])
    environment = Environment(settings=settings, state=folder / "state", directory=tree)
    table = Table(f"First answer over {copied:,} Python files (seconds since the run began)", ("what", "seconds"))
    async with build(environment, chat=ExtractiveModel()) as application:
        started = time.perf_counter()
        run = application.ingestion.run(ACTOR, settings.corpora[0])
        asked = False
        stage = ""
        async with aclosing(run) as events:
            async for event in events:
                if not isinstance(event, IngestProgress):
                    continue
                if event.stage != stage:
                    stage = event.stage
                    table.add(f"{stage} begins, {event.chunks:,} chunks", f"{time.perf_counter() - started:.1f}")
                if stage in ("headers", "bodies") and not asked:
                    asked = True
                    answer = await application.asker.query(ACTOR, AskRequest(QUESTION, "benchmark"))
                    table.add(f"first answer ({answer.done.outcome.value})", f"{time.perf_counter() - started:.1f}")
        table.add("headers and bodies complete", f"{time.perf_counter() - started:.1f}")
    return table


def _copy(tree: Path) -> int:
    packages = Path(sysconfig.get_paths()["purelib"])
    count = 0
    for file in sorted(packages.rglob("*.py")):
        if 500 < file.stat().st_size < 60_000 and "tests" not in file.parts:
            target = tree / file.relative_to(packages)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
            count += 1
            if count == FILES:
                break
    return count
