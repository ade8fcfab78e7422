"""Every way into a running server, six kinds of actor, and an index in which each of them may read something else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from ragpilot.actors import token_hash
from ragpilot.config import ActorSettings, CorpusSettings, GrantSettings, RetrievalSettings, Settings
from ragpilot.ports import ChatModel, ChunkStore
from ragpilot.types import Chunk, IngestScope, Permission, Prompt
from server.app import create_app
from tests.builders import chunk
from tests.corpus import Corpus
from tests.fakes import OPERATOR, ScriptedChatModel
from tests.security.worlds import gated_embedder
from tests.server.agents import HEADERS, message
from tests.server.support import LOCAL_TOKEN, Response, Running, ScriptedIngestion, bearer, running

KINDS = ("none", "unknown", "nobody", "bob", "tess", "admin")
"""No token, one that is not known, an actor without principals, one user, a member of a team, an administrator."""

HOLDS: dict[str, frozenset[str] | None] = {
    "none": None,
    "unknown": None,
    "nobody": frozenset(),
    "bob": frozenset({"user:bob"}),
    "tess": frozenset({"team:core"}),
    "admin": frozenset({"team:ops"}),
}
MAY: dict[str, tuple[Permission, ...]] = {
    "nobody": ("ask",),
    "bob": ("ask",),
    "tess": ("ask",),
    "admin": ("ask", "ingest", "admin"),
}


def settings(**sections: Any) -> Settings:
    """Actors of every kind, a corpus with grants, and one that only the administrator may know of."""
    grants = [
        GrantSettings(paths=["bob/**"], readers=["user:bob"]),
        GrantSettings(paths=["ops/**"], readers=["team:ops"]),
        GrantSettings(paths=["shared/**"], readers=["team:core", "user:bob"]),
        GrantSettings(paths=["attic/**"], readers=[]),
    ]
    actors = [
        ActorSettings(
            name=name, principals=sorted(HOLDS[name] or ()), permissions=list(may), tokens=[token_hash(token_of(name))]
        )
        for name, may in MAY.items()
    ]
    corpora = [
        CorpusSettings(name="shop", readers=["team:core"], grants=grants),
        CorpusSettings(name="vault", readers=["team:board"]),
    ]
    return Settings(**{"retrieval": RetrievalSettings(min_score=0.2), "corpora": corpora, "actors": actors, **sections})


def token_of(kind: str) -> str:
    return f"token-of-{kind}"


def headers_of(kind: str) -> dict[str, str]:
    return {} if kind == "none" else bearer(token_of(kind))


def document(path: str, canary: str, *readers: str, corpus: str = "shop", **given: Any) -> Chunk:
    """A document about budgets and retries like all the others, with a word that stands nowhere else."""
    text = f"def budget(retry):\n    # {canary} cache walk parser token\n    return retry * {len(canary)}"
    header = given.pop("header", f"budget retry {path.replace('/', ' ').replace('.', ' ')}")
    return chunk(path, text, header=header, symbol="budget", corpus=corpus, readers=frozenset(readers), **given)


DOCUMENTS = [
    document("core/budget.py", "CANARYCORE", "team:core"),
    document("bob/budget.py", "CANARYBOB", "user:bob", indexed_at=1_800_000_000),
    document("core/retry.py", "CANARYRETRY", "team:core", source_type="docs-markdown"),
    document("ops/budget.py", "CANARYOPS", "team:ops", indexed_at=1_900_000_000),
    document("shared/budget.py", "CANARYSHARED", "team:core", "user:bob"),
    document("attic/budget.py", "CANARYATTIC", header="budget retry"),
    document("vault/budget.py", "CANARYVAULT", "team:board", corpus="vault", header="budget retry"),
    # A near-duplicate of what tess may read, which she may not.
    document("bob/copy.py", "CANARYCORE", "user:bob", header="budget retry core budget py"),
    *(document(f"ops/more{n}.py", f"CANARYMORE{n}", "team:ops", header="budget retry cache") for n in range(40)),
    *(document(f"bob/own{n}.py", f"CANARYOWN{n}", "user:bob", start=n + 1, end=n + 9) for n in range(5)),
]


def readable(kind: str, documents: Iterable[Chunk] = DOCUMENTS) -> list[Chunk]:
    """What a kind may read: said here once more, apart from any store."""
    holds = HOLDS[kind] or frozenset()
    return [item for item in documents if item.readers & holds]


def canaries(documents: Iterable[Chunk]) -> set[str]:
    return {word for item in documents for word in item.text.split() if word.startswith("CANARY")}


class EchoModel(ScriptedChatModel):
    """Answers with everything that it was told, word for word."""

    async def stream(self, prompt: Prompt, **given: Any) -> AsyncIterator[str]:
        self.pieces = [f"{said.role}: {said.content}\n" for said in prompt.messages()] + ["It is [1]."]
        async for piece in super().stream(prompt, **given):
            yield piece


class World(Corpus):
    """The services of a server over a store of one's own."""

    def __init__(self, store: ChunkStore, *, chat: ChatModel | None = None, given: Settings | None = None) -> None:
        super().__init__(
            chat=chat or EchoModel(context_window=200_000),
            settings=given or settings(),
            store=store,  # type: ignore[arg-type]
            embedder=gated_embedder(64),
        )
        self.ingestion = ScriptedIngestion()

    async def fill(self, documents: Iterable[Chunk]) -> None:
        for item in documents:
            # Vectors of some are not in yet: their headers are embedded at the question.
            place = DOCUMENTS.index(item)
            await self.index([item], headers=place % 4 != 1, bodies=place % 3 != 1)

    async def grant(self, item: Chunk, readers: frozenset[str]) -> None:
        await self.store.set_readers(IngestScope(OPERATOR, item.corpus), {item.document_id: readers})

    async def remove(self, item: Chunk) -> None:
        await self.store.delete_documents(IngestScope(OPERATOR, item.corpus), [item.document_id])

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Running]:
        async with running(create_app(self, local_token=LOCAL_TOKEN)) as server:
            yield server


