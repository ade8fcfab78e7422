"""Two indexes that differ only in what an actor may not read answer him alike, byte for byte.

Left out of the comparison are request ids and times alone. Errors and not-found answers are compared like all others.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from ragpilot.ports import ChunkStore
from ragpilot.types import Actor, TermStatistics
from tests.contract.folders import quick_folder
from tests.fakes import MemoryStore
from tests.security.doors import DOCUMENTS, HOLDS, KINDS, Door, World, get, post, readable, tool
from tests.security.worlds import inline_edge
from tests.server.support import Response

QUESTIONS = (
    "where is the budget of a retry?",
    "budget",
    "what is the difference between cache and parser?",
    "explain everything about budgets, retries, caches and tokens in depth",
    "CANARYBOB CANARYOPS CANARYATTIC CANARYVAULT",
    "how do I bake bread at home?",
    "hello",
    "summarise bob/budget.py",
)
ABSENT = str(uuid.UUID(int=7))

DOORS = [
    *(post("/ask", {"question": question}) for question in QUESTIONS),
    *(post("/ask", {"question": question, "topK": 50}, Accept="application/json") for question in QUESTIONS[:4]),
    post("/ask", {"question": QUESTIONS[0], "focus": ["bob/**", "ops/budget.py"], "page": "attic/budget.py"}),
    post("/ask", {"question": QUESTIONS[0], "corpus": "shop"}),
    post("/ask", {"question": QUESTIONS[0], "corpus": "vault"}),
    post("/ask", {"question": QUESTIONS[0], "corpus": "no-such"}),
    post("/ask", {"question": "x" * 16_001}),
    post("/ask", {"question": QUESTIONS[0], "topk": 3}),
    post("/ask", b"{"),
    post("/ask", b"{}", Content_Type="text/plain"),
    *(post("/search", {"question": question, "k": 200}) for question in QUESTIONS),
    post("/search", {"question": QUESTIONS[0], "corpus": "vault"}),
    get("/index/stats"),
    get("/index/stats?corpus=shop"),
    get("/index/stats?corpus=vault"),
    get("/index/stats?corpus=no-such"),
    get("/corpora"),
    *(get(f"/sources/{item.id}?context=3") for item in DOCUMENTS[:8]),
    get(f"/sources/{ABSENT}"),
    get(f"/sources/{DOCUMENTS[6].id}?corpus=vault"),
    get("/sources/not-an-id"),
    post("/index", {}, Accept="application/json"),
    post("/index", {"corpus": "vault", "path": "bob"}, Accept="application/json"),
    get("/health"),
    get("/no/such/path"),
    get("/ask"),
    tool("ask", question=QUESTIONS[0]),
    tool("ask", question=QUESTIONS[5]),
    tool("ask", question=QUESTIONS[0], corpus="vault"),
    *(tool("rag_query", question=question, limit=20, threshold=0) for question in QUESTIONS[:5]),
    tool("rag_query", question=QUESTIONS[0], collection="vault"),
    tool("rag_query", question=QUESTIONS[0], collection="no-such"),
    tool("rag_collections"),
    tool("rag_ingest", path="."),
    tool("rag_ingest", path="no-such", collection="vault"),
]

Fill = Callable[[World], Awaitable[None]]


def only(kind: str) -> Fill:
    """What the kind may read, and nothing that he may not: not even a collection where that is nothing."""
    return lambda world: world.fill(readable(kind))


async def everything(world: World) -> None:
    await world.fill(DOCUMENTS)


async def history(world: World) -> None:
    """Everything, by detours: documents came in another order, were other people's, or are gone again."""
    for item in reversed(DOCUMENTS):
        await world.fill([item])
        await world.grant(item, frozenset({"user:bob", "team:core", "team:ops"}))
    for item in DOCUMENTS:
        await world.grant(item, item.readers)
        if not item.readers:
            await world.remove(item)


async def responses(
    store: ChunkStore, fill: Fill, kinds: tuple[str, ...], doors: list[Door] = DOORS
) -> dict[str, list[Response]]:
    """What each kind is answered at every door of a server over a store that was filled so."""
    world = World(store)
    await fill(world)
    async with asyncio.timeout(100), world.serving() as server:
        found = {kind: [await door.knock(server, kind) for door in doors] for kind in kinds}
    await world.store.aclose()
    return found


Told = dict[tuple[str, str], list[tuple[int, dict[str, str], bytes]]]
"""Kind and way of filling -> what was answered at each door."""

UNLIKE = (
    (re.compile(rb'"(?:requestId|request_id)": ?"[0-9a-f-]+"'), b'"requestId":"ID"'),
    (re.compile(rb'"timings": ?\{[^{}]*\}'), b'"timings":{}'),
    (re.compile(rb'"latencyMs": ?[0-9.e-]+'), b'"latencyMs":0'),
)
"""Request ids, and times; wherever else an id stands, it is found by what the response's own header says."""
HEADERS_UNLIKE = {"date", "x-request-id", "content-length"}


