"""`ragpilot eval`: a question set over one folder or many, through the product as it is; and drafts of such sets."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ragpilot import cli_output as out
from ragpilot.bootstrap import build
from ragpilot.cli_progress import reporter
from ragpilot.config import EVERYONE, CorpusSettings, Environment, RetrievalSettings
from ragpilot.counted import counted
from ragpilot.errors import IndexMismatchError, RootError
from ragpilot.evaluation.benchmark import EVALUATION_K, Result, Search, asked_once, compare, run_questions, summarise
from ragpilot.evaluation.drafts import draft
from ragpilot.evaluation.questions import Question, QuestionSetError, load_questions
from ragpilot.evaluation.report import comparison_table, summary_table
from ragpilot.evaluation.trees import by_tree, left_out, unknown_labels
from ragpilot.exit_codes import DONE, FAILED
from ragpilot.files import private_folder
from ragpilot.found import Retrieval
from ragpilot.ingest.chunkers import chunk_text
from ragpilot.ingest.kinds import HEAD, source_type
from ragpilot.ingest.pipeline import IngestService
from ragpilot.ports import Embedder
from ragpilot.retrieval import Retriever
from ragpilot.runtime import OwnerLock
from ragpilot.types import Actor, IngestProgress, IngestScope

EVALUATOR: Final = Actor("evaluation", frozenset({EVERYONE}), frozenset({"ask", "ingest"}))
DRAFTED_CHUNKS: Final = 100_000

HOW_TO_GO_ON: Final = """Edit each query to what people would ask, in their own words.
No line is unanswerable yet. To measure refusal, add what these files do not answer, one a line and without "relevant":
  {"query": "how do I renew my passport", "kind": "general"}"""
NOTHING_TO_ASK: Final = (
    "of its {}, none is a symbol with a doc comment or has a heading of enough words.\n"
    "Tests, configuration, licences and change logs are passed over."
)


async def run_eval(
    environment: Environment,
    questions: Path,
    root: Path,
    *,
    as_json: bool = False,
    bodies: bool = True,
    earlier: Path | None = None,
    embedder: Embedder | None = None,
) -> int:
    """Index every tree that the set is about (again only what changed), ask every question, print the figures."""
    _check_folder(root)
    before = _earlier(earlier) if earlier else None
    results: list[Result] = []
    loaded = load_questions(questions)
    grouped = by_tree(loaded, root)
    for text in left_out(loaded, grouped, root):
        out.note(text)
    for tree, asked in grouped.items():
        own = _environment_of(environment, tree)
        with OwnerLock(own.state, "index"):
            async with build(own, embedder=embedder) as application:
                await _index(application.ingestion, own.settings.corpora[0], tree, bodies=bodies)
                for text in await asyncio.to_thread(_unknown, asked, application.ingestion):
                    out.note(text)
                ranker = Retriever(
                    application.store,
                    application.embedder,
                    RetrievalSettings(gate="off", min_score=-1.0),
                    identity=application.ingestion.identity,
                )
                name = _name(tree, root)
                results += await run_questions(asked, name, _search(application.retriever), _search(ranker))
    summary, rows = summarise(results), [asdict(result) for result in results]
    found: dict[str, Any] = {"summary": summary, "questions": rows}
    if before is not None:
        found |= {"changes": compare(before, rows), "notCompared": asked_once(before, rows)}
    if as_json:
        out.as_json(found)
        return DONE
    out.line(summary_table(summary))
    if before is not None:
        out.line(comparison_table(found["changes"], once=found["notCompared"]))
    return DONE


async def run_make(environment: Environment, root: Path, *, embedder: Embedder | None = None) -> int:
    """Print a question set drafted from the folder ``root``, a line a question. Gives 1 where there is nothing to ask.

    Words are all that a draft needs, so nothing is embedded.
    """
    _check_folder(root)
    # A state of its own: what lacks a body vector is everything there, whatever runs of questions have embedded.
    own = _environment_of(environment, root, purpose="draft")
    with OwnerLock(own.state, "index"):
        async with build(own, embedder=embedder) as application:
            await _index(application.ingestion, own.settings.corpora[0], root, headers=False, bodies=False)
            scope = IngestScope(EVALUATOR, "default")
            chunks = await application.store.without_vector(scope, "body", limit=DRAFTED_CHUNKS)
    rows = draft(chunks)
    for row in rows:
        out.line(json.dumps(row, ensure_ascii=False))
    if rows:
        out.note(HOW_TO_GO_ON)
        return DONE
    out.note(f"No question could be drafted from {root}: {NOTHING_TO_ASK.format(counted(len(chunks), 'chunk'))}")
    return FAILED


def _unknown(asked: list[Question], ingestion: IngestService) -> list[str]:
    def symbols(path: str, text: str) -> set[str]:
        spans = chunk_text(path, text, source_type(path, text[:HEAD]))
        return {span.symbol for span in spans if span.symbol}

    return unknown_labels(asked, lambda path: ingestion.read_text("default", path), symbols)


def _search(retriever: Retriever) -> Search:
    async def search(question: str) -> Retrieval:
        return await retriever.search(EVALUATOR, question, corpus="default", top_k=EVALUATION_K)

    return search


async def _index(
    ingestion: IngestService, corpus: CorpusSettings, tree: Path, *, headers: bool = True, bodies: bool
) -> None:
    """Bring the tree's own index up to date; one that was built otherwise is of no use to anybody and is replaced."""
    out.note(f"Indexing {tree} …")
    try:
        await _run(ingestion, corpus, headers=headers, bodies=bodies, rebuild=False)
    except IndexMismatchError:
        await _run(ingestion, corpus, headers=headers, bodies=bodies, rebuild=True)


async def _run(ingestion: IngestService, corpus: CorpusSettings, *, headers: bool, bodies: bool, rebuild: bool) -> None:
    run = ingestion.run(EVALUATOR, corpus, headers=headers, bodies=bodies, rebuild=rebuild)
    with reporter(quiet=False) as progress:
        async with aclosing(run) as events:
            async for event in events:
                if isinstance(event, IngestProgress):
                    progress.show(event)


def _environment_of(environment: Environment, tree: Path, *, purpose: str = "eval") -> Environment:
    """The settings in force over one tree, with a state folder of its own, so that a second run is quick."""
    folder = tree.resolve()
    digest = hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:10]
    state = environment.state / purpose / f"{folder.name}-{digest}"
    private_folder(state)
    corpus = CorpusSettings(name="default", roots=[str(folder)])
    settings = environment.settings.model_copy(update={"corpora": [corpus], "actors": []})
    return environment.model_copy(update={"settings": settings, "state": state})


def _check_folder(root: Path) -> None:
    if not root.is_dir():
        raise RootError(f"{root} is no folder.", hint="Give the folder of the trees with --root.")


def _name(tree: Path, root: Path) -> str:
    """What results are filed under: the same however the root is written, so that two runs can be compared."""
    folder = Path(os.path.abspath(root))  # noqa: PTH100 - links stay as they are
    return str(Path(folder.name) / tree.relative_to(root))


_ROW: Final = {"tree": str, "query": str, "file": dict, "shown": int | float, "refused": bool, "relevant_source": bool,
               "top": list}  # fmt: skip


def _earlier(file: Path) -> list[dict[str, Any]]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        rows: list[dict[str, Any]] = data["questions"]
        if not all(isinstance(row[key], kind) for row in rows for key, kind in _ROW.items()):
            raise TypeError
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise QuestionSetError(
            f"{file} is no earlier run: {type(error).__name__}.", hint="Give what `ragpilot eval --json` printed."
        ) from error
    return rows
