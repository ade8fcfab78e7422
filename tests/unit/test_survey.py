from __future__ import annotations

import pytest

from ragpilot.adapters import survey as surveys
from ragpilot.adapters.survey import Addresses, survey
from tests.protocol.http_server import ProtocolServer, Reply, Request
from tests.protocol.ollama_server import Model, OllamaServer
from tests.protocol.openai_server import OpenAiServer
from tests.protocol.qdrant_server import QdrantServer

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(20)]


async def test_what_answers_is_named_with_what_it_has() -> None:
    models = {"qwen": Model(capabilities=["completion", "tools"]), "nomic": Model(capabilities=["embedding"])}
    async with OllamaServer(models=models) as ollama, OpenAiServer() as compatible, QdrantServer() as qdrant:
        addresses = Addresses(ollama.url, compatible.url, None, qdrant.url)
        first, second, third = await survey(addresses, chat_is_open=True)
        assert "nomic:latest (embeds), qwen:latest (language model)" in first.text
        assert first.settings == {"chat.model": "qwen:latest"}
        assert f"{compatible.url}/v1 speaks the OpenAI protocol and has qwen" in second.text
        assert second.settings == {
            "chat.kind": "openai",
            "chat.url": f"{compatible.url}/v1",
            "chat.model": "qwen",
        }
        assert third.text == f"Qdrant 1.19.1 at {qdrant.url}."
        settled = await survey(addresses, chat_is_open=False)
    assert all(finding.state == "ok" for finding in (first, second, third, *settled))
    assert not any(finding.settings or finding.advice for finding in settled)


async def test_what_does_not_answer_is_a_note_and_an_open_port_of_another_program_is_none(
    unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def website(request: Request, reply: Reply) -> None:
        await reply.whole(404, b"<html>", "text/html")

    nobody, needed = f"http://127.0.0.1:{unused_tcp_port}", frozenset({"ollama", "qdrant"})
    async with ProtocolServer(website) as site:
        monkeypatch.setattr(surveys, "COMPATIBLE_PORTS", {site.port: "a site", unused_tcp_port: "nothing"})
        findings = await survey(Addresses(ollama=nobody, qdrant=nobody), chat_is_open=True)
        assert await survey(Addresses(nobody, None, None, nobody, needed=needed), chat_is_open=True) == []
    assert [finding.text for finding in findings] == [
        f"{name} cannot be reached at {nobody}: connection refused. Nothing here is configured to need it."
        for name in ("Ollama", "Qdrant")
    ]
    assert {finding.state for finding in findings} == {"note"}


async def test_a_silent_service_does_not_hold_the_diagnosis(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(request: Request, reply: Reply) -> None:
        await reply.gone()

    monkeypatch.setattr(surveys, "SECONDS", 0.2)
    async with ProtocolServer(silent) as server:
        findings = await survey(Addresses(server.url, server.url, None, server.url), chat_is_open=True)
        await server.all_closed()
    assert [finding.state for finding in findings] == ["note", "note"]


async def test_an_old_server_and_one_without_models_are_said() -> None:
    async with OllamaServer() as ollama, QdrantServer("1.12.0") as qdrant, OpenAiServer() as compatible:
        ollama.models.clear()
        addresses = Addresses(ollama.url, compatible.url, None, qdrant.url)
        first, _, third = await survey(addresses, chat_is_open=True)
    assert "no models" in first.text
    assert "ollama pull" in first.advice
    assert "1.12.0" in third.text
