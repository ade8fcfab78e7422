"""What a command works with: the running server of its state folder, or else the store, opened here."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from ragpilot.actors import command_token, resolve_actor
from ragpilot.bootstrap import Application, build
from ragpilot.cli_sharing import ENDS_WITH_ITS_RUN, shared
from ragpilot.config import CorpusSettings, Environment
from ragpilot.corpora import resolve_corpus
from ragpilot.errors import AuthenticationError, RagPilotError, ServerUnreachableError
from ragpilot.events import AnswerEvent
from ragpilot.ingest.plan import IngestPlan
from ragpilot.runtime import OwnerLock, Role, existing_token, find_server
from ragpilot.types import Actor, AskRequest, CorpusInfo, Health, IndexStats, IngestProgress, IngestReport
from tui.backend import Backend

IngestEvent = IngestProgress | IngestReport


class Session(Protocol):
    """One actor's access to one index. Raises RagPilotError."""

    @property
    def address(self) -> str | None:
        """The server's address; None where there is no server between."""
        ...

    def ask(self, question: str, *, top_k: int | None, corpus: str | None) -> AsyncGenerator[AnswerEvent, None]:
        """The events of one answer; closing it stops the answer."""
        ...

    async def search(self, question: str, *, k: int, corpus: str | None) -> dict[str, Any]:
        """Retrieval alone, in the form of ``POST /search``."""
        ...

    def index(
        self, corpus: str, *, path: Path | None, rebuild: bool, bodies: bool, broad: bool
    ) -> AsyncGenerator[IngestEvent, None]:
        """One run of ingestion; the last item is its report.

        A server leaves body vectors to its background, whatever ``bodies`` says. ``broad``: the user has said that
        a home folder is meant.
        """
        ...

    async def stats(self, corpus: str | None) -> IndexStats:
        """What is indexed, for this actor."""
        ...

    async def corpora(self) -> list[CorpusInfo]:
        """The corpora that this actor may know of."""
        ...

    async def health(self) -> dict[str, Health]:
        """Store, embedder and model by name."""
        ...


@asynccontextmanager
async def open_session(environment: Environment, role: Role, environ: Mapping[str, str]) -> AsyncIterator[Session]:
    """The running server of the state folder, or the store under the owner lock, until the block ends.

    Who only asks is answered by a run of `ragpilot index`, too, as long as it lasts.

    Raises StoreInUseError where another command holds the store, AuthenticationError for a token that is not known.
    """
    token = command_token(environ)
    record = await find_server(environment.state, indexing=role == "ask")
    if record is not None:
        local = None if environment.settings.actors else existing_token(environment.state)
        backend = Backend(record.address, token or local)
        try:
            yield ServerSession(backend)
        except RagPilotError as error:
            if record.idle_exit == ENDS_WITH_ITS_RUN and error.code in ("server_unreachable", "shutting_down"):
                raise ServerUnreachableError(
                    "The run of `ragpilot index` that answered has ended.", hint="Ask again."
                ) from error
            raise
        finally:
            await backend.aclose()
        return
    async with open_store(environment, role, environ) as (application, actor):
        yield StoreSession(application, actor)


@asynccontextmanager
async def open_store(
    environment: Environment, role: Role, environ: Mapping[str, str]
) -> AsyncIterator[tuple[Application, Actor]]:
    """The parts over the store, opened here, and who works on it. Raises as ``open_session`` does.

    What is asked is answered by the grants of now; a run of ingestion puts them in force by itself.
    """
    actor = store_actor(environment, command_token(environ), environ)
    async with open_parts(environment, role) as application:
        if role == "ask":
            await application.put_grants_in_force()
        yield application, actor


@asynccontextmanager
async def open_parts(environment: Environment, role: Role) -> AsyncIterator[Application]:
    """The parts over the store, opened here, for nobody in particular. Raises StoreInUseError."""
    embedded = environment.settings.store.kind == "embedded"
    with OwnerLock(environment.state, role) if embedded else nullcontext() as lock:
        async with AsyncExitStack() as opened:
            application = await opened.enter_async_context(build(environment))
            if lock is not None and role == "index":
                await opened.enter_async_context(shared(environment, application, lock))
            yield application


