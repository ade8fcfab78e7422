"""A streamed HTTP answer, line by line, under three limits: first token, silence, and all of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

import httpx

from ragpilot.adapters.http import Reply, Service, redirected
from ragpilot.errors import RagPilotError

LONGEST_LINE = 4 * 1024 * 1024
"""Bytes. A service that sends more without a line's end is not speaking the protocol."""
EPILOGUE_SECONDS = 5.0
"""The longest wait for counts after an answer's last piece."""
LONGEST_REFUSAL = 64 * 1024
"""Bytes of an error's body that are read."""
UNPACKED = {"Accept-Encoding": "identity"}
"""Asked of streams: what packs them on the way would hold tokens back. What comes packed all the same is read."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Seconds. A cold model may take minutes before its first token; later silence means that something broke."""

    first_token: float = 300.0
    idle: float = 60.0
    total: float = 900.0


class Patience:
    """Waits for a stream no longer than its limits allow, and says which one was passed."""

    def __init__(self, limits: StreamLimits, service: Service, model: str) -> None:
        self._limits = limits
        self._service = service
        self._model = model
        self._started = asyncio.get_running_loop().time()
        self._spoken = False
        self._deadline: float | None = None

    def spoken(self) -> None:
        """The model has begun: from now on its silences count."""
        self._spoken = True

    def end(self) -> None:
        """The model has said that it is done: nothing but counts may follow, soon or not at all."""
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + EPILOGUE_SECONDS

    @property
    def ended(self) -> bool:
        """Whether all but the counts was there."""
        return self._deadline is not None

    async def wait(self, awaitable: Awaitable[_T]) -> _T:
        """The result, or the error that names the limit and its setting."""
        elapsed = asyncio.get_running_loop().time() - self._started
        left = self._limits.total - elapsed
        allowed = self._limits.idle if self._spoken else self._limits.first_token - elapsed
        if self._deadline is not None:
            allowed = min(allowed, self._deadline - asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(max(min(allowed, left), 0.0)):
                return await awaitable
        except TimeoutError:
            raise self._late(total=left <= allowed) from None

    def _late(self, *, total: bool) -> RagPilotError:
        who, limits = f"{self._model} at {self._service.url}", self._limits
        if total:
            message = f"The answer of {who} took longer than {limits.total:g} s (chat.total_seconds)."
        elif self._spoken:
            message = f"{who} was silent for {limits.idle:g} s in mid-answer (chat.idle_seconds)."
        else:
            message = f"{who} gave no first token within {limits.first_token:g} s (chat.first_token_seconds)."
        return self._service.late(message, hint="A smaller model or prompt is quicker; see the service's log.")


async def streamed_lines(
    client: httpx.AsyncClient,
    request: httpx.Request,
    patience: Patience,
    service: Service,
    refusal: Callable[[Reply], RagPilotError],
) -> AsyncGenerator[bytes, None]:
    """Send ``request`` and yield the lines of its answer, without their ends.

    Closing the generator closes the connection at once. ``refusal`` makes the error of a status other than 200.
    """
    try:
        response = await patience.wait(client.send(request, stream=True))
        try:
            if response.is_redirect:
                raise redirected(service, response.headers)
            if response.status_code != httpx.codes.OK:
                text = await patience.wait(_beginning(response))
                raise refusal(Reply.of(response.status_code, text, response.headers))
            if "html" in response.headers.get("content-type", "").lower():
                raise service.foreign("it answered with a web page")
            async with aclosing(lines(response.aiter_bytes(), service)) as found:
                while (line := await _next(found, patience)) is not None:
                    yield line
        finally:
            await response.aclose()
    except httpx.HTTPError as error:
        raise service.lost(error) from error


async def _next(found: AsyncGenerator[bytes, None], patience: Patience) -> bytes | None:
    """The next line; None at the end, also where it comes in a bad way after the model was done."""
    try:
        return await patience.wait(anext(found, None))
    except (RagPilotError, httpx.HTTPError):
        if patience.ended:
            return None
        raise


async def lines(chunks: AsyncIterator[bytes], service: Service) -> AsyncGenerator[bytes, None]:
    """Cut at line feeds alone: other separators of Unicode may stand unescaped inside a line of JSON."""
    held = bytearray()
    async for chunk in chunks:
        held += chunk
        if b"\n" in chunk:
            *whole, rest = held.split(b"\n")
            held = bytearray(rest)
            for line in whole:
                yield bytes(line.removesuffix(b"\r"))
        if len(held) > LONGEST_LINE:
            raise service.failed(f"{service.vendor} at {service.url} sent a line of more than {LONGEST_LINE} bytes.")
    if held:
        yield bytes(held)


async def server_sent_data(found: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The data of each server-sent event; comments and other fields are passed over.

    A server that does not stream sends one JSON object instead, on one line or on many: it is given as it is.
    """
    held: list[bytes] = []
    async for line in found:
        if line.startswith(b"{"):
            held = [line, *[further async for further in found]]
        elif line.startswith(b"data:"):
            held.append(line[5:].removeprefix(b" "))
        elif line.startswith(b"error:"):  # older llama.cpp servers: a field of that name with the JSON of an error
            held.append(line[6:].strip())
        elif not line and held:
            yield b"\n".join(held)
            held = []
    if held:
        yield b"\n".join(held)


def json_object(line: bytes, service: Service) -> dict[str, object]:
    """A line as a JSON object. Raises the service's error where it is none."""
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise service.failed(f"{service.vendor} at {service.url} sent a line that is no JSON object.")
    return body


async def _beginning(response: httpx.Response) -> str:
    held = bytearray()
    async for chunk in response.aiter_bytes():
        held += chunk
        if len(held) >= LONGEST_REFUSAL:
            break
    return bytes(held[:LONGEST_REFUSAL]).decode("utf-8", "replace")
