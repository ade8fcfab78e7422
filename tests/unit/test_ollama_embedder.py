from __future__ import annotations

import asyncio
import math
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest

from ragpilot.adapters.embedding_models import embedding_model
from ragpilot.adapters.minilm import MiniLmEmbedder
from ragpilot.adapters.ollama_embedder import OllamaEmbedder
from ragpilot.adapters.openai_embedder import OpenAiEmbedder
from ragpilot.errors import EmbedderError, EmbedderUnavailableError, RagPilotError, TextsNotEmbeddedError
from ragpilot.types import EmbedderIdentity, GateCalibration
from tests.protocol.http_server import Reply, Request
from tests.protocol.ollama_server import Model, OllamaServer, vector_of

pytestmark = pytest.mark.timeout(20)

NOMIC = {"nomic-embed-text": Model(capabilities=["embedding"], context_length=2048)}


def embedder_of(server: OllamaServer, model: str = "nomic-embed-text", **given: Any) -> OllamaEmbedder:
    return OllamaEmbedder(server.url, model, **{"pause": 0.0, **given})


@pytest.mark.asyncio
async def test_the_identity_comes_from_the_server_and_holds_prefixes_and_digest() -> None:
    async with OllamaServer(models=NOMIC) as server, aclosing(embedder_of(server)) as embedder:
        with pytest.raises(EmbedderUnavailableError, match="not known before"):
            _ = embedder.identity
        await embedder.prepare()
        assert embedder.identity == EmbedderIdentity(
            name="nomic-embed-text",
            dimensions=64,
            question_prefix="search_query: ",
            document_prefix="search_document: ",
            revision="ab" * 8,
            truncation=2048,
        )


@pytest.mark.asyncio
async def test_prefixes_keep_alive_and_window_go_out() -> None:
    async with OllamaServer(models=NOMIC) as server, aclosing(embedder_of(server, keep_alive="-1")) as embedder:
        [vector] = await embedder.embed_documents(["def run(): ..."])
        question = await embedder.embed_question("where?")
        bodies = server.sent_to("/api/embed")[1:]
    assert [body["input"] for body in bodies] == [["search_document: def run(): ..."], ["search_query: where?"]]
    assert all(body["keep_alive"] == -1 and body["options"] == {"num_ctx": 2048} for body in bodies)
    np.testing.assert_allclose(vector, vector_of("search_document: def run(): ..."), atol=1e-6)
    np.testing.assert_allclose(question, vector_of("search_query: where?"), atol=1e-6)


@pytest.mark.asyncio
async def test_many_texts_go_in_bounded_batches_and_come_back_in_order() -> None:
    texts = [f"text {index} " + "x" * (index * 37 % 900) for index in range(150)]
    async with OllamaServer(models=NOMIC) as server, aclosing(embedder_of(server)) as embedder:
        vectors = await embedder.embed_documents(texts)
        sizes = [len(body["input"]) for body in server.sent_to("/api/embed")[1:]]
    assert max(sizes) <= 32
    assert sum(sizes) == 150
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(vector, vector_of(f"search_document: {text}"), atol=1e-6)


@pytest.mark.asyncio
async def test_texts_that_are_too_long_are_shortened_and_the_rest_of_the_batch_is_kept() -> None:
    texts = ["short", "=" * 3000, "also short", "${{ x }} " * 200]
    async with OllamaServer(models=NOMIC) as server, aclosing(embedder_of(server)) as embedder:
        server.embedding.longest = 512
        vectors = await embedder.embed_documents(texts)
    np.testing.assert_allclose(vectors[0], vector_of("search_document: short"), atol=1e-6)
    np.testing.assert_allclose(vectors[2], vector_of("search_document: also short"), atol=1e-6)
    assert all(abs(float(np.linalg.norm(vector)) - 1) < 1e-5 for vector in vectors)


@pytest.mark.asyncio
async def test_a_text_that_makes_a_nan_is_found_and_the_others_are_kept() -> None:
    texts = [f"text {index}" for index in range(20)]
    texts[13] = "poison pill"
    async with OllamaServer(models=NOMIC) as server, aclosing(embedder_of(server)) as embedder:
        server.embedding.poison = "poison"
        with pytest.raises(TextsNotEmbeddedError, match=r"text 13: .*NaN") as caught:
            await embedder.embed_documents(texts)
        assert len(server.sent_to("/api/embed")) < 15
    assert [index for index, vector in enumerate(caught.value.vectors) if vector is None] == [13]
    np.testing.assert_allclose(caught.value.vectors[12], vector_of("search_document: text 12"), atol=1e-6)


