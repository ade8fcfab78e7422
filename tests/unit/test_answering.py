from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from ragpilot.config import ChatSettings, PromptSettings, RetrievalSettings, Settings
from ragpilot.errors import ChatModelError, ChatModelUnavailableError, PermissionDeniedError, UnknownCorpusError
from ragpilot.events import AnswerEvent, Done, Failed, Sources, Token
from ragpilot.types import NOT_FOUND_ANSWER, Actor, AskRequest, Outcome, Turn
from tests.builders import chunk, request
from tests.corpus import Corpus, two_corpora
from tests.fakes import ANN, BOB, NOBODY, ScriptedChatModel

BUDGET = chunk("core/prompting.py", "the context budget is enforced here", header="context budget", symbol="fill")
RETRY = chunk("net/retry.py", "sleep longer each time", header="retry backoff")


async def events(corpus: Corpus, asked: AskRequest, actor: Actor = ANN) -> list[AnswerEvent]:
    async with asyncio.timeout(10), aclosing(corpus.asker.ask(actor, asked)) as stream:
        return [event async for event in stream]


async def corpus_of(model: ScriptedChatModel, settings: Settings | None = None) -> Corpus:
    corpus = Corpus(chat=model, settings=settings)
    await corpus.index([BUDGET, RETRY])
    return corpus


@pytest.mark.asyncio
async def test_tokens_then_one_sources_then_done() -> None:
    model = ScriptedChatModel(["It ", "", "stands in\n", " [1]."])
    found = await events(await corpus_of(model), request("context budget"))
    assert [type(event) for event in found] == [Token, Token, Token, Sources, Done]
    assert "".join(event.text for event in found if isinstance(event, Token)) == "It stands in\n [1]."
    sources, done = found[-2], found[-1]
    assert isinstance(sources, Sources)
    assert isinstance(done, Done)
    in_prompt = [block.hit.chunk.id for block in model.prompts[0].blocks]
    assert [source.id for source in sources.sources] == in_prompt
    assert sources.sources[0].cited
    assert done.outcome is Outcome.ANSWERED
    assert done.model == "scripted"
    assert done.request_id == "request-1"
    assert done.receipt[0]["fate"] == "in_prompt"
    assert {"embed", "search", "rank", "first_token", "total"} <= done.timings.keys()


@pytest.mark.asyncio
@pytest.mark.parametrize("extract", [False, True])
async def test_earlier_turns_are_for_models_that_read_them(extract: bool) -> None:
    model = ScriptedChatModel(["It stands there [1]."])
    model.identity = replace(model.identity, extract=extract)
    turns = (Turn("user", "where?"), Turn("assistant", "there " * 4_000))
    found = await events(await corpus_of(model), request("context budget", conversation=turns))
    done = found[-1]
    assert isinstance(done, Done)
    assert any("earlier turn" in warning for warning in done.warnings) is not extract


@pytest.mark.asyncio
async def test_the_not_found_answer_calls_no_model() -> None:
    model = ScriptedChatModel()
    corpus = await corpus_of(model)
    found = await events(corpus, request("quagga zebra okapi"))
    assert found[:2] == [Token(NOT_FOUND_ANSWER), Sources(())]
    done = found[2]
    assert isinstance(done, Done)
    assert (done.outcome, done.model, done.prompt_tokens) == (Outcome.NOT_FOUND, None, 0)
    assert model.opened == 0


@pytest.mark.asyncio
async def test_nothing_readable_says_so_in_the_same_words_for_all_reasons() -> None:
    empty = await events(Corpus(), request("context budget"), NOBODY)
    unreadable = await events(await corpus_of(ScriptedChatModel()), request("context budget"), NOBODY)
    for found in (empty, unreadable):
        assert found[0] == Token(NOT_FOUND_ANSWER)
        assert isinstance(found[-1], Done)
        assert "ragpilot index" in found[-1].warnings[0]
    assert _without_timings(empty[-1]) == _without_timings(unreadable[-1])


