"""Settings: the models of ``config.toml``. Pure: reading files and the environment is ``settings_loader``'s."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Strict = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

SCHEMA = "ragpilot/1"
EVERYONE = "team:everyone"
DEFAULT_PORT = 5200

Principal = Annotated[str, Field(pattern=r"^(user|team):[^\s:][^\s]*$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
PermissionName = Literal["ask", "ingest", "admin"]


class Section(BaseModel):
    """A table of the file: frozen, unknown keys refused."""

    model_config = Strict


class ServerSettings(Section):
    """``[server]``."""

    host: str = "127.0.0.1"
    """Address to listen on. Anything but loopback needs ``[[actors]]``."""
    port: Annotated[int, Field(ge=0, le=65535)] = DEFAULT_PORT
    cors_origin: str = "http://localhost:4200"
    """The one browser origin that may read answers."""
    allowed_hosts: list[str] = []
    """Further values of the Host header to accept, beside loopback names and ``host``."""
    max_body_bytes: Annotated[int, Field(ge=1024)] = 64 * 1024
    max_running: Annotated[int, Field(ge=1)] = 2
    """Answers of a language model that are generated at once; more wait."""
    max_waiting: Annotated[int, Field(ge=0)] = 8
    """Questions that may wait; more get 429."""
    keep_alive_seconds: Annotated[float, Field(gt=0)] = 15.0


class StoreSettings(Section):
    """``[store]``."""

    kind: Literal["embedded", "qdrant"] = "embedded"
    path: str | None = None
    """Folder of the embedded store; unset: inside the state folder."""
    url: str | None = None
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; the key itself never stands here."""
    shards: Annotated[int, Field(ge=1)] = 1
    replicas: Annotated[int, Field(ge=1)] = 1
    on_disk: bool = False
    quantization: Literal["none", "scalar"] = "none"


class EmbedderSettings(Section):
    """``[embedder]``."""

    kind: Literal["minilm", "fastembed", "ollama", "openai"] = "minilm"
    model: str | None = None
    url: str | None = None
    api_key_env: str | None = None


class ChatSettings(Section):
    """``[chat]``."""

    kind: Literal["auto", "extractive", "ollama", "openai", "llamacpp"] = "auto"
    model: str | None = None
    url: str | None = None
    api_key_env: str | None = None
    context_window: Annotated[int, Field(ge=1024)] = 8192
    keep_alive: str = "30m"
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    """Unset: the question's plan decides."""
    max_answer_tokens: Annotated[int, Field(ge=16)] = 1024
    first_token_seconds: Annotated[float, Field(gt=0)] = 300.0
    idle_seconds: Annotated[float, Field(gt=0)] = 60.0
    total_seconds: Annotated[float, Field(gt=0)] = 900.0


class RetrievalSettings(Section):
    """``[retrieval]``."""

    top_k: Annotated[int, Field(ge=1, le=50)] = 8
    min_score: Annotated[float, Field(ge=-1.0, le=1.0)] | None = None
    """The floor on raw cosine; unset: the embedder's own."""
    gate: Literal["auto", "off"] | Annotated[float, Field(ge=0.0, le=2.0)] = "auto"


class PromptSettings(Section):
    """``[prompt]``."""

    context_budget: Annotated[int, Field(ge=256, le=200_000)] = 6000
    """The most tokens that all context blocks together may take."""


class IngestSettings(Section):
    """``[ingest]``."""

    max_file_bytes: Annotated[int, Field(ge=1024)] = 1_000_000
    max_chunk_chars: Annotated[int, Field(ge=200, le=20_000)] = 1000


class GrantSettings(Section):
    """``[[corpora.grants]]``: who may read the documents under these globs; the last match wins."""

    paths: Annotated[list[str], Field(min_length=1)]
    readers: list[Principal]


class CorpusSettings(Section):
    """``[[corpora]]``."""

    name: Name = "default"
    roots: Annotated[list[str], Field(min_length=1)] = ["."]
    """Folders, absolute once loaded; relative ones in the file are the file's."""
    readers: list[Principal] = [EVERYONE]
    """Who may read a document that no grant matches."""
    grants: list[GrantSettings] = []


class ActorSettings(Section):
    """``[[actors]]``."""

    name: Name
    principals: list[Principal] = []
    permissions: list[PermissionName] = ["ask"]
    tokens: Annotated[list[str], Field(min_length=1)]
    """SHA-256 of each token in hexadecimal, or ``env:NAME``; never clear text."""


class LocalSettings(Section):
    """``[local]``: the actor of a request without a token, while no actors are configured."""

    principals: list[Principal] = [EVERYONE]


class RagSourceSettings(Section):
    """``[[sources]]``: a further RagSource."""

    name: Name
    module: str
    min_score: Annotated[float, Field(ge=-1.0, le=1.0)] | None = None


class Settings(Section):
    """Everything that can be configured, with its defaults."""

    schema_: Annotated[Literal["ragpilot/1"], Field(alias="schema")] = "ragpilot/1"
    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    chat: ChatSettings = ChatSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    prompt: PromptSettings = PromptSettings()
    ingest: IngestSettings = IngestSettings()
    local: LocalSettings = LocalSettings()
    corpora: list[CorpusSettings] = [CorpusSettings()]
    actors: list[ActorSettings] = []
    sources: list[RagSourceSettings] = []

    def corpus(self, name: str | None) -> CorpusSettings | None:
        """The corpus of that name; the first one for None; None where there is none."""
        if name is None:
            return self.corpora[0]
        return next((corpus for corpus in self.corpora if corpus.name == name), None)


class Environment(BaseModel):
    """Where the settings came from and where state lies: made once at the start, passed on."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    settings: Settings
    state: Path
    """The state folder of this configuration."""
    origins: dict[str, str] = {}
    """Dotted key -> file or variable that set it; what is not here is a default."""
    notes: list[str] = []
    """What the user should know of how the settings came about."""


def defaults() -> dict[str, Any]:
    """The defaults as the nested mapping that a file would hold."""
    return Settings().model_dump(by_alias=True)
