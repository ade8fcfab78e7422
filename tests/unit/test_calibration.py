from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from ragpilot import calibrations
from ragpilot.adapters.minilm import MiniLmEmbedder
from ragpilot.bootstrap import Application, build
from ragpilot.bootstrap.embedders import EMBEDDERS
from ragpilot.cli import run
from ragpilot.cli_calibrate import run_calibrate
from ragpilot.config import CorpusSettings, Environment, RetrievalSettings, Settings
from ragpilot.errors import EmbedderError
from ragpilot.evaluation.calibration import calibrate, tells_apart
from ragpilot.evaluation.calibration_data import Material, load_material
from ragpilot.types import Calibration, EmbedderIdentity, GateCalibration, Vector
from tests.fakes import OPERATOR, FakeEmbedder, MemoryStore, ScriptedChatModel, broken_embedder

NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
CORE = Path(__file__).parents[2] / "ragpilot"
FOREIGN = (
    "What is the capital of Portugal?",
    "How do I roast a duck with oranges?",
    "Which muscles does swimming train?",
    "grumble fizz wonk tabloid",
    "Who invented the telescope?",
    "How do glaciers move?",
)
OWN = (
    "where is the best cosine of a question compared with the gate?",
    "how are near-duplicates collapsed?",
    "which function normalises discounted cumulative gain?",
)


class Remembering:
    """The embedded model, asked for each text once in all of these tests."""

    def __init__(self) -> None:
        self.model = MiniLmEmbedder()
        self._known: dict[str, Vector] = {}

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        missing = list(dict.fromkeys(text for text in texts if text not in self._known))
        self._known.update(zip(missing, await self.model.embed_documents(missing), strict=True))
        return [self._known[text] for text in texts]


@pytest.fixture(scope="module")
def minilm() -> Iterator[Remembering]:
    remembering = Remembering()
    yield remembering
    asyncio.run(remembering.model.aclose())


class Murmuring(FakeEmbedder):
    """The embedded model over a murmur that all texts share: a cosine of 0 there is one of ``level`` here."""

    def __init__(self, minilm: Remembering, level: float = 0.5, *, name: str = "murmuring") -> None:
        super().__init__(385, name=name)
        self._minilm = minilm
        self._level = level

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        heard = np.float32(np.sqrt(1 - self._level))
        murmur = np.array([np.sqrt(self._level)], dtype=np.float32)
        return [np.concatenate([heard * vector, murmur]) for vector in await self._minilm.embed(texts)]

    async def embed_question(self, text: str) -> Vector:
        return (await self.embed_documents([text]))[0]


def environment(tmp_path: Path) -> Environment:
    """The settings of a corpus of some of RagPilot's own modules."""
    root = tmp_path / "code"
    root.mkdir()
    for name in ("refusal.py", "ranking.py", "citations.py", "evaluation/metrics.py", "files.py", "logs.py"):
        shutil.copy(CORE / name, root)
    settings = Settings(corpora=[CorpusSettings(roots=[str(root)])])
    return Environment(settings=settings, state=tmp_path / "home" / "state", home=tmp_path / "home")


@asynccontextmanager
async def opened(given: Environment, store: MemoryStore, embedder: FakeEmbedder) -> AsyncIterator[Application]:
    async with build(given, store=store, embedder=embedder, chat=ScriptedChatModel()) as application:
        yield application


async def refused(application: Application, questions: tuple[str, ...]) -> list[bool]:
    search = application.searcher.search
    return [not (await search(OPERATOR, question))["hits"] for question in questions]


# --- the material


def test_the_material_is_large_enough_and_says_nothing_twice() -> None:
    material = load_material()
    assert len(material.answerable) >= 150
    assert len(material.background) >= 80
    questions = [question.casefold() for question in (*material.answerable, *material.background)]
    assert len(set(questions)) == len(questions)
    assert len({chunk.id for chunk in material.chunks}) == len(material.chunks) >= len(material.answerable)
    assert len({chunk.source_type for chunk in material.chunks}) > 15
    assert max(len(chunk.text) for chunk in material.chunks) <= 1000


# --- the fit


