from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ragpilot import routing
from ragpilot.config import CorpusSettings, RetrievalSettings, Settings
from ragpilot.events import Answer
from ragpilot.follow_up import Need, Topic, is_answerable, is_better_alone, topic_of
from ragpilot.found import Retrieval
from ragpilot.project_questions import LICENSE
from ragpilot.types import NOT_FOUND_ANSWER, Actor, Bounds, Outcome, Turn
from tests.builders import chunk, hit, request
from tests.corpus import Corpus
from tests.fakes import ANN, BOB, ScriptedChatModel

FIRST = "How does the throttle middleware limit requests?"


def talk(*exchanges: tuple[str, str]) -> tuple[Turn, ...]:
    return tuple(turn for asked, said in exchanges for turn in (Turn("user", asked), Turn("assistant", said)))


TALK = talk((FIRST, "By tokens; what waits stands in a backlog [1]."))


@pytest.mark.parametrize(
    "question",
    [
        "why?",
        "and then?",
        "explain this",
        "is it?",
        "how does that work?",
        "show me an example",
        "elaborate, please",
        "what happens then?",
        "what do you mean by that?",
        "I don't understand",
        "what is it good for?",
    ],
)
def test_what_names_nothing_needs_a_topic(question: str) -> None:
    assert topic_of(question, TALK) == Topic(FIRST, Need.ALWAYS)


@pytest.mark.parametrize(
    "question",
    [
        "what calls it?",
        "where are they tested?",
        "who sets this limit?",
        "which of these fail?",
        "what is the difference to the other one?",
        "which struct represents that?",
        "who else uses that class?",
        "and the second one?",
    ],
)
def test_what_points_back_has_a_topic(question: str) -> None:
    assert topic_of(question, TALK) == Topic(FIRST, Need.RATHER)


@pytest.mark.parametrize(
    "question",
    ["and the timeout?", "what about websockets?", "but when does the queue overflow?", "same for wildcards?"],
)
def test_what_names_something_beside_the_topic_has_it(question: str) -> None:
    assert topic_of(question, TALK) == Topic(FIRST, Need.BESIDE)


@pytest.mark.parametrize(
    "question", ["how do I install it?", "is this licensed?", "what happens when the backlog is full?"]
)
def test_what_may_stand_by_itself_has_a_topic_for_where_it_finds_nothing(question: str) -> None:
    assert topic_of(question, TALK) == Topic(FIRST, Need.IF_REFUSED)


@pytest.mark.parametrize(
    "question",
    [
        "Where are cookies parsed?",
        "what does this project do?",
        "which class parses the headers that clients send?",
        "Router.Mount",
        "what is in README.md",
        "URLParam",
        "who wrote hamlet?",
    ],
)
def test_what_stands_by_itself_has_no_topic(question: str) -> None:
    assert topic_of(question, TALK) is None


def test_without_an_earlier_question_there_is_no_topic() -> None:
    assert topic_of("why?", ()) is None
    assert topic_of("why?", (Turn("assistant", "Hello."), Turn("user", "  "))) is None


def test_the_topic_is_the_latest_question_that_stood_by_itself() -> None:
    later = talk((FIRST, "By tokens."), ("what calls it?", "The router."), ("why?", "So it is."))
    assert topic_of("and in the tests?", later) == Topic(FIRST, Need.BESIDE)
    changed = talk((FIRST, "By tokens."), ("Where are cookies parsed?", "In jar.go."), ("why?", "So it is."))
    assert topic_of("what calls it?", changed) == Topic("Where are cookies parsed?", Need.RATHER)
    assert topic_of("why?", talk(("what is it?", "A router."))) == Topic("what is it?", Need.ALWAYS)


def test_what_was_not_found_is_a_topic_only_where_nothing_was() -> None:
    refused = ("how do I bake bread?", NOT_FOUND_ANSWER)
    assert topic_of("what calls it?", talk((FIRST, "By tokens."), refused)) == Topic(FIRST, Need.RATHER)
    assert topic_of("why?", talk(refused)) == Topic("how do I bake bread?", Need.ALWAYS)


