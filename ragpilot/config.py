"""Settings: the models of ``config.toml``. Pure: reading files and the environment is ``settings_loader``'s."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ragpilot.types import TOP_K_RANGE, Permission

Strict = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True)

SCHEMA = "ragpilot/1"
EVERYONE = "team:everyone"
DEFAULT_PORT = 5200


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on ``host``."""
    bare = host.removeprefix("[").removesuffix("]")
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return bare.lower() == "localhost"


def url_of(host: str, port: int) -> str:
    """Where this machine reaches a server that listens on ``host`` (loopback, if on any address) and ``port``."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound to
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def _url(value: str, example: str = "http://localhost:11434") -> str:
    """Normalise a service's address: no trailing slash, no doubled one, so that paths can be joined to it."""
    try:
        parts = urlsplit(value)
        credentials, named = parts.username or parts.password, bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError(f"is no address such as {example}") from None
    if parts.scheme not in {"http", "https"} or not named or re.search(r"[\s\x00-\x1f]", value):
        raise ValueError(f"is no address such as {example}")
    if credentials is not None:
        raise ValueError("may hold no user name or password; name the variable that holds the key in api_key_env")
    if parts.query or parts.fragment:
        raise ValueError("may hold no '?' and no '#'")
    path = re.sub(r"/{2,}", "/", parts.path).rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _store_url(value: str) -> str:
    return _url(value, "http://localhost:6333")


def _origin(value: str) -> str:
    """A browser origin, exactly as browsers send it; empty: no origin at all."""
    if value and not re.fullmatch(r"https?://[A-Za-z0-9.\-\[\]:]+(?<![:.])", value):
        raise ValueError("must be one origin such as http://localhost:4200: no path, no '*'; or empty for none")
    return value


def _token(value: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{64}|env:[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError("must be the SHA-256 of a token (64 hexadecimal digits) or env:NAME; never the token itself")
    return value if value.startswith("env:") else value.lower()


def _glob(value: str) -> str:
    """Braces are plain characters in gitignore's globs: who writes them to mean alternatives would grant nothing."""
    if "{" in value.replace("\\{", "") or "}" in value.replace("\\}", ""):
        raise ValueError(
            "may hold no '{' and no '}': there are no alternatives in braces; write one path for each, such as "
            '["a/**", "b/**"] for {a,b}/**, and \\\\{ for a brace in a name'
        )
    return value


def _granted(paths: list[str]) -> list[str]:
    if paths and paths[0].startswith("!"):
        raise ValueError(
            "may not begin with a path that has a leading '!': that takes out of what stands before it, and nothing "
            'does; name first what the grant is for, such as ["**", "!hr/**"], and \\\\! for a name that begins so'
        )
    return paths


def _words(words: str, *, secret: bool = False) -> dict[str, Any]:
    """What ``config_words`` tells a reader who got this value wrong; secret values are never quoted back."""
    return {"json_schema_extra": {"words": words, "secret": secret}}


Principal = Annotated[
    str, Field(pattern=r"^(user|team):[^\s:][^\s]*$", **_words('a principal such as "user:ann" or "team:core"'))
]
Name = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
        **_words("a name of at most 64 letters, digits, '.', '_' and '-' that begins with a letter or digit"),
    ),
]
Url = Annotated[str, AfterValidator(_url), Field(**_words("an address such as http://localhost:11434", secret=True))]
StoreUrl = Annotated[
    str, AfterValidator(_store_url), Field(**_words("an address such as http://localhost:6333", secret=True))
]
Origin = Annotated[str, AfterValidator(_origin)]
TokenHash = Annotated[str, AfterValidator(_token), Field(**_words("the SHA-256 of a token, or env:NAME", secret=True))]
VariableName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        **_words("the name of an environment variable that holds the key, never the key itself", secret=True),
    ),
]
HostName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9._:%\[\]-]+$",
        **_words('a host name or address without scheme, such as "127.0.0.1"'),
    ),
]
AllowedHost = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9._:%\[\]-]+$", **_words('a host name, with its port if it has one, such as "box:5200"')),
]
FolderPath = Annotated[str, Field(pattern=r"^[^\x00-\x1f]+$", **_words("the path of a folder"))]
Glob = Annotated[
    str, AfterValidator(_glob), Field(pattern=r"^[^\x00-\x1f]+$", **_words("a path pattern such as docs/**"))
]
Text = Annotated[str, Field(min_length=1, **_words("text that is not empty"))]
Score = Annotated[float, Field(ge=-1.0, le=1.0)]