@pytest.mark.asyncio
async def test_the_embedded_model_comes_out_as_it_was_calibrated_on_repositories(minilm: Remembering) -> None:
    found = await calibrate(Murmuring(minilm, 0.0), load_material(), now=NOW)
    known = minilm.model.gate
    assert known is not None
    assert found.floor == pytest.approx(minilm.model.default_floor, abs=0.03)
    assert found.gate.threshold == pytest.approx(known.threshold, abs=0.03)
    assert found.gate.per_decade == pytest.approx(known.per_decade, abs=0.015)
    assert found.gate.reference_chunks == known.reference_chunks
    assert (found.gate.word_weight, found.gate.foreign_name) == (known.word_weight, known.foreign_name)
    assert found.background_refused >= 0.98
    assert found.answerable_refused <= 0.03


@pytest.mark.asyncio
async def test_bounds_lie_over_the_background_wherever_that_is(minilm: Remembering) -> None:
    found = await calibrate(Murmuring(minilm, 0.7), load_material(), now=NOW)
    assert 0.7 < found.floor < found.gate.threshold < 1.2
    assert found.gate.per_decade > 0
    assert tells_apart(found)
    # Cosines that are squeezed into a third of the room leave words as much room as before, and no more.
    assert found.gate.word_weight == pytest.approx(0.03, abs=0.005)
    assert (found.embedder.name, found.made_at) == ("murmuring", NOW)


@pytest.mark.asyncio
async def test_a_model_that_puts_all_texts_in_one_place_does_not_pass() -> None:
    class Blind(FakeEmbedder):
        def vector(self, text: str) -> Vector:
            return super().vector("always the same")

    found = await calibrate(Blind(), load_material(), now=NOW)
    assert not tells_apart(found)
    assert found.floor <= 1.0


@pytest.mark.asyncio
async def test_few_texts_give_no_growth_and_no_crash(minilm: Remembering) -> None:
    whole = load_material()
    few = Material(whole.chunks[:1], whole.answerable[:1], whole.background[:5])
    assert (await calibrate(Murmuring(minilm), few, now=NOW)).gate.per_decade == 0.0


@pytest.mark.asyncio
async def test_an_embedder_that_fails_is_no_calibration() -> None:
    with pytest.raises(EmbedderError):
        await calibrate(broken_embedder(), load_material(), now=NOW)


# --- in force


@pytest.mark.asyncio
async def test_after_calibration_unrelated_questions_are_refused_and_others_are_not(
    tmp_path: Path, minilm: Remembering
) -> None:
    given, store = environment(tmp_path), MemoryStore()
    async with opened(given, store, Murmuring(minilm)) as application:
        async for _ in application.ingestion.run(OPERATOR, given.settings.corpora[0]):
            pass
        # A background of 0.5 is over the usual floor: nothing at all would be refused.
        assert not any(await refused(application, FOREIGN))
        before = (await application.status.stats(OPERATOR)).bounds
        assert before.gate is None
        assert "murmuring is not calibrated" in before.gate_origin
    assert await run_calibrate(given, as_json=False, embedder=Murmuring(minilm)) == 0
    async with opened(given, store, Murmuring(minilm)) as application:
        assert all(await refused(application, FOREIGN))
        assert not any(await refused(application, OWN))
        today = f"calibrated {datetime.now(UTC):%Y-%m-%d}"
        stats = await application.status.stats(OPERATOR)
        assert stats.bounds.floor > 0.5
        assert stats.bounds.floor_origin == today
        assert stats.bounds.gate_origin == f"{today}, {stats.point_count} readable chunks"
        shown = await application.searcher.search(OPERATOR, OWN[0])
        assert (shown["floorOrigin"], shown["gate"]) == (today, stats.bounds.gate)
    # Another model finds nothing that was fitted for it.
    async with opened(given, MemoryStore(), Murmuring(minilm, name="other")) as application:
        assert application.retriever.bounds(100).floor_origin == "embedder other"


@pytest.mark.asyncio
async def test_an_embedder_with_a_gate_of_its_own_keeps_it(
    tmp_path: Path, minilm: Remembering, capsys: pytest.CaptureFixture[str]
) -> None:
    given = environment(tmp_path)
    known = Murmuring(minilm)
    known.gate = GateCalibration(threshold=0.9, per_decade=0.01)
    assert await run_calibrate(given, as_json=True, embedder=known) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kept"] is None
    assert (found["embedder"]["name"], found["gate"]["referenceChunks"]) == ("murmuring", 2000)
    assert found["backgroundRefused"] >= 0.98
    assert not (tmp_path / "home").exists()
    calibrations.keep(tmp_path / "home", calibration_of(known.identity))
    async with opened(given, MemoryStore(), known) as application:
        assert application.retriever.bounds(2000).gate == 0.9


