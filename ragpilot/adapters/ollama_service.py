"""What Ollama's chat and embedding adapters share: its models, its refusals, and values as it wants them."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Any

import httpx

from ragpilot.adapters.http import Reply, Service, fetch
from ragpilot.errors import ConfigError, RagPilotError

CHATS, EMBEDS = "completion", "embedding"
KINDS = frozenset({CHATS, EMBEDS})
"""What RagPilot needs of a model, as the server calls it."""
GET_ONE = "ollama pull qwen2.5-coder:1.5b"
PULL = "Get it with: ollama pull "
PROBE_SECONDS = 10.0
"""For questions about models, which need none loaded."""

_TOO_LONG = re.compile(r"context (?:length|size|window)|too large|too long|physical batch size", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OllamaModel:
    """A model that the server has. ``digest`` changes when another one is pulled under the same name."""

    name: str
    digest: str
    context_length: int | None
    """Tokens it was made for; None where the server does not say."""
    capabilities: frozenset[str]
    """Such as ``completion``, ``embedding``, ``thinking``; empty from servers that do not say."""


def full_name(model: str) -> str:
    """``qwen3`` -> ``qwen3:latest``: as the server lists it."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def missing(service: Service, model: str, available: list[str] | None = None) -> RagPilotError:
    """The model is not on the server."""
    has = f" It has: {', '.join(sorted(available)[:12])}." if available else ""
    return service.unavailable(
        f"Ollama at {service.url} does not have the model {model}.{has}",
        hint=f"{PULL}{model}",
    )


def is_missing(error: RagPilotError) -> bool:
    """Whether an error says that the model is not on the server."""
    return error.hint.startswith(PULL)


def is_too_long(reply: Reply) -> bool:
    """Whether a refusal is about a text that exceeds the model's context."""
    return reply.status in {400, 413, 500} and bool(_TOO_LONG.search(reply.complaint()))


def refusal(service: Service, model: str, reply: Reply) -> RagPilotError:
    """The error of a status other than 200."""
    words = reply.complaint()
    if reply.status == httpx.codes.NOT_FOUND:
        if reply.body is None:
            return service.foreign("it answered 404 without Ollama's JSON")
        return missing(service, model)
    if reply.status in {401, 403}:
        return service.unavailable(
            f"Ollama at {service.url} refused the request ({reply.status}): {words}.",
            hint=f"Put its key into an environment variable and name that in {service.section}.api_key_env.",
        )
    if reply.status in {429, 502, 503, 504}:
        return service.unavailable(
            f"Ollama at {service.url} is busy or cannot load {model} ({reply.status}): {words}.",
            hint="Try again in a moment.",
        )
    if service.section == "chat" and is_too_long(reply):
        return service.failed(
            f"The prompt is longer than {model} reads at {service.url}: {words}.",
            hint="Lower prompt.context_budget and chat.context_window in config.toml, or raise Ollama's limit.",
        )
    return service.failed(f"Ollama at {service.url} failed with {model} ({reply.status}): {words}.")


def keep_alive_value(keep_alive: str) -> str | int:
    """``30m`` as it is, a bare number (seconds; negative: for ever) as the JSON number that Ollama wants.

    Raises:
        ConfigError: It is neither.
    """
    if re.fullmatch(r"-?\d+", keep_alive):
        return int(keep_alive)
    if re.fullmatch(r"-?(?:\d+(?:\.\d+)?(?:ms|s|m|h))+", keep_alive):
        return keep_alive
    raise ConfigError(
        f"keep_alive = {keep_alive!r} is no duration.", hint='Write "30m", "1h30m", a number of seconds, or "-1".'
    )


async def model_names(service: Service, client: httpx.AsyncClient) -> dict[str, str]:
    """Digest by name of every model on the server (``GET /api/tags``)."""
    reply = await _probe(service, client, "GET", "/api/tags")
    models = reply.body.get("models") if isinstance(reply.body, dict) else None
    if reply.status != httpx.codes.OK or not isinstance(models, list):
        raise _no_ollama(service, reply)
    return {str(model["name"]): str(model.get("digest", "")) for model in models if isinstance(model, dict)}


async def describe(service: Service, client: httpx.AsyncClient, model: str) -> OllamaModel:
    """What the server knows of ``model``. Raises the service's errors; one of them says ``ollama pull``."""
    names = await model_names(service, client)
    name = next((name for name in (full_name(model), model) if name in names), None)
    if name is None:
        raise missing(service, model, list(names))
    reply = await _probe(service, client, "POST", "/api/show", {"model": name})
    if reply.status != httpx.codes.OK or not isinstance(reply.body, dict):
        raise refusal(service, model, reply)
    info = reply.body.get("model_info") or {}
    return OllamaModel(
        name=name,
        digest=names[name].removeprefix("sha256:"),
        context_length=_number(info, ".context_length"),
        capabilities=frozenset(reply.body.get("capabilities") or ()),
    )


async def offers(service: Service, client: httpx.AsyncClient, most: int) -> dict[str, list[str]]:
    """Model -> which of ``KINDS`` it can do, as far as the server says; of the first ``most`` models by name."""
    names = sorted(await model_names(service, client))[:most]
    models = await asyncio.gather(*(describe(service, client, name) for name in names))
    return {model.name: sorted(KINDS & model.capabilities) for model in models}


def language_models(offered: dict[str, list[str]]) -> list[str]:
    """Those that can chat, or may."""
    return [name for name, kinds in offered.items() if CHATS in kinds or not kinds]


async def _probe(service: Service, client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Reply:
    try:
        return await fetch(service, client, method, path, seconds=PROBE_SECONDS, body=body)
    except TimeoutError:
        raise service.unavailable(
            f"Ollama at {service.url} did not answer {path} within {PROBE_SECONDS:g} s.", hint="See its log."
        ) from None


def _no_ollama(service: Service, reply: Reply) -> RagPilotError:
    if reply.status in {401, 403, 429, 500, 502, 503, 504}:
        return refusal(service, "its models", reply)
    return service.foreign(f"/api/tags gave status {reply.status} and no list of models")


def _number(info: dict[str, Any], suffix: str) -> int | None:
    """A value of ``model_info``, whose keys begin with the architecture's name."""
    found = next((value for key, value in info.items() if key.endswith(suffix)), None)
    return found if isinstance(found, int) and found > 0 else None