class Section(BaseModel):
    """A table of the file: frozen, unknown keys refused."""

    model_config = Strict


class ServerSettings(Section):
    """``[server]``."""

    host: HostName = "127.0.0.1"
    """Address to listen on. Anything but loopback needs ``[[actors]]``."""
    port: Annotated[int, Field(ge=0, le=65535)] = DEFAULT_PORT
    """0: any free one."""
    cors_origin: Origin = "http://localhost:4200"
    """The one browser origin that may read answers; empty: none."""
    allowed_hosts: list[AllowedHost] = []
    """Further values of the Host header to accept, beside loopback names and ``host``."""
    max_body_bytes: Annotated[int, Field(ge=1024, le=64 * 1024 * 1024)] = 64 * 1024
    max_running: Annotated[int, Field(ge=1, le=1000)] = 2
    """Answers of a language model that are generated at once; more wait."""
    max_waiting: Annotated[int, Field(ge=0, le=100_000)] = 8
    """Questions that may wait; more get 429."""
    keep_alive_seconds: Annotated[float, Field(gt=0)] = 15.0
    """A comment goes out on a stream that was silent for so long."""


class StoreSettings(Section):
    """``[store]``."""

    kind: Literal["embedded", "qdrant"] = "embedded"
    path: FolderPath | None = None
    """Folder of the embedded store; unset: inside the state folder."""
    url: StoreUrl | None = None
    api_key_env: VariableName | None = None
    """Name of the environment variable that holds the key; the key itself never stands here."""
    shards: Annotated[int, Field(ge=1)] = 1
    replicas: Annotated[int, Field(ge=1)] = 1
    write_consistency: Annotated[int, Field(ge=1)] | None = None
    """Replicas that must have a write before it is acknowledged; unset: more than half."""
    on_disk: bool = False
    quantization: Literal["none", "scalar"] = "none"
    grpc_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Use gRPC at this port of the store's server; unset: REST."""
    collection_prefix: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9._-]{1,64}$", **_words("at most 64 letters, digits, '.', '_' and '-'")),
    ] = "ragpilot_"
    """Before the corpus in a collection's name: RagPilots that share a server and not their corpora differ in it."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 60.0
    """The longest wait for one call to the store's server."""


class EmbedderSettings(Section):
    """``[embedder]``."""

    kind: Literal["minilm", "fastembed", "ollama", "openai"] = "minilm"
    model: Text | None = None
    path: FolderPath | None = None
    """Folder of the model's files; unset: they are downloaded once into the state folder."""
    url: Url | None = None
    api_key_env: VariableName | None = None
    keep_alive: Text = "30m"
    """How long the model's server keeps it loaded."""
    timeout_seconds: Annotated[float, Field(gt=0)] = 300.0
    """The longest wait for one batch, loading the model included."""


KINDS_OF_A_FILE = frozenset({"llamacpp"})
"""Kinds of chat whose ``model`` is the path of a file."""


class ChatSettings(Section):
    """``[chat]``."""

    kind: Literal["auto", "extractive", "ollama", "openai", "llamacpp"] = "auto"
    """``auto``: the model server of this machine if it runs and has the model, else ``extractive``."""
    model: Text | None = None
    url: Url | None = None
    api_key_env: VariableName | None = None
    context_window: Annotated[int, Field(ge=1024)] = 8192
    """Tokens that prompt and answer may take together."""
    keep_alive: Text = "30m"
    """How long the model's server keeps it loaded after an answer."""
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    """Unset: the question's plan decides."""
    max_answer_tokens: Annotated[int, Field(ge=16)] = 1024
    first_token_seconds: Annotated[float, Field(gt=0)] = 300.0
    idle_seconds: Annotated[float, Field(gt=0)] = 60.0
    total_seconds: Annotated[float, Field(gt=0)] = 900.0


class RetrievalSettings(Section):
    """``[retrieval]``."""

    top_k: Annotated[int, Field(ge=TOP_K_RANGE[0], le=TOP_K_RANGE[1])] = 8
    min_score: Score | None = None
    """The floor on raw cosine; unset: the embedder's own."""
    gate: Literal["auto", "off"] | Annotated[float, Field(ge=0.0, le=2.0)] = "auto"


