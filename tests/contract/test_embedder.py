"""What every Embedder must do. A further embedder joins by one line in EMBEDDERS."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import numpy as np
import pytest
import pytest_asyncio

from ragpilot.adapters.minilm import MiniLmEmbedder
from ragpilot.adapters.ollama_embedder import OllamaEmbedder
from ragpilot.adapters.openai_embedder import OpenAiEmbedder
from ragpilot.ports import Embedder
from ragpilot.types import Vector
from tests.fakes import FakeEmbedder
from tests.protocol.background import in_background
from tests.protocol.ollama_server import Model, OllamaServer
from tests.protocol.openai_server import OpenAiServer

OLLAMA = os.environ.get("RAGPILOT_TEST_OLLAMA_URL")
"""A real server, to run the suite over it as well; with RAGPILOT_TEST_OLLAMA_EMBEDDER, a model that it has."""
REAL_SECONDS = 600
"""For one test over a real model, which has to be loaded and may run on a busy processor."""


def _ollama_server() -> OllamaServer:
    return OllamaServer(models={"nomic-embed-text": Model(capabilities=["embedding"])})


EMBEDDERS: dict[str, Callable[[], Embedder]] = {
    "fake": FakeEmbedder,
    "minilm": MiniLmEmbedder,
    "ollama protocol": lambda: OllamaEmbedder(in_background(_ollama_server), "nomic-embed-text"),
    "openai protocol": lambda: OpenAiEmbedder(in_background(OpenAiServer), None),
}
if OLLAMA:
    _model = os.environ.get("RAGPILOT_TEST_OLLAMA_EMBEDDER", "nomic-embed-text")
    EMBEDDERS["ollama"] = lambda: OllamaEmbedder(OLLAMA, _model)

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(REAL_SECONDS)]

TEXTS = [
    "def truncate(text, tokens): return the longest prefix",
    "",
    "budget",
    "class Embedder:\n    " + "name = 1\n    " * 400,
    "   \n\t ",
    "Où est passée la tarte aux pommes ? 字 😀",
    "NUL \x00 and half a pair \ud83d here",
    "[CLS] [PAD] <|endoftext|>",
    "budget",
]


@dataclass(frozen=True)
class Case:
    make: Callable[[], Embedder]
    embedder: Embedder


@pytest_asyncio.fixture(params=EMBEDDERS)
async def case(request: pytest.FixtureRequest) -> AsyncIterator[Case]:
    make = EMBEDDERS[request.param]
    embedder = await prepared(make())
    async with asyncio.timeout(REAL_SECONDS if request.param == "ollama" else 60):
        yield Case(make, embedder)
    await embedder.aclose()


async def prepared(embedder: Embedder) -> Embedder:
    """One behind a service knows its identity only once that was reached."""
    if isinstance(embedder, OllamaEmbedder | OpenAiEmbedder):
        await embedder.prepare()
    return embedder


def proper(vector: Vector, embedder: Embedder) -> bool:
    unit = abs(float(np.linalg.norm(vector)) - 1.0) < 1e-5
    return vector.shape == (embedder.identity.dimensions,) and vector.dtype == np.float32 and unit


async def test_every_text_has_a_unit_vector_of_the_declared_dimension(case: Case) -> None:
    vectors = await case.embedder.embed_documents(TEXTS)
    assert len(vectors) == len(TEXTS)
    assert all(proper(vector, case.embedder) for vector in vectors)


async def test_no_texts_have_no_vectors(case: Case) -> None:
    assert await case.embedder.embed_documents([]) == []


@pytest.mark.parametrize("question", ["where is the budget enforced?", "", " \n", "\x00\ud83d", "word " * 20_000])
async def test_every_question_has_a_vector(case: Case, question: str) -> None:
    assert proper(await case.embedder.embed_question(question), case.embedder)


async def test_vectors_come_in_the_order_of_the_texts(case: Case) -> None:
    texts = [f"{'word ' * (index * 7 % 11)} number {index}" for index in range(20)]
    together = await case.embedder.embed_documents(texts)
    turned = await case.embedder.embed_documents(texts[::-1])
    np.testing.assert_allclose(together, turned[::-1], atol=1e-3)


async def test_a_vector_does_not_depend_on_the_texts_beside_it(case: Case) -> None:
    together = await case.embedder.embed_documents(TEXTS)
    alone = [(await case.embedder.embed_documents([text]))[0] for text in TEXTS]
    np.testing.assert_allclose(together, alone, atol=1e-3)


async def test_the_nearest_text_is_about_the_same_thing(case: Case) -> None:
    question = await case.embedder.embed_question("where is the token budget enforced")
    vectors = await case.embedder.embed_documents(["the token budget is enforced here", "a recipe for apple pie"])
    assert np.dot(question, vectors[0]) > np.dot(question, vectors[1]) + 0.2


async def test_the_identity_is_stable_and_complete(case: Case) -> None:
    identity = case.embedder.identity
    assert identity.name
    other = await prepared(case.make())
    assert identity == other.identity
    await other.aclose()
    await case.embedder.embed_question("a question")
    assert case.embedder.identity == identity


async def test_floor_and_gate_are_cosines_and_the_counter_counts(case: Case) -> None:
    assert 0.0 < case.embedder.default_floor < 1.0
    gate = case.embedder.gate
    assert gate is None or (case.embedder.default_floor < gate.threshold < 1.0 and gate.reference_chunks > 0)
    assert case.embedder.counter.count("some words") > 0


async def test_a_check_reports_and_never_raises(case: Case) -> None:
    health = await case.embedder.check()
    assert health.ok
    assert health.detail
    await case.embedder.aclose()
    await case.embedder.check()


async def test_closing_twice_is_harmless(case: Case) -> None:
    await case.embedder.embed_question("a question")
    await case.embedder.aclose()
    await case.embedder.aclose()


async def test_calls_at_once_do_not_mix_up_their_results(case: Case) -> None:
    lots = [[f"text {call} {index}" for index in range(12)] for call in range(3)]
    found = await asyncio.gather(*(case.embedder.embed_documents(texts) for texts in lots))
    for texts, vectors in zip(lots, found, strict=True):
        np.testing.assert_allclose(vectors, await case.embedder.embed_documents(texts), atol=1e-3)
