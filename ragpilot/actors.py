"""Who asks: a token to an actor (DESIGN section 6)."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping

from ragpilot.config import ActorSettings, Settings
from ragpilot.errors import AuthenticationError
from ragpilot.types import Actor, Permission

LOCAL_NAME = "local"
REFUSED = "The token is missing or not known."
SHORTEST_TOKEN = 16
"""Of those that people choose for themselves, in characters; ours have 46."""

OWNER = Actor("owner", frozenset(), frozenset({"ingest"}))
"""Whoever owns configuration and store, where the one is brought in line with the other: can read nothing."""


def command_token(environ: Mapping[str, str]) -> str | None:
    """What RAGPILOT_TOKEN says, without the blanks and line ends that a file or a shell puts around it.

    None where it says nothing. Raises AuthenticationError for what could not even be sent as a token.
    """
    token = environ.get("RAGPILOT_TOKEN", "").strip()
    if all("!" <= character <= "~" for character in token):
        return token or None
    what = "a blank, a line end or a control character inside" if token.isascii() else "characters beyond ASCII"
    raise AuthenticationError(f"RAGPILOT_TOKEN holds {what}, as no token does.", hint="Set it to one token alone.")


def weak_variables(settings: Settings, variables: Mapping[str, str]) -> list[str]:
    """A sentence for each ``env:`` token whose variable holds what could be guessed."""
    return [
        f"The token of the actor {actor!r} in {name} has fewer than {SHORTEST_TOKEN} characters, which is too weak."
        for actor, name in _token_variables(settings)
        if 0 < len(variables.get(name, "").strip()) < SHORTEST_TOKEN
    ]


def unset_variables(settings: Settings, variables: Mapping[str, str]) -> list[str]:
    """A sentence for each ``env:`` token whose variable holds nothing: nobody comes in with it."""
    return [
        f"{name} is not set: the actor {actor!r} has no token by it"
        for actor, name in _token_variables(settings)
        if not variables.get(name, "").strip()
    ]


def _token_variables(settings: Settings) -> list[tuple[str, str]]:
    return [
        (actor.name, known.removeprefix("env:"))
        for actor in settings.actors
        for known in actor.tokens
        if known.startswith("env:")
    ]


def new_token() -> str:
    """A token for an actor: 32 random bytes, as a text that a header and a shell take as it is."""
    return f"rp_{secrets.token_urlsafe(32)}"


def token_hash(token: str) -> str:
    """What stands for a token in the configuration: its SHA-256 in hexadecimal."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def resolve_actor(
    settings: Settings,
    token: str | None,
    *,
    local_token: str | None,
    environ: Mapping[str, str] | None = None,
) -> Actor:
    """The actor that ``token`` stands for.

    With actors configured there is no anonymous access, and the local token means nothing. Without, no token is
    the local actor, who may ask, and the local token adds ``ingest`` and ``admin``. The time this takes depends on
    how many tokens are configured, not on which of them matches.

    Args:
        settings: The settings in force.
        token: What stands behind ``Bearer`` or in RAGPILOT_TOKEN; None where nothing does.
        local_token: The token of the state folder; None where there is none.
        environ: Where ``env:NAME`` is looked up; None: the process's environment.

    Raises:
        AuthenticationError: Missing, malformed or unknown, in the same words.
    """
    if not settings.actors:
        return _local(settings, token, local_token)
    presented = token_hash(token or "")
    variables = os.environ if environ is None else environ
    matches = [actor for actor in settings.actors for known in actor.tokens if _matches(presented, known, variables)]
    # Two variables may come to hold one token; who it stands for is then not known, so it stands for nobody.
    if not token or len({actor.name for actor in matches}) != 1:
        raise AuthenticationError(REFUSED)
    return _configured(matches[0])


def _local(settings: Settings, token: str | None, local_token: str | None) -> Actor:
    principals = frozenset(settings.local.principals)
    if token is None:
        return Actor(LOCAL_NAME, principals, frozenset({"ask"}))
    if not hmac.compare_digest(token_hash(token), token_hash(local_token or "")) or not local_token:
        raise AuthenticationError(REFUSED)
    return Actor(LOCAL_NAME, principals, frozenset({"ask", "ingest", "admin"}))


def _configured(actor: ActorSettings) -> Actor:
    permissions: frozenset[Permission] = frozenset(actor.permissions)
    return Actor(actor.name, frozenset(actor.principals), permissions, actor.corpus)


def _matches(presented: str, known: str, variables: Mapping[str, str]) -> bool:
    if not known.startswith("env:"):
        return hmac.compare_digest(presented, known)
    clear = variables.get(known.removeprefix("env:"), "").strip()
    return hmac.compare_digest(presented, token_hash(clear)) and bool(clear)