def test_what_was_named_beside_a_topic_is_the_topic_once_it_is_spoken_of() -> None:
    beside = "what about websockets?"
    moved = talk(
        (FIRST, "By tokens."), (beside, "Each websocket has a reader; its websocket is closed at the end [1].")
    )
    assert topic_of("who closes it?", moved) == Topic(beside, Need.RATHER, before="")
    stayed = talk((FIRST, "By tokens."), (beside, "The throttle takes a websocket for one of its requests [1]."))
    assert topic_of("who closes it?", stayed) == Topic(FIRST, Need.RATHER)


def test_a_topic_that_may_itself_go_on_from_another_question_has_that_before_it() -> None:
    later = "what happens when the backlog is full?"
    turns = (*TALK, *talk((later, "It waits.")))
    assert topic_of("why?", turns) == Topic(later, Need.ALWAYS, before=FIRST)
    turns = (*TALK, *talk(("Where are cookies parsed?", "In the jar.")))
    assert topic_of("why?", turns) == Topic("Where are cookies parsed?", Need.ALWAYS)


def test_turns_in_any_order_are_read() -> None:
    assert topic_of("why?", (Turn("assistant", "Hello."), Turn("user", FIRST))) == Topic(FIRST, Need.ALWAYS)
    assert topic_of("why?", (Turn("user", FIRST), Turn("user", " "), Turn("assistant", ""))) == Topic(
        FIRST, Need.ALWAYS
    )


def test_a_long_question_is_searched_for_again_in_part() -> None:
    found = topic_of("what calls it?", talk(("throttle " * 5_000, "By tokens.")))
    assert found is not None
    assert len(found.question) == 300


def test_what_is_about_something_else_stays_unanswered() -> None:
    assert not is_answerable("how does it make bread?", Need.RATHER, {"bread"})
    assert is_answerable("and which tests cover it?", Need.RATHER, {"cover"})
    assert is_answerable("what happens when the backlog is full?", Need.IF_REFUSED, {"happen"})
    assert not is_answerable("what's the best pizza topping?", Need.IF_REFUSED, {"pizza"})
    assert not is_answerable("how do I limit my spending?", Need.IF_REFUSED, {"spend"})
    assert is_answerable("why?", Need.ALWAYS, frozenset())


def found(path: str, text: str, evidence: float, *, header: str | None = None) -> Retrieval:
    hits = (hit(chunk(path, text, header=header)),)
    plan = routing.plan("why?", top_k=None, default_k=8, source_types=frozenset())
    return Retrieval(hits, Bounds(0.35, "default", 0.5, "default"), plan, evidence=evidence)


def test_what_only_the_project_has_is_asked_of_the_project() -> None:
    session = found("session.py", "sessions are signed in an open way", 0.8)
    licence = found("LICENSE", "Permission is granted.", 0.6, header=LICENSE)
    prose = found("sources.py", "open the sources", 0.6)
    assert is_better_alone("is it open source?", Need.RATHER, licence, session)
    assert not is_better_alone("is it open source?", Need.RATHER, prose, session)
    assert not is_better_alone("what is it?", Need.ALWAYS, licence, session)


def test_what_has_no_pronoun_must_be_spoken_of_where_the_topic_is() -> None:
    session = found("session.py", "sessions are signed", 0.8)
    nothing = replace(session, hits=())
    assert is_better_alone("where are my keys?", Need.RATHER, nothing, session)
    assert is_better_alone("who manages this building?", Need.RATHER, nothing, session)
    assert not is_better_alone("which sessions?", Need.RATHER, nothing, session)
    assert not is_better_alone("is it safe?", Need.RATHER, nothing, session)


# --- through the service

THROTTLE = chunk("web/throttle.py", "throttle middleware limits requests by tokens", header="throttle middleware")
JAR = chunk("web/jar.py", "cookies are parsed in the jar", header="cookie jar parsed")
CALLS = chunk("bob/calls.py", "bob calls throttle", header="calls throttle", readers=frozenset({"user:bob"}))


async def corpus_of(model: ScriptedChatModel) -> Corpus:
    readers = CorpusSettings(readers=["team:everyone", "user:bob"])
    settings = Settings(retrieval=RetrievalSettings(gate=0.5, min_score=0.3), corpora=[readers])
    corpus = Corpus(chat=model, settings=settings)
    await corpus.index([THROTTLE, JAR, CALLS])
    return corpus


