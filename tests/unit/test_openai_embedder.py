from __future__ import annotations

from contextlib import aclosing
from typing import Any

import numpy as np
import pytest

from ragpilot.adapters.openai_embedder import OpenAiEmbedder
from ragpilot.errors import EmbedderError, EmbedderUnavailableError, TextsNotEmbeddedError
from ragpilot.types import EmbedderIdentity
from tests.protocol.ollama_server import vector_of
from tests.protocol.openai_server import OpenAiServer

pytestmark = pytest.mark.timeout(20)

MODEL = "nomic-ai/nomic-embed-text-v1.5"


def embedder_of(server: OpenAiServer, model: str | None = MODEL, **given: Any) -> OpenAiEmbedder:
    return OpenAiEmbedder(server.url, model, **{"pause": 0.0, **given})


@pytest.mark.asyncio
async def test_vectors_come_in_the_order_of_the_texts_with_the_models_prefixes() -> None:
    texts = [f"text {index}" for index in range(70)]
    async with OpenAiServer() as server, aclosing(embedder_of(server)) as embedder:
        vectors = await embedder.embed_documents(texts)
        question = await embedder.embed_question("where?")
        assert max(len(body["input"]) for body in server.sent_to("/v1/embeddings")) <= 32
        assert embedder.identity == EmbedderIdentity(MODEL, 64, "search_query: ", "search_document: ", "", 2048)
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(vector, vector_of(f"search_document: {text}"), atol=1e-6)
    np.testing.assert_allclose(question, vector_of("search_query: where?"), atol=1e-6)


@pytest.mark.asyncio
async def test_long_texts_are_shortened_and_a_poisoned_one_is_found() -> None:
    async with OpenAiServer() as server, aclosing(embedder_of(server)) as embedder:
        server.embedding.longest = 500
        assert len(await embedder.embed_documents(["short", "=" * 3000])) == 2
        server.embedding.poison = "poison"
        with pytest.raises(TextsNotEmbeddedError) as caught:
            await embedder.embed_documents(["a", "b", "poison", "c", "d"])
    assert [vector is None for vector in caught.value.vectors] == [False, False, True, False, False]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda vectors: vectors[1:], "gave 2 vectors for 3 texts"),
        (lambda vectors: [vector * 2 for vector in vectors], r"shape \(128,\)"),
    ],
)
async def test_each_wrong_answer_is_its_own_error(answer: Any, words: str) -> None:
    async with OpenAiServer() as server, aclosing(embedder_of(server)) as embedder:
        await embedder.prepare()
        server.embedding.answer = answer
        with pytest.raises(EmbedderError, match=words):
            await embedder.embed_documents(["a", "b", "c"])


@pytest.mark.asyncio
async def test_keys_missing_models_and_absent_servers_are_said(unused_tcp_port: int) -> None:
    async with OpenAiServer() as server:
        server.key = "right"
        async with aclosing(embedder_of(server, api_key="wr0ng")) as embedder:
            health = await embedder.check()
        assert not health.ok
        assert "embedder.api_key_env" in health.detail
        assert "wr0ng" not in health.detail
        async with aclosing(embedder_of(server, api_key="right")) as embedder:
            assert (await embedder.check()).ok
    async with OpenAiServer() as server, aclosing(embedder_of(server, None)) as embedder:
        server.models = []
        with pytest.raises(EmbedderUnavailableError, match="has these models: none"):
            await embedder.prepare()
    async with aclosing(OpenAiEmbedder(f"http://127.0.0.1:{unused_tcp_port}", MODEL, pause=0.0)) as embedder:
        with pytest.raises(EmbedderUnavailableError, match="connection refused"):
            await embedder.embed_question("a")