@dataclass(frozen=True)
class Door:
    """One request. ``entry`` is the route or tool that it goes through, as the running application names them."""

    entry: str
    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)

    async def knock(self, server: Running, kind: str) -> Response:
        return await server.call(self.method, self.path, self.body, {**self.headers, **headers_of(kind)})


def post(path: str, body: dict[str, Any] | bytes, **headers: str) -> Door:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Door(
        f"POST {path}", "POST", path, content, {name.replace("_", "-"): value for name, value in headers.items()}
    )


def get(path: str, entry: str = "") -> Door:
    return Door(entry or f"GET {path.partition('?')[0]}", "GET", path)


def tool(name: str, **arguments: Any) -> Door:
    """A call of a tool for agents."""
    params = {"name": name, "arguments": arguments}
    return Door(f"tool {name}", "POST", "/mcp", message("tools/call", params), HEADERS)


ACCESS: dict[str, Permission | None] = {
    "POST /ask": "ask",
    "POST /search": "ask",
    "GET /index/stats": "ask",
    "GET /corpora": "ask",
    "GET /sources/<chunk_id>": "ask",
    "POST /index": "ingest",
    "GET /health": None,
    "tool ask": "ask",
    "tool rag_query": "ask",
    "tool rag_collections": "ask",
    "tool rag_ingest": "ingest",
}
"""Every route and every tool, and the permission that it asks for."""

QUESTION = {"question": "where is the budget of a retry?"}
DOORS = [
    post("/ask", {**QUESTION, "topK": 50}),
    post("/ask", {**QUESTION, "topK": 50}, Accept="application/json"),
    post("/search", {**QUESTION, "k": 200}),
    get("/index/stats"),
    get("/corpora"),
    *(get(f"/sources/{item.id}", "GET /sources/<chunk_id>") for item in DOCUMENTS[:7]),
    post("/index", {}, Accept="application/json"),
    get("/health"),
    tool("ask", **QUESTION, topK=50),
    tool("rag_query", **QUESTION, limit=20, threshold=0),
    tool("rag_collections"),
    tool("rag_ingest", path="."),
]