@pytest.mark.asyncio
@pytest.mark.parametrize("bad", [None, [math.nan] * 64, [0.0] * 64, [None] * 64, [1e300] * 64, ["a"] * 64])
async def test_a_vector_that_is_none_is_refused_and_the_others_are_kept(bad: Any) -> None:
    async with OllamaServer(models=NOMIC) as server, aclosing(embedder_of(server)) as embedder:
        await embedder.prepare()
        server.embedding.answer = lambda vectors: [vectors[0], bad, *vectors[2:]]
        with pytest.raises(TextsNotEmbeddedError) as caught:
            await embedder.embed_documents(["a", "b", "c"])
    assert [vector is None for vector in caught.value.vectors] == [False, True, False]


@pytest.mark.asyncio
async def test_a_question_that_cannot_be_embedded_is_one_error() -> None:
    async with OllamaServer(models=NOMIC) as server, aclosing(embedder_of(server)) as embedder:
        await embedder.prepare()
        server.embedding.poison = "poison"
        with pytest.raises(EmbedderError, match="NaN"):
            await embedder.embed_question("poison")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda vectors: vectors[1:], "gave 2 vectors for 3 texts"),
        (lambda _: [], "gave 0 vectors for 3 texts"),
        (lambda vectors: [vector[:4] for vector in vectors], r"shape \(4,\)"),
        (lambda vectors: [[] for _ in vectors], r"shape \(0,\)"),
        (lambda _: "nothing", "without a list of embeddings"),
    ],
)
async def test_each_wrong_answer_is_its_own_error(answer: Any, words: str) -> None:
    async with OllamaServer(models=NOMIC) as server, aclosing(embedder_of(server)) as embedder:
        await embedder.prepare()
        server.embedding.answer = answer
        with pytest.raises(EmbedderError, match=words):
            await embedder.embed_documents(["a", "b", "c"])


@pytest.mark.asyncio
async def test_a_service_that_refuses_everything_is_not_asked_for_every_text() -> None:
    async with OllamaServer(models=NOMIC) as server, aclosing(embedder_of(server)) as embedder:
        await embedder.prepare()
        server.embedding.poison = ""
        with pytest.raises(EmbedderError, match=r"failed with nomic-embed-text \(500\)"):
            await embedder.embed_documents([f"text {index}" for index in range(32)])
        assert len(server.sent_to("/api/embed")) < 15


@pytest.mark.asyncio
async def test_a_busy_server_is_asked_again_and_a_lasting_failure_is_said() -> None:
    async with OllamaServer(models=NOMIC) as server, aclosing(embedder_of(server)) as embedder:
        await embedder.prepare()
        server.embedding.statuses = [(503, "server busy"), (502, "bad gateway")]
        assert len(await embedder.embed_documents(["a"])) == 1
        server.embedding.statuses = [(503, "server busy")] * 3
        with pytest.raises(EmbedderUnavailableError, match="busy"):
            await embedder.embed_documents(["a"])


@pytest.mark.asyncio
async def test_a_slow_server_is_named_slow_with_the_limit_and_its_setting_and_asked_once() -> None:
    async with OllamaServer(models=NOMIC) as server, aclosing(embedder_of(server)) as embedder:
        await embedder.prepare()
        before = len(server.requests)
        embedder._seconds = 0.1

        async def hang(request: Request, reply: Reply) -> None:
            await reply.gone()

        server.handle = hang  # type: ignore[method-assign]
        with pytest.raises(EmbedderUnavailableError, match=r"within 0.1 s \(embedder.timeout_seconds\)"):
            await embedder.embed_documents(["a"])
        assert len(server.requests) == before + 1
        await server.all_closed()


