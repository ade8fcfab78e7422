from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest

from ragpilot.adapters.ollama_embedder import OllamaEmbedder
from ragpilot.adapters.openai_embedder import OpenAiEmbedder
from ragpilot.adapters.remembered import prepare_remembered, recall
from ragpilot.errors import EmbedderError, EmbedderUnavailableError
from tests.protocol.ollama_server import Model, OllamaServer
from tests.protocol.openai_server import OpenAiServer

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(20)]

SOURCE = "ollama nomic-embed-text"
MODEL = Model(capabilities=["embedding"])


async def test_an_identity_outlives_the_service(tmp_path: Path) -> None:
    file = tmp_path / "state" / "embedder.json"
    async with OllamaServer(models={"nomic-embed-text": MODEL}) as server:
        url = server.url
        async with aclosing(OllamaEmbedder(url, "nomic-embed-text")) as embedder:
            assert await prepare_remembered(embedder, file, SOURCE) is None
            identity = embedder.identity
    assert recall(file, SOURCE) == identity
    assert recall(file, "ollama another") is None
    known = OllamaEmbedder(url, "nomic-embed-text", remembered=recall(file, SOURCE), pause=0.0)
    async with aclosing(known) as embedder:
        away = await prepare_remembered(embedder, file, SOURCE)
        assert away is not None
        assert "connection refused" in away
        assert embedder.identity == identity
        with pytest.raises(EmbedderUnavailableError, match="connection refused"):
            await embedder.embed_question("where?")
    async with aclosing(OllamaEmbedder(url, "another", pause=0.0)) as embedder:
        with pytest.raises(EmbedderUnavailableError, match="connection refused"):
            await prepare_remembered(embedder, file, "ollama another")


async def test_another_model_under_a_remembered_name_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "embedder.json"
    async with OllamaServer(models={"nomic-embed-text": MODEL}) as server:
        async with aclosing(OllamaEmbedder(server.url, "nomic-embed-text")) as embedder:
            await prepare_remembered(embedder, file, SOURCE)
        server.models["nomic-embed-text:latest"] = Model(digest="sha256:" + "cd" * 32, capabilities=["embedding"])
        known = OllamaEmbedder(server.url, "nomic-embed-text", remembered=recall(file, SOURCE))
        async with aclosing(known) as embedder:
            with pytest.raises(EmbedderError, match="Another model than before"):
                await embedder.embed_question("where?")
    async with OpenAiServer() as compatible:
        other = OpenAiEmbedder(compatible.url, "qwen", remembered=recall(file, SOURCE))
        async with aclosing(other) as embedder:
            with pytest.raises(EmbedderError, match="embeds otherwise than before"):
                await embedder.prepare()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"source": 1}', '{"source": "x", "identity": {"odd": 1}}'])
async def test_a_file_that_says_nothing_is_passed_over(tmp_path: Path, text: str) -> None:
    file = tmp_path / "embedder.json"
    file.write_text(text)
    assert recall(file, "x") is None