async def plan(
    environment: Environment, environ: Mapping[str, str], corpus: CorpusSettings, *, path: Path | None, broad: bool
) -> IngestPlan:
    """What a run would do. Reads files alone: neither server nor lock nor store is needed, and nothing is written.

    Raises PermissionDeniedError, AuthenticationError, RootError.
    """
    actor = store_actor(environment, command_token(environ), environ)
    chat = environment.settings.chat.model_copy(update={"kind": "extractive"})  # none is spoken to
    settings = environment.settings.model_copy(update={"chat": chat})
    async with build(environment.model_copy(update={"settings": settings})) as application:
        return await application.ingestion.plan(actor, corpus, path=path, allow_broad=broad)


class ServerSession:
    """Through the server, by HTTP."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.address: str | None = backend.base_url

    def ask(self, question: str, *, top_k: int | None, corpus: str | None) -> AsyncGenerator[AnswerEvent, None]:
        """See Session."""
        return self._backend.ask(question, top_k=top_k, corpus=corpus)

    async def search(self, question: str, *, k: int, corpus: str | None) -> dict[str, Any]:
        """See Session."""
        return await self._backend.search(question, k=k, corpus=corpus)

    def index(
        self, corpus: str, *, path: Path | None, rebuild: bool, bodies: bool, broad: bool
    ) -> AsyncGenerator[IngestEvent, None]:
        """See Session."""
        del bodies, broad  # the server fills vectors in its background, and guards its own roots
        return self._backend.index(corpus=corpus, path=None if path is None else str(path), rebuild=rebuild)

    async def stats(self, corpus: str | None) -> IndexStats:
        """See Session."""
        return await self._backend.stats(corpus)

    async def corpora(self) -> list[CorpusInfo]:
        """See Session."""
        return await self._backend.corpora()

    async def health(self) -> dict[str, Health]:
        """See Session."""
        return await self._backend.health()


class StoreSession:
    """Through the store, in this process."""

    address: str | None = None

    def __init__(self, application: Application, actor: Actor) -> None:
        self._application = application
        self._actor = actor

    def ask(self, question: str, *, top_k: int | None, corpus: str | None) -> AsyncGenerator[AnswerEvent, None]:
        """See Session."""
        request = AskRequest(question, request_id=str(uuid4()), top_k=top_k, corpus=corpus)
        return self._application.asker.ask(self._actor, request)

    async def search(self, question: str, *, k: int, corpus: str | None) -> dict[str, Any]:
        """See Session."""
        return await self._application.searcher.search(self._actor, question, k=k, corpus=corpus)

    async def index(
        self, corpus: str, *, path: Path | None, rebuild: bool, bodies: bool, broad: bool
    ) -> AsyncGenerator[IngestEvent, None]:
        """See Session."""
        # Before the corpus: who may not index at all is not to look for the right name.
        self._actor.need("ingest")
        settings = resolve_corpus(self._application.settings, self._actor, corpus)
        run = self._application.ingestion.run(
            self._actor, settings, path=path, rebuild=rebuild, bodies=bodies, allow_broad=broad
        )
        async with aclosing(run):
            async for event in run:
                yield event

    async def stats(self, corpus: str | None) -> IndexStats:
        """See Session."""
        return await self._application.status.stats(self._actor, corpus)

    async def corpora(self) -> list[CorpusInfo]:
        """See Session."""
        return await self._application.status.corpora(self._actor)

    async def health(self) -> dict[str, Health]:
        """See Session."""
        return await self._application.status.health()


def store_actor(environment: Environment, token: str | None, environ: Mapping[str, str]) -> Actor:
    """Who works on the store in this process.

    Who may open the state folder could read its token: without actors and without RAGPILOT_TOKEN, a command is what
    that token would make it, whether or not it was made yet. Raises AuthenticationError.
    """
    local = existing_token(environment.state) or secrets.token_urlsafe(32)
    if token is None and not environment.settings.actors:
        token = local
    try:
        return resolve_actor(environment.settings, token, local_token=local, environ=environ)
    except AuthenticationError as error:
        hint = "It is taken from RAGPILOT_TOKEN."
        raise AuthenticationError(error.message, hint=hint) from None
