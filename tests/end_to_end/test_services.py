"""The same core on services, chosen by configuration alone. The services are protocol servers behind real sockets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from ragpilot.bootstrap import Application, build
from ragpilot.config import Environment
from ragpilot.errors import ConfigError, EmbedderUnavailableError, IndexMismatchError
from ragpilot.events import Answer
from ragpilot.settings_loader import load
from ragpilot.types import Actor, AskRequest, IngestReport, Outcome
from tests.protocol.ollama_server import Model, OllamaServer
from tests.protocol.openai_server import OpenAiServer
from tests.protocol.qdrant_server import QdrantServer

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect"),
]

OPERATOR = Actor("operator", frozenset({"team:everyone"}), frozenset({"ask", "ingest", "admin"}))
QUESTION = "where is the context budget enforced"
PIECES = ["The budget is enforced in ", "`cut_lowest_ranked`", " [1]."]


@dataclass
class Services:
    ollama: OllamaServer
    compatible: OpenAiServer
    qdrant: QdrantServer
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    def environment(self, **settings: str) -> Environment:
        """As if these keys stood in config.toml: each ``SECTION__KEY`` as its environment variable."""
        variables = {f"RAGPILOT_{key}": value for key, value in {**self.settings, **settings}.items()}
        return load(config=None, directory=self.folder, environ={**os.environ, **variables})


@pytest_asyncio.fixture
async def services(tmp_path: Path) -> AsyncIterator[Services]:
    project = tmp_path / "project"
    write(project)
    models = {"qwen": Model(), "nomic-embed-text": Model(capabilities=["embedding"])}
    async with AsyncExitStack() as stack:
        ollama = await stack.enter_async_context(OllamaServer(PIECES, models=models))
        compatible = await stack.enter_async_context(OpenAiServer(PIECES))
        qdrant = await stack.enter_async_context(QdrantServer())
        services = Services(ollama, compatible, qdrant, project)
        # The vectors of the protocol servers are bags of words: near texts are less near than a model's.
        services.settings = {"RETRIEVAL__MIN_SCORE": "0.1", "STORE__KIND": "qdrant", "STORE__URL": qdrant.url}
        yield services


def write(folder: Path) -> None:
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "budget.py").write_text(
        '"""Where the context budget is enforced."""\n\n\ndef cut_lowest_ranked(blocks, budget):\n'
        '    """the context budget is enforced here"""\n    return blocks[:budget]\n'
    )
    (folder / "src" / "mail.py").write_text('def send_invoice(address):\n    """mail it"""\n    relay(address)\n')


async def indexed(application: Application) -> IngestReport:
    corpus = application.settings.corpora[0]
    async with asyncio.timeout(30):
        items = [item async for item in application.ingestion.run(OPERATOR, corpus)]
    assert isinstance(items[-1], IngestReport)
    return items[-1]


async def asked(application: Application) -> Answer:
    async with asyncio.timeout(30):
        return await application.asker.query(OPERATOR, AskRequest(QUESTION, request_id="request-1"))


ON_OLLAMA = {
    "EMBEDDER__KIND": "ollama",
    "EMBEDDER__MODEL": "nomic-embed-text",
    "CHAT__KIND": "ollama",
    "CHAT__MODEL": "qwen",
}
ON_COMPATIBLE = {"EMBEDDER__KIND": "openai", "CHAT__KIND": "openai"}


@pytest.mark.parametrize("kind", ["ollama", "openai"])
async def test_services_answer_as_the_embedded_parts_do(services: Services, kind: str) -> None:
    url = services.ollama.url if kind == "ollama" else services.compatible.url
    chosen = ON_OLLAMA if kind == "ollama" else ON_COMPATIBLE
    environment = services.environment(**chosen, EMBEDDER__URL=url, CHAT__URL=url)
    async with build(environment) as application:
        report = await indexed(application)
        assert report.outcome == "complete"
        answer = await asked(application)
        health = await application.status.health()
    assert answer.answer == "".join(PIECES)
    assert answer.sources[0].file_path == "src/budget.py"
    assert answer.sources[0].cited
    assert answer.done.outcome == Outcome.ANSWERED
    assert answer.done.model == "qwen"
    assert not answer.done.extract
    assert answer.done.warnings == ()
    assert all(part.ok for part in health.values())
    await services.ollama.all_closed()
    await services.compatible.all_closed()


async def test_a_context_that_was_cut_reaches_done(services: Services) -> None:
    url = services.ollama.url
    async with build(services.environment(**ON_OLLAMA, EMBEDDER__URL=url, CHAT__URL=url)) as application:
        await indexed(application)
        services.ollama.prompt_eval_count = 10
        answer = await asked(application)
    assert any("Context truncated" in warning for warning in answer.done.warnings)


async def test_the_default_choice_is_ollama_only_where_it_has_the_model(services: Services) -> None:
    url = services.ollama.url
    async with build(services.environment(CHAT__MODEL="qwen", CHAT__URL=url)) as application:
        assert application.chat.identity.provider == "ollama"
        assert "runs and has qwen" in (await application.status.health())["model"].detail
    async with build(services.environment(CHAT__MODEL="absent", CHAT__URL=url)) as application:
        assert application.chat.identity.extract
        assert "ollama pull absent" in (await application.status.health())["model"].detail


async def test_another_embedder_is_refused_with_the_command_that_rebuilds(services: Services) -> None:
    ollama, compatible = services.ollama.url, services.compatible.url
    chat = {"CHAT__KIND": "extractive"}
    async with build(services.environment(**{**ON_OLLAMA, **chat}, EMBEDDER__URL=ollama)) as application:
        await indexed(application)
    # The same number of dimensions, by chance.
    async with build(services.environment(**{**ON_COMPATIBLE, **chat}, EMBEDDER__URL=compatible)) as application:
        with pytest.raises(IndexMismatchError, match="--rebuild"):
            await asked(application)
        with pytest.raises(IndexMismatchError, match="--rebuild"):
            await indexed(application)


async def test_an_embedder_that_is_away_stops_a_first_start_and_no_later_one(services: Services) -> None:
    chosen = {"EMBEDDER__KIND": "openai", "CHAT__KIND": "extractive"}
    async with OpenAiServer() as server:
        environment = services.environment(**chosen, EMBEDDER__URL=server.url)
        async with build(environment) as application:
            await indexed(application)
    async with build(environment) as application:
        assert not (await application.status.health())["embedder"].ok
        with pytest.raises(EmbedderUnavailableError, match="connection refused"):
            await asked(application)
        assert await application.store.count(OPERATOR, "default") > 0
    unknown = services.environment(**chosen, EMBEDDER__URL=server.url, EMBEDDER__MODEL="another")
    with pytest.raises(EmbedderUnavailableError, match="connection refused"):
        async with build(unknown):
            pass


async def test_keys_come_from_the_environment_alone(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    url = services.compatible.url
    services.compatible.key = "s3cret"
    chosen = {**ON_COMPATIBLE, "EMBEDDER__KIND": "minilm", "CHAT__URL": url, "CHAT__API_KEY_ENV": "MY_KEY"}
    monkeypatch.setenv("MY_KEY", "s3cret")
    async with build(services.environment(**chosen)) as application:
        assert (await application.chat.check()).ok
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(ConfigError, match="MY_KEY, which is not set"):
        async with build(services.environment(**chosen)):
            pass
