"""Every error that RagPilot raises on purpose.

RagPilotError                     what happened, and ``hint``: what to do next
├── ConfigError                   a configuration file, key or environment variable is wrong
│   └── UntrustedConfigError      a config.toml that came with a repository wants more than it may
├── StateError                    the state folder or a file in it cannot be used
│   └── StateFullError            its disk is full
├── InvalidRequestError           a request's field breaks a rule; ``field`` names it
├── AuthenticationError           no actor: the token is missing where one is needed, malformed or unknown
├── PermissionDeniedError         the actor is known and may not
├── UnknownCorpusError            no such corpus, or none that the actor may know of
├── UnknownSourceError            no such chunk, or none that the actor may read
├── IndexMismatchError            the collection was built by another embedder or chunker
├── OverloadedError               too many questions at once; ``retry_after`` in seconds
├── StoreError                    the store failed
│   ├── StoreUnavailableError     it cannot be reached, or its process died
│   ├── StoreFullError            its disk has no room for a write; what is there can be read
│   ├── StoreInUseError           another process owns it; the message says which
│   └── StoreDamagedError         its files cannot be read
├── EmbedderError                 the embedder failed
│   ├── EmbedderUnavailableError  it cannot be reached or loaded
│   └── TextsNotEmbeddedError     it refused some texts of a call; ``vectors`` holds those of the others
├── ChatModelError                the chat model failed
│   ├── ChatModelUnavailableError it cannot be reached or lacks the model
│   └── ChatModelTimeoutError     no first token, a silent stream, or an answer past the total limit
├── IngestError                   a run cannot start or go on
│   ├── RootError                 a root is missing, no folder, holds nothing, or may not be indexed
│   └── IngestRunningError        another run is under way
└── ServerUnreachableError        a client finds no RagPilot server, or lost it in mid-answer

``code`` is the word that clients see; messages are written for the person who reads them and hold no secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


class RagPilotError(Exception):
    """The root of the tree. ``message`` says what happened; ``hint``, what to do next."""

    code: ClassVar[str] = "internal_error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class ConfigError(RagPilotError):
    """A configuration file, key or environment variable is wrong."""

    code = "config_error"


class UntrustedConfigError(ConfigError):
    """A config.toml found in the working folder sets what only a trusted one may."""

    code = "untrusted_config"


class StateError(RagPilotError):
    """The state folder, or a file in it, cannot be written, or is not ours alone."""

    code = "state_error"


class StateFullError(StateError):
    """The disk of the state folder is full."""

    code = "state_full"


class InvalidRequestError(RagPilotError):
    """A request's field breaks a rule; ``field`` is its name on the wire."""

    code = "invalid_request"

    def __init__(self, message: str, *, field: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.field = field


class AuthenticationError(RagPilotError):
    """No actor could be resolved. Says nothing about why."""

    code = "unauthenticated"


class PermissionDeniedError(RagPilotError):
    """The actor is known and may not do this."""

    code = "forbidden"


class UnknownCorpusError(RagPilotError):
    """No such corpus, or none that the actor may know of: the same words for both."""

    code = "unknown_corpus"

    def __init__(self, corpus: str) -> None:
        super().__init__(f"There is no corpus {corpus!r}.", hint="GET /corpora lists those you may ask about.")


class UnknownSourceError(RagPilotError):
    """No such chunk, or none that the actor may read: the same words for both."""

    code = "unknown_source"


class IndexMismatchError(RagPilotError):
    """The collection was built by another embedder or chunker; it is never mixed."""

    code = "index_mismatch"


class OverloadedError(RagPilotError):
    """Too many questions at once."""

    code = "overloaded"

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StoreError(RagPilotError):
    """The store failed."""

    code = "store_error"


class StoreUnavailableError(StoreError):
    """The store cannot be reached, or its process died."""

    code = "store_unavailable"


class StoreFullError(StoreError):
    """The store's disk has no room for a write; nothing of it was done, and what is there can be read."""

    code = "store_full"


class StoreInUseError(StoreError):
    """Another process owns the store; the message says which."""

    code = "store_in_use"


class StoreDamagedError(StoreError):
    """The store's files cannot be read; the message names the folder and the command that rebuilds."""

    code = "store_damaged"


class EmbedderError(RagPilotError):
    """The embedder failed."""

    code = "embedder_error"


class EmbedderUnavailableError(EmbedderError):
    """The embedder cannot be reached or loaded."""

    code = "embedder_unavailable"


class TextsNotEmbeddedError(EmbedderError):
    """The embedder refused some texts of a call, each alone; asking again would change nothing.

    ``vectors`` has one entry a text, in order: its vector, or None for a refused one.
    """

    def __init__(self, message: str, *, vectors: Sequence[Any], hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.vectors = vectors


class ChatModelError(RagPilotError):
    """The chat model failed."""

    code = "model_error"


class ChatModelUnavailableError(ChatModelError):
    """The chat model's service cannot be reached, or lacks the model."""

    code = "model_unavailable"


class ChatModelTimeoutError(ChatModelError):
    """No first token, a silent stream, or an answer past the total limit; the message names the limit."""

    code = "model_timeout"


class IngestError(RagPilotError):
    """A run of ingestion cannot start or go on."""

    code = "ingest_error"


class RootError(IngestError):
    """A root is missing, no folder, holds nothing to index, or may not be indexed."""

    code = "bad_root"


class IngestRunningError(IngestError):
    """Another run is under way on this corpus."""

    code = "ingest_running"


class ServerUnreachableError(RagPilotError):
    """No RagPilot server answers: refused, reset, silent, another program's, or an answer that broke off."""

    code = "server_unreachable"
