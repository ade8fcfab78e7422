"""AskService: one question to a stream of events, or to a whole answer. Everything that answers goes through it."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from copy import copy
from functools import partial
from typing import Any

from ragpilot.citations import citation_line, mark_cited, sources_of
from ragpilot.config import Settings
from ragpilot.corpora import resolve_corpus
from ragpilot.errors import ChatModelError, RagPilotError
from ragpilot.events import Answer, AnswerEvent, Done, Failed, Sources, Token
from ragpilot.follow_up import Need, is_answerable, is_better_alone, topic_of
from ragpilot.found import NOTHING_READABLE, Retrieval
from ragpilot.freshness import Freshness
from ragpilot.logs import log_unexpected
from ragpilot.ports import ChatModel, TokenCounter
from ragpilot.prompting import BuiltPrompt, build_prompt
from ragpilot.retrieval import Retriever
from ragpilot.routing import Intent
from ragpilot.types import NOT_FOUND_ANSWER, UNKNOWN_ANSWER_PREFIX, Actor, AskRequest, Hit, ModelUsage, Outcome, Source

logger = logging.getLogger(__name__)

INTERNAL = "RagPilot failed while answering. The server's log has the details under this request's id."


class AskService:
    """Answers questions from the index alone. Holds no state of a question; safe for concurrent use."""

    def __init__(
        self, retriever: Retriever, chat: ChatModel, counter: TokenCounter, settings: Settings, freshness: Freshness
    ) -> None:
        self._retriever = retriever
        self._chat = chat
        self._counter = counter
        self._settings = settings
        self._freshness = freshness

    def with_settings(self, settings: Settings) -> AskService:
        """The same service, with the actors and grants of ``settings``."""
        other = copy(self)
        other._settings = settings  # noqa: SLF001 - it is one of us
        return other

    async def ask(self, actor: Actor, request: AskRequest) -> AsyncGenerator[AnswerEvent, None]:
        """Stream tokens, then one Sources, then Done.

        What goes wrong before the first token is raised (RagPilotError); afterwards it ends the stream as Failed.
        Closing the generator closes the model's stream.
        """
        spoken = False
        try:
            async with aclosing(self._answer(actor, request)) as events:
                async for event in events:
                    spoken = True
                    yield event
        except RagPilotError as error:
            if not spoken:
                raise
            logger.warning("request %s failed while streaming: %s", request.request_id, error.code)
            yield Failed(error.code, str(error), request.request_id)
        except Exception as error:
            # The last handler of a stream that is already open: the asker must learn that it ended, not why.
            if not spoken:
                raise
            log_unexpected(logger, error, request.request_id)
            yield Failed(RagPilotError.code, INTERNAL, request.request_id)

    async def query(self, actor: Actor, request: AskRequest) -> Answer:
        """The whole answer. Raises RagPilotError where ``ask`` would raise or end with Failed."""
        pieces: list[str] = []
        sources: tuple[Source, ...] = ()
        async with aclosing(self.ask(actor, request)) as events:
            async for event in events:
                match event:
                    case Token():
                        pieces.append(event.text)
                    case Sources():
                        sources = event.sources
                    case Done():
                        return Answer("".join(pieces), sources, event)
                    case Failed():
                        raise ChatModelError(event.message)
        raise ChatModelError("The answer ended before it was done.")

    async def _answer(self, actor: Actor, request: AskRequest) -> AsyncGenerator[AnswerEvent, None]:
        started = time.perf_counter()
        actor.need("ask")
        corpus = resolve_corpus(self._settings, actor, request.corpus)
        found, searched = await self._search(actor, request, corpus.name)
        if not found.hits:
            yield Token(NOT_FOUND_ANSWER)
            yield Sources(())
            yield self._done(request, found, Outcome.NOT_FOUND, started)
            return
        built = build_prompt(
            request.question,
            found.hits,
            self._counter,
            budget=self._settings.prompt.context_budget,
            window=self._chat.context_window,
            answer_tokens=self._settings.chat.max_answer_tokens,
            turns=() if self._chat.identity.extract else request.conversation,  # extracts quote blocks alone
            searched=searched,
        )
        pieces: list[str] = []
        first_token: float | None = None
        usage: list[ModelUsage] = []
        async with aclosing(_generator(self._generate(found, built, usage.append))) as tokens:
            async for text in tokens:
                if not text:
                    continue
                first_token = first_token or time.perf_counter()
                pieces.append(text)
                yield Token(text)
        answer = "".join(pieces)
        if not answer.strip():
            raise ChatModelError(f"The model {self._chat.identity.name} gave no answer.")
        in_prompt = [block.hit.chunk for block in built.prompt.blocks]
        sources = sources_of(built.prompt.blocks, stale=await self._freshness.stale(in_prompt))
        marked, unsupported = mark_cited(sources, answer)
        yield Sources(marked)
        unknown = answer.lstrip().startswith(UNKNOWN_ANSWER_PREFIX)
        outcome = Outcome.UNKNOWN if unknown else Outcome.ANSWERED
        yield self._done(
            request,
            found,
            outcome,
            started,
            built=built,
            first_token=first_token,
            unsupported=unsupported,
            answer=answer,
            usage=usage[-1] if usage else None,
        )

    async def _search(self, actor: Actor, request: AskRequest, corpus: str) -> tuple[Retrieval, str]:
        """What the question finds, or what it finds with the earlier question that it goes on from, and that search."""
        focus = (*request.focus, request.page) if request.page else request.focus
        search = partial(self._retriever.search, actor, corpus=corpus, top_k=request.top_k, focus=focus)
        alone = await search(request.question)
        topic = topic_of(request.question, request.conversation)
        if (
            topic is None
            or alone.plan.intent == Intent.SMALL_TALK
            or (alone.hits and topic.need == Need.IF_REFUSED)
            or not is_answerable(request.question, topic.need, alone.unknown)
        ):
            return alone, ""
        searched = f"{topic.question} {request.question}"
        together = await search(searched)
        if not together.hits and topic.before:
            searched = f"{topic.before} {searched}"
            together = await search(searched)
        if is_better_alone(request.question, topic.need, alone, together):
            return alone, ""
        return together, searched

    def _generate(
        self, found: Retrieval, built: BuiltPrompt, report: Callable[[ModelUsage], None]
    ) -> AsyncIterator[str]:
        configured = self._settings.chat.temperature
        return self._chat.stream(
            built.prompt,
            temperature=configured if configured is not None else found.plan.temperature,
            max_tokens=self._settings.chat.max_answer_tokens,
            report=report,
        )

    def _done(
        self,
        request: AskRequest,
        found: Retrieval,
        outcome: Outcome,
        started: float,
        *,
        built: BuiltPrompt | None = None,
        first_token: float | None = None,
        unsupported: tuple[int, ...] = (),
        answer: str = "",
        usage: ModelUsage | None = None,
    ) -> Done:
        now = time.perf_counter()
        timings = {**found.timings, "total": round((now - started) * 1000, 2)}
        if first_token is not None:
            timings["first_token"] = round((first_token - started) * 1000, 2)
        warnings = [*found.warnings, *(built.warnings if built else ()), *(usage.warnings if usage else ())]
        prompt_tokens = usage.prompt_tokens if usage else None
        answer_tokens = usage.answer_tokens if usage else None
        if not found.hits and not found.readable and found.plan.intent != "small_talk":
            warnings.append(NOTHING_READABLE)
        called = built is not None
        return Done(
            outcome=outcome,
            request_id=request.request_id,
            model=self._chat.identity.name if called else None,
            extract=called and self._chat.identity.extract,
            plan=_plan_on_wire(found, built.prompt.searched if built else ""),
            receipt=_receipt(found, built),
            near_misses=found.near_misses,
            unsupported=unsupported,
            warnings=tuple(warnings),
            prompt_tokens=prompt_tokens or (built.prompt.tokens if built else 0),
            answer_tokens=answer_tokens or self._counter.count(answer),
            timings=timings,
        )


def _plan_on_wire(found: Retrieval, searched: str) -> dict[str, Any]:
    plan, bounds = found.plan, found.bounds
    return {
        **({"searched": searched} if searched else {}),
        "intent": plan.intent,
        "topK": plan.k,
        "strictness": plan.strictness,
        "temperature": plan.temperature,
        "sourceTypes": sorted(plan.source_types),
        "floor": bounds.floor,
        "floorOrigin": bounds.floor_origin,
        "gate": bounds.gate,
        "gateOrigin": bounds.gate_origin,
        "evidence": found.evidence,
    }


def _receipt(found: Retrieval, built: BuiltPrompt | None) -> tuple[dict[str, Any], ...]:
    """What became of each of the best candidates: in the prompt, cut to n tokens, or dropped, and by what."""
    fates = {fate.chunk_id: fate for fate in built.fates} if built else {}
    rows = []
    for row in (*found.trace, *_beyond_trace(found.hits, found.trace)):
        fate = fates.get(row["id"])
        rows.append(row if fate is None else {**row, "fate": fate.fate, "tokens": fate.tokens})
    return tuple(rows)


def _beyond_trace(hits: tuple[Hit, ...], trace: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    """Hits whose rank among all candidates lies behind the traced ones."""
    traced = {row["id"] for row in trace}
    return [
        {
            "rank": None,
            "id": chunk.id,
            "source": citation_line(chunk.path, chunk.start_line, chunk.end_line, chunk.symbol),
            "cosine": round(hit.score, 4),
            "signals": dict(hit.signals),
            "alsoAt": list(hit.also_at),
            "fate": "hit",
        }
        for hit in hits
        if (chunk := hit.chunk).id not in traced
    ]


def _generator(tokens: AsyncIterator[str]) -> AsyncGenerator[str, None]:
    """``tokens`` as a generator that can be closed, whatever kind of iterator an adapter returned."""
    if isinstance(tokens, AsyncGenerator):
        return tokens

    async def relay() -> AsyncGenerator[str, None]:
        async for text in tokens:
            yield text

    return relay()
