from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from ragpilot.errors import OverloadedError
from ragpilot.types import ModelIdentity, Prompt
from server.admission import Admission, QueuedChatModel, Ticket, carry
from tests.fakes import ScriptedChatModel
from tests.server.support import until

PROMPT = Prompt("system", (), "question")


async def generate(model: QueuedChatModel) -> list[str]:
    async with aclosing(model.stream(PROMPT, temperature=0.0, max_tokens=10)) as pieces:
        return [piece async for piece in pieces]


@pytest.mark.asyncio
async def test_as_many_run_as_may_and_the_rest_waits_in_order() -> None:
    gate = asyncio.Semaphore(0)
    model, admission = ScriptedChatModel(["a", "b"], gate=gate), Admission(running=2, waiting=3)
    queued = QueuedChatModel(model, admission)
    asks = [asyncio.create_task(generate(queued)) for _ in range(5)]
    await until(lambda: admission.waiting == 3)
    assert (admission.running, model.opened) == (2, 2)
    with pytest.raises(OverloadedError) as caught:
        await generate(queued)
    assert caught.value.retry_after > 0
    for _ in range(5):
        gate.release()
    async with asyncio.timeout(5):
        assert await asyncio.gather(*asks) == [["a", "b"]] * 5
    assert (admission.running, admission.waiting, model.ended) == (0, 0, 5)


@pytest.mark.asyncio
async def test_whatever_ends_a_generation_gives_its_place_back() -> None:
    gate = asyncio.Semaphore(0)
    model, admission = ScriptedChatModel(["a", "b"], gate=gate), Admission(running=1, waiting=1)
    queued = QueuedChatModel(model, admission)
    running = asyncio.create_task(generate(queued))
    await until(lambda: admission.running == 1)
    waiting = asyncio.create_task(generate(queued))
    await until(lambda: admission.waiting == 1)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert (admission.running, admission.waiting) == (1, 0)
    running.cancel()
    await asyncio.wait({running})
    assert (admission.running, model.ended) == (0, 1)
    closed = queued.stream(PROMPT, temperature=0.0, max_tokens=10)
    assert await anext(closed) == "a"
    await closed.aclose()
    assert (admission.running, model.ended) == (0, 2)
    failing = QueuedChatModel(ScriptedChatModel(failure=OverloadedError("x", retry_after=1)), admission)
    with pytest.raises(OverloadedError):
        await generate(failing)
    assert admission.running == 0


@pytest.mark.asyncio
async def test_an_extract_is_never_kept_waiting() -> None:
    model, admission = ScriptedChatModel(), Admission(running=1, waiting=0)
    model.identity = ModelIdentity("extractive", "ragpilot", extract=True)
    async with admission.place():
        assert await generate(QueuedChatModel(model, admission)) == model.pieces


@pytest.mark.asyncio
async def test_a_ticket_tells_that_its_request_waits() -> None:
    admission, seen = Admission(running=1, waiting=1), []
    ticket = Ticket(changed=lambda: seen.append(ticket.waiting))

    async def wait() -> None:
        carry(ticket)
        async with admission.place():
            pass

    async with admission.place():
        task = asyncio.create_task(wait())
        await until(lambda: ticket.waiting)
        assert ticket.admitted_at is None
    async with asyncio.timeout(5):
        await task
    assert seen == [True, False]
    assert ticket.admitted_at is not None


@pytest.mark.asyncio
async def test_the_rest_of_the_port_is_the_models_own() -> None:
    model = ScriptedChatModel(context_window=4321)
    queued = QueuedChatModel(model, Admission(running=1, waiting=0))
    assert (queued.identity, queued.context_window) == (model.identity, 4321)
    assert (await queued.check()).ok
    await queued.aclose()