async def answer(corpus: Corpus, question: str, *turns: Turn, actor: Actor = ANN) -> Answer:
    async with asyncio.timeout(10):
        return await corpus.asker.query(actor, request(question, conversation=turns))


@pytest.mark.asyncio
async def test_a_question_that_goes_on_is_answered_from_what_it_goes_on_from() -> None:
    model = ScriptedChatModel(["It does [1]."])
    corpus = await corpus_of(model)
    topic = "how does the throttle middleware limit requests"
    alone = await answer(corpus, "why?")
    assert alone.done.outcome is Outcome.NOT_FOUND
    assert "searched" not in alone.done.plan
    found = await answer(corpus, "why?", *talk((topic, "By tokens.")))
    assert [source.file_path for source in found.sources] == ["web/throttle.py"]
    assert found.done.plan["searched"] == f"{topic} why?"
    prompt = model.prompts[-1]
    assert prompt.question == "why?"
    assert prompt.messages()[-1].content.endswith("Question: why?")


@pytest.mark.asyncio
async def test_what_a_question_names_beside_the_topic_is_found_by_itself() -> None:
    corpus = await corpus_of(ScriptedChatModel(["There [1]."]))
    turns = talk(("how does the throttle middleware limit requests", "By tokens."))
    found = await answer(corpus, "and cookies parsed in jar?", *turns)
    assert [source.file_path for source in found.sources] == ["web/jar.py"]
    found = await answer(corpus, "and the tokens?", *turns)
    assert [source.file_path for source in found.sources] == ["web/throttle.py"]
    assert found.done.plan["searched"] == "how does the throttle middleware limit requests and the tokens?"


@pytest.mark.asyncio
async def test_what_a_topic_went_on_from_is_searched_too_where_the_two_find_nothing() -> None:
    corpus = await corpus_of(ScriptedChatModel(["There [1]."]))
    first, later = "throttle middleware limits requests by tokens", "which requests wait?"
    found = await answer(corpus, "why?", *talk((first, "By tokens."), (later, "They wait.")))
    assert [source.file_path for source in found.sources] == ["web/throttle.py"]
    assert found.done.plan["searched"] == f"{first} {later} why?"


@pytest.mark.asyncio
async def test_why_of_what_was_not_found_is_not_found() -> None:
    model = ScriptedChatModel()
    corpus = await corpus_of(model)
    found = await answer(corpus, "why?", *talk(("how do I bake bread?", NOT_FOUND_ANSWER)))
    assert found.done.outcome is Outcome.NOT_FOUND
    assert not model.prompts


@pytest.mark.asyncio
async def test_a_new_question_is_searched_by_itself() -> None:
    corpus = await corpus_of(ScriptedChatModel(["There [1]."]))
    turns = talk(("how does the throttle middleware limit requests", "By tokens."))
    found = await answer(corpus, "where is the cookie jar parsed?", *turns)
    assert [source.file_path for source in found.sources] == ["web/jar.py"]
    assert "searched" not in found.done.plan


@pytest.mark.asyncio
async def test_what_stands_nowhere_is_not_found_in_a_conversation_either() -> None:
    model = ScriptedChatModel()
    corpus = await corpus_of(model)
    turns = talk(("how does the throttle middleware limit requests", "By tokens."))
    for question in ("how does it bake bread?", "what is the capital of France?", "where are my cookies?", "thanks"):
        assert (await answer(corpus, question, *turns)).done.outcome is Outcome.NOT_FOUND
    assert not model.prompts


@pytest.mark.asyncio
async def test_a_conversation_opens_nothing_that_the_asker_may_not_read() -> None:
    corpus = await corpus_of(ScriptedChatModel(["There [1]."]))
    turns = talk(("bob calls throttle", "So he does."))
    for actor, readable in ((ANN, False), (BOB, True)):
        found = await answer(corpus, "what calls it?", *turns, actor=actor)
        assert ("bob/calls.py" in [source.file_path for source in found.sources]) is readable