@pytest.mark.asyncio
async def test_what_is_configured_comes_before_what_was_calibrated(tmp_path: Path, minilm: Remembering) -> None:
    given, embedder = environment(tmp_path), Murmuring(minilm)
    calibrations.keep(tmp_path / "home", calibration_of(embedder.identity))
    settings = given.settings.model_copy(update={"retrieval": RetrievalSettings(min_score=0.2, gate=1.1)})
    async with opened(given.model_copy(update={"settings": settings}), MemoryStore(), embedder) as application:
        bounds = application.retriever.bounds(2000)
    assert (bounds.floor, bounds.floor_origin) == (0.2, "retrieval.min_score")
    assert (bounds.gate, bounds.gate_origin) == (1.1, "retrieval.gate")


# --- kept


def calibration_of(identity: EmbedderIdentity) -> Calibration:
    return Calibration(identity, 0.55, GateCalibration(0.7, 0.02), NOW, 0.99, 0.01)


NOMIC = EmbedderIdentity("nomic/embed:v1", 768, "search_query: ", "search_document: ", "abc", 2048)


def test_what_was_fitted_is_found_again_by_the_whole_identity(tmp_path: Path) -> None:
    assert calibrations.recall(tmp_path, NOMIC) is None
    file = calibrations.keep(tmp_path, calibration_of(NOMIC))
    assert file.stat().st_mode & 0o777 == 0o600
    assert calibrations.recall(tmp_path, NOMIC) == calibration_of(NOMIC)
    for other in (replace(NOMIC, revision="abd"), replace(NOMIC, question_prefix=""), replace(NOMIC, truncation=512)):
        assert calibrations.recall(tmp_path, other) is None


def test_another_revision_of_a_model_takes_the_place_of_the_former(tmp_path: Path) -> None:
    calibrations.keep(tmp_path, calibration_of(NOMIC))
    alike = replace(NOMIC, name="nomic:embed/v1")
    calibrations.keep(tmp_path, calibration_of(alike))
    newer = replace(NOMIC, revision="def")
    calibrations.keep(tmp_path, calibration_of(newer))
    assert calibrations.recall(tmp_path, NOMIC) is None
    assert calibrations.recall(tmp_path, newer) is not None
    assert calibrations.recall(tmp_path, alike) is not None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"embedder": {"name": "x"}}', b"\xff"])
def test_a_damaged_file_is_none(tmp_path: Path, content: bytes) -> None:
    file = calibrations.keep(tmp_path, calibration_of(NOMIC))
    file.write_bytes(content)
    assert calibrations.recall(tmp_path, NOMIC) is None
    calibrations.keep(tmp_path, calibration_of(replace(NOMIC, revision="def")))


def test_a_file_that_others_can_read_is_not_believed(tmp_path: Path) -> None:
    calibrations.keep(tmp_path, calibration_of(NOMIC)).chmod(0o644)
    assert calibrations.recall(tmp_path, NOMIC) is None


# --- the command


def test_the_command(
    tmp_path: Path,
    minilm: Remembering,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    own_environment: Path,
) -> None:
    made: list[Murmuring] = []

    async def configured(_: Environment) -> Murmuring:
        made.append(Murmuring(minilm))
        return made[-1]

    monkeypatch.setitem(EMBEDDERS, "minilm", configured)
    assert run(["-C", str(tmp_path), "calibrate"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("Embedding 6")
    head, floor, gate, refuses, kept = printed.out.splitlines()
    assert head == "murmuring, 385 dimensions"
    assert floor.startswith("  floor 0.")
    assert " at 2,000 chunks, 0." in gate
    assert refuses.startswith(("  refuses 9", "  refuses 100"))
    assert kept.startswith(f"Kept in {own_environment / 'ragpilot' / 'calibrations' / 'murmuring-'}")
    assert made[0].closed