class PromptSettings(Section):
    """``[prompt]``."""

    context_budget: Annotated[int, Field(ge=256, le=200_000)] = 6000
    """The most tokens that all context blocks together may take."""


class IngestSettings(Section):
    """``[ingest]``."""

    max_file_bytes: Annotated[int, Field(ge=1024)] = 1_000_000
    """Larger files are left out, and the report says so."""
    max_chunk_chars: Annotated[int, Field(ge=200, le=20_000)] = 1000


class GrantSettings(Section):
    """``[[corpora.grants]]``: who may read the documents under these globs; the last match wins."""

    paths: Annotated[list[Glob], AfterValidator(_granted), Field(min_length=1)]
    readers: list[Principal]


class CorpusSettings(Section):
    """``[[corpora]]``."""

    name: Name = "default"
    roots: Annotated[list[FolderPath], Field(min_length=1)] = ["."]
    """Folders, absolute once loaded; relative ones in the file are the file's."""
    readers: list[Principal] = [EVERYONE]
    """Who may read a document that no grant matches."""
    grants: list[GrantSettings] = []


class ActorSettings(Section):
    """``[[actors]]``."""

    name: Name
    principals: list[Principal] = []
    permissions: list[Permission] = ["ask"]
    corpus: Name | None = None
    """The corpus of a request that names none; unset: the first one that the actor may know of."""
    tokens: Annotated[list[TokenHash], Field(min_length=1)]
    """SHA-256 of each token in hexadecimal, or ``env:NAME``; never clear text."""


class LocalSettings(Section):
    """``[local]``: the actor of a request without a token, while no actors are configured."""

    principals: list[Principal] = [EVERYONE]


class RagSourceSettings(Section):
    """``[[sources]]``: a further RagSource."""

    name: Name
    module: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*)?$",
            **_words('a module, and a class in it, such as "my_package.wiki:WikiSource"'),
        ),
    ]
    min_score: Score | None = None


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
    corpora: Annotated[list[CorpusSettings], Field(min_length=1)] = [CorpusSettings()]
    actors: list[ActorSettings] = []
    sources: list[RagSourceSettings] = []

    @model_validator(mode="after")
    def _names_are_unique(self) -> Settings:
        for table, names in (
            ("corpora", [corpus.name for corpus in self.corpora]),
            ("actors", [actor.name for actor in self.actors]),
            ("sources", [source.name for source in self.sources]),
        ):
            if name := _repeated(name.casefold() for name in names):
                raise ValueError(f"{table} names {name!r} twice (upper and lower case count as one)")
        if _repeated(token for actor in self.actors for token in set(actor.tokens)):
            raise ValueError("actors gives two actors the same token; nobody could tell them apart")
        return self

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
    """The state folder of this configuration; it exists only once something was written."""
    home: Path | None = None
    """Holds the state folders of all configurations; None: the folder above ``state``."""
    directory: Path = Path()
    """The working folder that this was loaded for, absolute."""
    config: str | None = None
    """The file that ``--config`` named, as an absolute path; None where it was not given."""
    files: list[str] = []
    """The configuration files in force, each over the one before."""
    looked_at: dict[str, str] = {}
    """Every file that decided on these settings, also by being absent, and its state (``files.file_state``) before it
    was read. Empty for settings that came from no files."""
    origins: dict[str, str] = {}
    """Dotted key -> file or variable that set it; what is not here is a default."""
    notes: list[str] = []
    """What the user should know of how the settings came about."""

    @property
    def shared(self) -> Path:
        """The folder of what all of this user's configurations share."""
        return self.home or self.state.parent


def contradictions(settings: Settings) -> list[tuple[str, str]]:
    """What no key alone gets wrong: dotted key and sentence, judged once every file and variable has spoken."""
    found = []
    if not settings.actors and not is_loopback(settings.server.host):
        found.append(
            (
                "server.host",
                f"server.host = {settings.server.host!r} would let other machines ask without a token; "
                "without [[actors]] only loopback is allowed. With them, server.allowed_hosts names what others call "
                "this machine.",
            )
        )
    for corpus in settings.corpora:
        roots = [PurePath(root) for root in corpus.roots]
        for place, root in enumerate(roots):
            if any(other in (root, *root.parents) for at, other in enumerate(roots) if at != place):
                sentence = f"the corpus {corpus.name!r} has the root {root} inside another of its roots."
                found.append(("corpora", sentence))
                break
    return found


def _repeated(items: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None