@pytest.mark.asyncio
async def test_no_server_and_a_missing_model_are_said(unused_tcp_port: int) -> None:
    async with aclosing(OllamaEmbedder(f":{unused_tcp_port}", "nomic-embed-text", pause=0.0)) as embedder:
        with pytest.raises(EmbedderUnavailableError, match="connection refused"):
            await embedder.embed_question("a")
        assert not (await embedder.check()).ok
    async with OllamaServer() as server, aclosing(embedder_of(server)) as embedder:
        with pytest.raises(EmbedderUnavailableError, match="ollama pull nomic-embed-text"):
            await embedder.embed_documents(["a"])


@pytest.mark.asyncio
async def test_a_language_model_is_refused_as_embedder() -> None:
    async with OllamaServer() as server, aclosing(embedder_of(server, "qwen")) as embedder:
        with pytest.raises(EmbedderError, match="cannot embed"):
            await embedder.prepare()


@pytest.mark.asyncio
async def test_a_model_that_was_replaced_meanwhile_is_noticed() -> None:
    async with OllamaServer(models=NOMIC) as server, aclosing(embedder_of(server)) as embedder:
        await embedder.prepare()
        server.models["nomic-embed-text:latest"] = Model(digest="sha256:" + "cd" * 32, capabilities=["embedding"])
        health = await embedder.check()
        assert not health.ok
        assert "rebuild" in health.detail


@pytest.mark.asyncio
async def test_texts_that_no_server_could_read_are_made_readable() -> None:
    async with OllamaServer(models={"all-minilm": Model(capabilities=["embedding"])}) as server:
        async with aclosing(embedder_of(server, "all-minilm")) as embedder:
            assert len(await embedder.embed_documents(["", " \n", "a\0b", "\ud83d half"])) == 4
        sent = [text for body in server.sent_to("/api/embed")[1:] for text in body["input"]]
    assert sorted(sent) == sorted([".", ".", "a b", "\ufffd half"])


@pytest.mark.asyncio
async def test_calls_at_once_prepare_once() -> None:
    async with OllamaServer(models=NOMIC) as server, aclosing(embedder_of(server)) as embedder:
        await asyncio.gather(*(embedder.embed_question(f"question {index}") for index in range(5)))
        assert len(server.sent_to("/api/tags")) == 1


@pytest.mark.parametrize(
    ("name", "question", "document"),
    [
        ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("text-embedding-nomic-embed-text-v1.5@q8_0", "search_query: ", "search_document: "),
        ("mxbai-embed-large", "Represent this sentence for searching relevant passages: ", ""),
        ("embeddinggemma:300m", "task: code retrieval | query: ", "title: none | text: "),
        ("intfloat/multilingual-e5-base", "query: ", "passage: "),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("snowflake-arctic-embed:33m", "Represent this sentence for searching relevant passages: ", ""),
        ("BAAI/bge-m3", "", ""),
        ("my-own-model", "", ""),
    ],
)
def test_prefixes_by_any_name_of_a_model(name: str, question: str, document: str) -> None:
    known = embedding_model(name)
    assert (known.question_prefix, known.document_prefix) == (question, document)


@pytest.mark.parametrize(
    ("name", "floor", "gate"),
    [
        ("all-minilm", 0.35, MiniLmEmbedder.gate),
        ("all-minilm:22m", 0.35, MiniLmEmbedder.gate),
        ("sentence-transformers/all-MiniLM-L6-v2", 0.35, MiniLmEmbedder.gate),
        ("all-minilm:33m", 0.35, None),
        ("all-MiniLM-L12-v2", 0.35, None),
        ("nomic-embed-text", 0.45, None),
        ("intfloat/multilingual-e5-base", 0.7, None),
        ("my-own-model", 0.35, None),
    ],
)
def test_bounds_by_any_name_of_a_model(name: str, floor: float, gate: GateCalibration | None) -> None:
    embedder = OllamaEmbedder(None, name)
    assert (embedder.default_floor, embedder.gate) == (floor, gate)
    own = GateCalibration(0.6, 0.1)
    configured = OpenAiEmbedder("http://h", name, floor=0.5, gate=own)
    assert (configured.default_floor, configured.gate) == (0.5, own)


def test_qwen_questions_carry_an_instruction() -> None:
    assert embedding_model("Qwen/Qwen3-Embedding-0.6B-GGUF").question_prefix.startswith("Instruct: ")


def test_every_error_of_a_call_is_ours() -> None:
    assert issubclass(TextsNotEmbeddedError, EmbedderError)
    assert issubclass(EmbedderError, RagPilotError)
