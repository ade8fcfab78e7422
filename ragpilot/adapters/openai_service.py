"""What the adapters of OpenAI-compatible servers share: addresses, models, refusals."""

from __future__ import annotations

import re
from typing import Any

import httpx

from ragpilot.adapters.http import Reply, Service, fetch
from ragpilot.errors import ConfigError, RagPilotError

PROBE_SECONDS = 10.0
ENDPOINTS = {"chat": "chat/completions", "embedder": "embeddings"}

_TOO_LONG = re.compile(
    r"context (?:length|size|window)|maximum (?:context|input)|too (?:large|long)|physical batch size|exceed.*tokens",
    re.IGNORECASE,
)
_ENDPOINT = re.compile(r"/(?:chat/completions|completions|embeddings|models)$")
_VERSION = re.compile(r"/v\d+(?:beta\d*)?$")


def base_url(url: str) -> str:
    """The address that endpoints are joined to: ends with ``/v1`` (or another version that stands there).

    Raises:
        ConfigError: The address is no http or https one.
    """
    match = re.fullmatch(r"(https?://[^/?#\s]+)(/[^?#\s]*)?", url.strip(), re.IGNORECASE)
    if not match or "@" in match[1]:
        raise ConfigError(
            "The url of an OpenAI-compatible server must be like http://localhost:8080/v1, without user, '?' and '#'."
        )
    path = _ENDPOINT.sub("", re.sub(r"/{2,}", "/", match[2] or "").rstrip("/"))
    return match[1] + (path if _VERSION.search(path) else f"{path}/v1")


def is_too_long(reply: Reply) -> bool:
    """Whether a refusal is about a text that exceeds the model's context."""
    return reply.status in {400, 413, 422, 500} and bool(_TOO_LONG.search(reply.complaint()))


def refusal(service: Service, model: str, reply: Reply, endpoint: str | None = None) -> RagPilotError:
    """The error of a status other than 200; ``endpoint`` is what was asked, where it is not that of the section."""
    words = reply.complaint()
    section = service.section
    if reply.status in {401, 403}:
        return service.unavailable(
            f"{service.vendor} at {service.url} refused the key ({reply.status}): {words}.",
            hint=f"Put the key into an environment variable and name that variable in {section}.api_key_env.",
        )
    if reply.status == httpx.codes.NOT_FOUND:
        return service.unavailable(
            f"{service.vendor} has no such model or endpoint for {model}: "
            f"{service.url}/{endpoint or ENDPOINTS[section]} answered 404 ({words}).",
            hint=f"Check {section}.model and {section}.url in config.toml, to which /v1 is added where it names no "
            f"version; GET {service.url}/models lists its models.",
        )
    if reply.status in {429, 502, 503, 504}:
        return service.unavailable(
            f"{service.vendor} at {service.url} is busy or still loading ({reply.status}): {words}.",
            hint="Try again in a moment.",
        )
    if section == "chat" and is_too_long(reply):
        return service.failed(
            f"The prompt is longer than {model} reads at {service.url}: {words}.",
            hint="Lower chat.context_window and prompt.context_budget in config.toml, or start the server with more.",
        )
    return service.failed(f"{service.vendor} at {service.url} failed with {model} ({reply.status}): {words}.")


async def models(service: Service, client: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    """What the server lists (``GET /models``), by name. Raises the service's errors."""
    try:
        reply = await fetch(service, client, "GET", "models", seconds=PROBE_SECONDS)
    except TimeoutError:
        raise service.unavailable(
            f"{service.vendor} at {service.url} did not list its models within {PROBE_SECONDS:g} s."
        ) from None
    listed = reply.body.get("data") if isinstance(reply.body, dict) else None
    if reply.status != httpx.codes.OK:
        raise refusal(service, "its models", reply, "models")
    if not isinstance(listed, list):
        raise service.foreign("/models gave no list of models")
    return {str(model["id"]): model for model in listed if isinstance(model, dict) and "id" in model}


async def resolve_model(service: Service, client: httpx.AsyncClient, model: str | None) -> tuple[str, dict[str, Any]]:
    """The configured model, or the only one that the server has, with what the server says of it.

    A server that does not list a configured model may still have it (aliases, adapters): its answer will tell.
    Raises the service's errors; one of them lists the models where none is configured and there are several.
    """
    listed = await models(service, client)
    if model is not None:
        return model, listed.get(model, {})
    if len(listed) == 1:
        return next(iter(listed.items()))
    names = ", ".join(sorted(listed)[:12]) or "none"
    raise service.unavailable(
        f"{service.vendor} at {service.url} has these models: {names}.",
        hint=f"Set {service.section}.model in config.toml to one of them.",
    )


async def context_length(service: Service, client: httpx.AsyncClient, listed: dict[str, Any]) -> int | None:
    """Tokens that the server gives one request, where it says so: vLLM in its list, llama.cpp among its properties."""
    meta = listed.get("meta")
    found = listed.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else None)
    if found is None and listed.get("owned_by") == "llamacpp":
        address = service.url.removesuffix("/v1") + "/props"
        try:
            reply = await fetch(service, client, "GET", address, seconds=PROBE_SECONDS)
            found = reply.body["default_generation_settings"]["n_ctx"]
        except (TimeoutError, KeyError, TypeError):
            return None  # it can be asked for, but need not be answered
    return found if isinstance(found, int) and found > 0 else None