def _without_timings(event: AnswerEvent) -> object:
    assert isinstance(event, Done)
    return (event.outcome, event.plan, event.receipt, event.near_misses, event.warnings)


@pytest.mark.asyncio
async def test_small_talk_is_not_found_without_a_warning() -> None:
    found = await events(await corpus_of(ScriptedChatModel()), request("hello!"))
    assert found[0] == Token(NOT_FOUND_ANSWER)
    assert isinstance(found[-1], Done)
    assert found[-1].warnings == ()


@pytest.mark.asyncio
async def test_i_dont_know_is_an_outcome_of_its_own() -> None:
    answer = await (await corpus_of(ScriptedChatModel(["I don't", " know."]))).asker.query(
        ANN, request("context budget")
    )
    assert answer.done.outcome is Outcome.UNKNOWN
    assert answer.sources


@pytest.mark.asyncio
async def test_numbers_without_a_source_are_reported() -> None:
    answer = await (await corpus_of(ScriptedChatModel(["See [1] and [42]."]))).asker.query(
        ANN, request("context budget")
    )
    assert answer.done.unsupported == (42,)


@pytest.mark.asyncio
async def test_only_what_stands_in_the_prompt_is_a_source() -> None:
    settings = Settings(prompt=PromptSettings(context_budget=256), retrieval=RetrievalSettings(gate="off"))
    model = ScriptedChatModel(["[1]"])
    corpus = Corpus(chat=model, settings=settings)
    await corpus.index([chunk(f"f{n}.py", f"needle {n} " + f"word{n} " * 60, header="needle") for n in range(6)])
    answer = await corpus.asker.query(ANN, request("needle"))
    assert len(answer.sources) == len(model.prompts[0].blocks) < 6
    fates = {row["fate"] for row in answer.done.receipt}
    assert "dropped_by_budget" in fates


@pytest.mark.asyncio
async def test_a_hit_from_behind_the_traced_ones_is_named_like_the_others() -> None:
    corpus = Corpus(settings=Settings(retrieval=RetrievalSettings(gate="off", min_score=0.0)))
    many = [chunk("first.py", f"needle needle item{n} other{n}", header="needle", start=n, end=n) for n in range(1, 30)]
    await corpus.index([*many, chunk("last.py", "needle", symbol="Last", header="zebra okapi quagga", start=7, end=9)])
    answer = await corpus.asker.query(ANN, request("needle"))
    (behind,) = (row for row in answer.done.receipt if row["rank"] is None)
    assert behind["source"] == next(source.citation for source in answer.sources if source.file_path == "last.py")
    assert (behind["fate"], behind["alsoAt"]) == ("in_prompt", [])


@pytest.mark.asyncio
async def test_a_failure_before_the_first_token_is_raised() -> None:
    corpus = await corpus_of(ScriptedChatModel(failure=ChatModelUnavailableError("The model is away.")))
    with pytest.raises(ChatModelUnavailableError):
        await events(corpus, request("context budget"))


@pytest.mark.asyncio
async def test_a_failure_after_the_first_token_ends_the_stream_without_sources() -> None:
    model = ScriptedChatModel(["one ", "two"], failure=ChatModelError("The model failed."), fail_after=1)
    found = await events(await corpus_of(model), request("context budget"))
    assert found == [Token("one "), Failed("model_error", "The model failed.", "request-1")]
    with pytest.raises(ChatModelError):
        await (await corpus_of(model)).asker.query(ANN, request("context budget"))