def normal(response: Response, folder: Path) -> tuple[int, dict[str, str], bytes]:
    body = response.body.replace(str(folder).encode(), b"FOLDER") if folder.name else response.body
    body = body.replace(response.headers["x-request-id"].encode(), b"ID")
    for pattern, replacement in UNLIKE:
        body = pattern.sub(replacement, body)
    headers = {name: value for name, value in response.headers.items() if name not in HEADERS_UNLIKE}
    return response.status, headers, body


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The answers of all worlds."""
    found: Told = {}

    def note(name: str, fill: Fill, kinds: tuple[str, ...]) -> None:
        with quick_folder(tmp_path_factory) as folder:
            for kind, answers in asyncio.run(responses(inline_edge(folder), fill, kinds)).items():
                found[kind, name] = [normal(answer, folder) for answer in answers]

    note("everything", everything, KINDS)
    note("history", history, KINDS)
    nothing = tuple(kind for kind in KINDS if not HOLDS[kind])
    note("own", only("none"), nothing)
    for kind in KINDS:
        if kind not in nothing:
            note("own", only(kind), (kind,))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", ["everything", "history"])
def test_what_cannot_be_read_changes_no_byte(told: Told, other: str, kind: str) -> None:
    assert len(told[kind, "own"]) == len(DOORS)
    for door, one, same in zip(DOORS, told[kind, other], told[kind, "own"], strict=True):
        assert one == same, door


def test_a_source_that_may_not_be_read_is_refused_like_one_that_does_not_exist(
    told: Told,
) -> None:
    absent = get(f"/sources/{ABSENT}").path
    refused = next(at for at, door in enumerate(DOORS) if door.path == absent)
    for kind in ("nobody", "bob", "tess", "admin"):
        status, headers, body = told[kind, "everything"][refused]
        assert status == 404
        mine = {item.id for item in readable(kind)}
        for item in DOCUMENTS[:8]:
            if item.id not in mine and item.corpus == "shop":
                at = next(at for at, door in enumerate(DOORS) if door.path == f"/sources/{item.id}?context=3")
                assert told[kind, "everything"][at] == (
                    status,
                    headers,
                    body.replace(ABSENT.encode(), item.id.encode()),
                )


def test_a_corpus_that_may_not_be_known_is_refused_like_one_that_does_not_exist(
    told: Told,
) -> None:
    pairs = [
        (
            post("/ask", {"question": QUESTIONS[0], "corpus": "vault"}),
            post("/ask", {"question": QUESTIONS[0], "corpus": "no-such"}),
        ),
        (get("/index/stats?corpus=vault"), get("/index/stats?corpus=no-such")),
        (
            tool("rag_query", question=QUESTIONS[0], collection="vault"),
            tool("rag_query", question=QUESTIONS[0], collection="no-such"),
        ),
    ]
    for kind in ("nobody", "bob", "tess"):
        for hidden, absent in pairs:
            (one, other) = [told[kind, "everything"][DOORS.index(door)] for door in (hidden, absent)]
            assert (one[0], one[1], one[2].replace(b"vault", b"no-such")) == other


def test_the_comparison_sees_what_it_should(
    told: Told,
) -> None:
    """An index that differs in what may be read gives other answers, at the doors that show any of it."""
    unlike = {
        DOORS[at].entry
        for at, (one, other) in enumerate(zip(told["bob", "own"], told["tess", "own"], strict=True))
        if one != other
    }
    assert unlike >= {"POST /ask", "POST /search", "GET /index/stats", "GET /corpora", "tool ask", "tool rag_query"}
    answered = [body for _, _, body in told["tess", "own"]]
    assert b"CANARYCORE" in answered[0]
    assert b'"not_found"' in answered[5]


class SharedStatistics(MemoryStore):
    """Counts how rare a word is over everything."""

    async def term_statistics(self, actor: Actor, corpus: str, terms: Sequence[int]) -> TermStatistics:
        everyone = Actor("all", frozenset({"user:bob", "team:core", "team:ops"}))
        return await super().term_statistics(everyone, corpus, terms)


@pytest.mark.asyncio
async def test_the_comparison_sees_a_store_that_leaks() -> None:
    asked = [post("/ask", {"question": QUESTIONS[0]}), post("/search", {"question": QUESTIONS[0]})]
    for store, leaks in ((MemoryStore, False), (SharedStatistics, True)):
        own = (await responses(store(), only("tess"), ("tess",), asked))["tess"]
        other = (await responses(store(), everything, ("tess",), asked))["tess"]
        for one, same in zip(own, other, strict=True):
            assert (normal(one, Path("/")) != normal(same, Path("/"))) is leaks


@pytest.mark.asyncio
async def test_a_corpus_that_cannot_be_opened_is_named_to_nobody_who_may_not_know_of_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with quick_folder(tmp_path_factory) as folder:
        written = World(inline_edge(folder))
        await written.fill(DOCUMENTS)
        await written.store.aclose()
        (folder / "vault" / "collection.json").write_text("{")
        world = World(inline_edge(folder))
        async with asyncio.timeout(60), world.serving() as server:
            broken = await get("/index/stats?corpus=vault").knock(server, "admin")
            ill = {
                kind: await get("/health").knock(server, kind) for kind in ("none", "nobody", "bob", "tess", "admin")
            }
            asked = await post("/search", {"question": QUESTIONS[0]}).knock(server, "tess")
        await world.store.aclose()
    assert (broken.status, asked.status) == (503, 200)
    for kind, response in ill.items():
        assert response.status == 503
        assert (b"vault" in response.body) == (kind == "admin")
