"""The server as its clients see it: one method a route, the core's values, the core's errors.

Terminal UI and command line use it alike. Nothing is connected before the first request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx
from httpx_sse import EventSource, ServerSentEvent, SSEError

from ragpilot.config import is_loopback
from ragpilot.errors import AuthenticationError, RagPilotError, ServerUnreachableError
from ragpilot.events import (
    AnswerEvent,
    Done,
    Failed,
    corpus_from_wire,
    error_from_wire,
    event_from_wire,
    health_from_wire,
    ingest_event_from_wire,
    source_text_from_wire,
    stats_from_wire,
    to_wire,
)
from ragpilot.types import CorpusInfo, Health, IndexStats, IngestProgress, IngestReport, SourceText, Turn

_REQUEST: Final = httpx.Timeout(30.0, connect=5.0)
_STREAM: Final = httpx.Timeout(120.0, connect=5.0)
"""A server that lives sends a comment every 15 s, whatever its model does."""
_DRAIN_SECONDS: Final = 1.0
_STREAM_HEADERS: Final = {"Accept": "text/event-stream", "Cache-Control": "no-store"}

_T = TypeVar("_T")


class Backend:
    """A RagPilot server, spoken to over HTTP.

    Every method raises the error that the server's problem document names, and ServerUnreachableError where
    there is no server, it is another program's, or it went away in the middle. Streams are async generators:
    closing one closes its connection at once, and with it the work behind it.
    """

    def __init__(self, base_url: str, token: str | None) -> None:
        self.base_url = base_url.rstrip("/")
        url = httpx.URL(self.base_url)
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=_REQUEST,
            # A proxy named in the environment cannot reach this machine's loopback, and must not see what is asked.
            trust_env=not is_loopback(url.host),
            verify=url.scheme == "https",  # certificates are loaded only where they are used
        )

    # streams

    async def ask(
        self,
        question: str,
        *,
        top_k: int | None = None,
        corpus: str | None = None,
        conversation: Sequence[Turn] = (),
        focus: Sequence[str] = (),
    ) -> AsyncGenerator[AnswerEvent, None]:
        """The events of one answer; the last is Done or Failed."""
        body = _given(
            question=question,
            topK=top_k,
            corpus=corpus,
            conversation=to_wire(list(conversation)) or None,
            focus=list(focus) or None,
        )
        async with aclosing(self._stream("/ask", body)) as events:
            async for event in events:
                answer_event = self._decode(event_from_wire, event.event, event.data)
                if answer_event is None:
                    continue
                yield answer_event
                if isinstance(answer_event, Done | Failed):
                    await _drain(events)
                    return
        raise self._broken_off("the answer")

    async def index(
        self, *, corpus: str | None = None, path: str | None = None, rebuild: bool = False, vectors: bool = True
    ) -> AsyncGenerator[IngestProgress | IngestReport, None]:
        """The progress of one run of ingestion; the last item is its report. The run outlives this iterator.

        Without ``vectors`` the report comes once everything can be found by its words.
        """
        body = _given(corpus=corpus, path=path, rebuild=rebuild or None, vectors=None if vectors else False)
        async with aclosing(self._stream("/index", body)) as events:
            async for event in events:
                item = self._decode(ingest_event_from_wire, event.event, event.data)
                if item is None:
                    continue
                if isinstance(item, Failed):
                    raise error_from_wire(item.code, item.message)
                yield item
                if isinstance(item, IngestReport):
                    await _drain(events)
                    return
        raise self._broken_off("the run")

    # single answers

    async def search(self, question: str, *, k: int = 8, corpus: str | None = None) -> dict[str, Any]:
        """Retrieval alone, as the server's JSON: ``hits`` (as sources), ``floor``, ``gate`` and what else it tells."""
        return await self._json("POST", "/search", body=_given(question=question, k=k, corpus=corpus))

    async def stats(self, corpus: str | None = None) -> IndexStats:
        """What is indexed, as far as this actor may know."""
        found = await self._json("GET", "/index/stats", params=_given(corpus=corpus))
        return self._decode(stats_from_wire, found)

    async def health(self) -> dict[str, Health]:
        """Store, embedder and model by name; empty for an actor who may not know. Never raises for an ill server."""
        found = await self._json("GET", "/health", accepted=(200, 503))
        return self._decode(health_from_wire, found)

    async def corpora(self) -> list[CorpusInfo]:
        """The corpora that this actor may ask about."""
        found = await self._json("GET", "/corpora")
        return self._decode(lambda: [corpus_from_wire(item) for item in found["corpora"]])

    async def source(self, source_id: str, corpus: str | None = None, context: int = 10) -> SourceText:
        """A source's text with ``context`` lines before and after it."""
        path = f"/sources/{quote(source_id, safe='')}"
        found = await self._json("GET", path, params=_given(corpus=corpus, context=context))
        return self._decode(source_text_from_wire, found)

    async def aclose(self) -> None:
        """Close every connection. Idempotent."""
        await self._client.aclose()

    # how

    async def _json(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        accepted: Sequence[int] = (200,),
    ) -> dict[str, Any]:
        try:
            response = await self._client.request(method, path, params=params, json=body)
        except httpx.RequestError as error:
            raise self._unreachable(error) from error
        if response.status_code not in accepted:
            raise self._problem(response)
        found = self._decode(response.json)
        if not isinstance(found, dict):
            raise self._foreign()
        return found

    async def _stream(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[ServerSentEvent, None]:
        try:
            async with self._client.stream(
                "POST", path, json=body, headers=_STREAM_HEADERS, timeout=_STREAM
            ) as response:
                if response.status_code != httpx.codes.OK:
                    await response.aread()
                    raise self._problem(response)
                async with aclosing(EventSource(response).aiter_sse()) as events:
                    async for event in events:
                        yield event
        except SSEError as error:  # one of httpx's transport errors, although it is about the content's type
            raise self._foreign() from error
        except httpx.RequestError as error:
            raise self._unreachable(error) from error

    def _decode(self, decode: Callable[..., _T], *given: Any) -> _T:
        try:
            return decode(*given)
        except (KeyError, TypeError, ValueError, AttributeError) as error:  # the ways JSON differs from what was meant
            raise self._foreign() from error

    def _problem(self, response: httpx.Response) -> RagPilotError:
        """The error of a refusal."""
        if "json" not in response.headers.get("content-type", ""):
            return self._foreign()
        try:
            body = json.loads(response.content)
            code, detail, hint = body["code"], body["detail"], body.get("hint") or ""
            message = detail.removesuffix(hint).rstrip()
            if code == AuthenticationError.code:
                # What the server says is for who writes a request by hand. Here it is known whether there was a token.
                known = "Authorization" in self._client.headers
                message = (
                    f"The server at {self.base_url} {'knows nobody by this token' if known else 'asks for a token'}."
                )
                hint = "It is taken from RAGPILOT_TOKEN; `ragpilot actor add` and `actor token` make them."
            retry_after = response.headers.get("retry-after", "")
            return error_from_wire(
                code,
                message,
                hint=hint,
                field=body.get("field") or "",
                retry_after=int(retry_after) if retry_after.isdecimal() else 1,
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return self._foreign()

    def _unreachable(self, error: httpx.RequestError) -> ServerUnreachableError:
        hint = "Is it running? `ragpilot serve` starts one, and so does `ragpilot`."
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return ServerUnreachableError(f"No RagPilot server answers at {self.base_url}.", hint=hint)
        if isinstance(error, httpx.TimeoutException):
            return ServerUnreachableError(f"The server at {self.base_url} has fallen silent.", hint=hint)
        return ServerUnreachableError(f"The server at {self.base_url} closed the connection.", hint=hint)

    def _foreign(self) -> ServerUnreachableError:
        return ServerUnreachableError(
            f"What answers at {self.base_url} does not speak as a RagPilot server of this version does.",
            hint="Another program may have the port, or an older server still runs.",
        )

    def _broken_off(self, what: str) -> ServerUnreachableError:
        return ServerUnreachableError(
            f"The server at {self.base_url} ended {what} before it was complete.", hint="Ask again."
        )


def _given(**values: Any) -> dict[str, Any]:
    """What is not None."""
    return {name: value for name, value in values.items() if value is not None}


async def _drain(events: AsyncGenerator[ServerSentEvent, None]) -> None:
    """Read to the stream's end, which follows its last event at once, so that its connection can be used again."""
    with suppress(TimeoutError, ServerUnreachableError):  # the last event is here already
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in events:
                pass