@pytest.mark.asyncio
async def test_an_unexpected_failure_tells_no_detail(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(ScriptedChatModel):
        async def stream(self, prompt, *, temperature, max_tokens, report=None):  # type: ignore[no-untyped-def]
            yield "one "
            raise RuntimeError("password=hunter2")

    found = await events(await corpus_of(Broken()), request("context budget"))
    assert isinstance(found[-1], Failed)
    assert found[-1].code == "internal_error"
    assert "hunter2" not in found[-1].message


@pytest.mark.asyncio
async def test_a_silent_model_is_a_failure() -> None:
    with pytest.raises(ChatModelError, match="gave no answer"):
        await events(await corpus_of(ScriptedChatModel(["", "  "][:1])), request("context budget"))


@pytest.mark.asyncio
async def test_closing_the_stream_closes_the_model() -> None:
    model = ScriptedChatModel(["one ", "two"], gate=asyncio.Semaphore(0))
    stream = (await corpus_of(model)).asker.ask(ANN, request("context budget"))
    async with asyncio.timeout(5):
        assert await anext(stream) == Token("one ")
        await stream.aclose()
    assert model.ended == 1


@pytest.mark.asyncio
async def test_earlier_turns_reach_the_model() -> None:
    model = ScriptedChatModel(["[1]"])
    corpus = await corpus_of(model)
    await events(corpus, request("context budget", conversation=(Turn("user", "before"), Turn("assistant", "said"))))
    assert [message.content for message in model.prompts[0].messages()[1:3]] == ["before", "said"]


@pytest.mark.asyncio
async def test_a_corpus_that_may_not_be_known_does_not_exist() -> None:
    corpus = Corpus(settings=two_corpora())
    await corpus.index([chunk("a.py", "context budget", corpus="secret", readers=frozenset({"user:bob"}))])
    with pytest.raises(UnknownCorpusError) as hidden:
        await events(corpus, request("context budget", corpus="secret"), ANN)
    with pytest.raises(UnknownCorpusError) as missing:
        await events(corpus, request("context budget", corpus="absent"), ANN)
    assert str(hidden.value).replace("secret", "absent") == str(missing.value)
    answer = await corpus.asker.query(BOB, request("context budget"))
    assert [source.file_path for source in answer.sources] == ["a.py"]


@pytest.mark.asyncio
async def test_a_changed_file_makes_its_sources_stale(tmp_path: Path) -> None:
    same, changed = tmp_path / "same.py", tmp_path / "changed.py"
    same.write_text("needle one", encoding="utf-8")
    changed.write_text("needle two", encoding="utf-8")
    fresh = chunk("same.py", "needle one", header="needle", mtime_ns=same.stat().st_mtime_ns)
    old = chunk("changed.py", "needle 2", header="needle", mtime_ns=1)
    gone = chunk("gone.py", "needle three", header="needle")
    files = {"same.py": same, "changed.py": changed, "gone.py": tmp_path / "gone.py"}
    corpus = Corpus(chat=ScriptedChatModel(["[1]"]), files=files)
    await corpus.index([fresh, old, gone])
    answer = await corpus.asker.query(ANN, request("needle"))
    assert {source.file_path: source.stale for source in answer.sources} == {
        "same.py": False,
        "changed.py": True,
        "gone.py": True,
    }


@pytest.mark.asyncio
async def test_the_configured_temperature_wins_over_the_plan() -> None:
    seen: list[float] = []

    class Recording(ScriptedChatModel):
        def stream(self, prompt, *, temperature, max_tokens, report=None):  # type: ignore[no-untyped-def]
            seen.append(temperature)
            return super().stream(prompt, temperature=temperature, max_tokens=max_tokens)

    settings = Settings(retrieval=RetrievalSettings(gate="off"), chat=ChatSettings(temperature=0.7))
    await events(await corpus_of(Recording(["x"]), settings), request("context budget"))
    assert seen == [0.7]


@pytest.mark.asyncio
async def test_who_may_not_ask_is_refused_by_the_service_itself() -> None:
    corpus = await corpus_of(ScriptedChatModel())
    mute = Actor("mute", ANN.principals, frozenset({"ingest"}))
    with pytest.raises(PermissionDeniedError, match="'ask'"):
        await events(corpus, request("context budget"), mute)
    with pytest.raises(PermissionDeniedError, match="'ask'"):
        await corpus.searcher.search(mute, "context budget")
