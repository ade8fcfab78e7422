"""A token to an actor."""

from __future__ import annotations

import contextlib
import hashlib
import hmac

import pytest

from ragpilot.actors import resolve_actor, unset_variables
from ragpilot.config import Settings
from ragpilot.errors import AuthenticationError
from ragpilot.types import Actor

LOCAL = "local-token"


def sha(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


SETTINGS = Settings.model_validate(
    {
        "local": {"principals": ["user:me"]},
        "actors": [
            {
                "name": "ann",
                "principals": ["user:ann", "team:core"],
                "permissions": ["ask", "ingest"],
                "tokens": [sha("one"), sha("two").upper()],
            },
            {"name": "bob", "tokens": ["env:BOB_TOKEN"]},
            {"name": "eve", "tokens": ["env:EVE_TOKEN"]},
        ],
    }
)
ENVIRON = {"BOB_TOKEN": "bobs", "EVE_TOKEN": ""}


def resolve(token: str | None, settings: Settings = SETTINGS, local_token: str | None = LOCAL) -> Actor:
    return resolve_actor(settings, token, local_token=local_token, environ=ENVIRON)


def refused(token: str | None, settings: Settings = SETTINGS, local_token: str | None = LOCAL) -> str:
    with pytest.raises(AuthenticationError) as caught:
        resolve(token, settings, local_token)
    return str(caught.value)


def test_without_actors_no_token_is_the_local_actor_who_may_ask() -> None:
    actor = resolve(None, Settings())
    assert actor == Actor("local", frozenset({"team:everyone"}), frozenset({"ask"}))


def test_the_local_actors_principals_are_configured() -> None:
    settings = Settings.model_validate({"local": {"principals": []}})
    assert resolve(None, settings).principals == frozenset()


def test_the_local_token_adds_ingest_and_admin_and_no_principal() -> None:
    actor = resolve(LOCAL, Settings())
    assert actor == Actor("local", frozenset({"team:everyone"}), frozenset({"ask", "ingest", "admin"}))


@pytest.mark.parametrize("token", ["", " ", "x", "local-token ", "LOCAL-TOKEN", "é", "\udc80", sha(LOCAL)])
def test_an_unknown_token_is_no_anonymous(token: str) -> None:
    assert refused(token, Settings()) == refused(token)


@pytest.mark.parametrize("local_token", [None, ""])
def test_without_a_local_token_none_matches(local_token: str | None) -> None:
    refused("", Settings(), local_token)
    refused("x", Settings(), local_token)


def test_each_of_an_actors_tokens_stands_for_it() -> None:
    ann = Actor("ann", frozenset({"user:ann", "team:core"}), frozenset({"ask", "ingest"}))
    assert resolve("one") == ann
    assert resolve("two") == ann


def test_a_token_held_by_a_variable() -> None:
    assert resolve("bobs") == Actor("bob", frozenset(), frozenset({"ask"}))


@pytest.mark.parametrize("token", [None, "", LOCAL, "env:BOB_TOKEN", sha("one"), sha("")])
def test_with_actors_there_is_no_anonymous_and_the_local_token_means_nothing(token: str | None) -> None:
    assert refused(token) == "The token is missing or not known."


def test_a_token_of_two_actors_is_nobodys() -> None:
    both = {"BOB_TOKEN": "same", "EVE_TOKEN": "same"}
    with pytest.raises(AuthenticationError):
        resolve_actor(SETTINGS, "same", local_token=None, environ=both)


def test_every_configured_token_is_compared_whichever_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real = hmac.compare_digest

    def counted(one: str, other: str) -> bool:
        calls.append(other)
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    for token in ("one", "bobs", "unknown", None):
        calls.clear()
        with contextlib.suppress(AuthenticationError):
            resolve(token)
        assert len(calls) == 4


def test_variables_of_the_process_count_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOB_TOKEN", "from the process")
    assert resolve_actor(SETTINGS, "from the process", local_token=None).name == "bob"


def test_variables_without_a_token_are_told() -> None:
    assert unset_variables(SETTINGS, ENVIRON) == ["EVE_TOKEN is not set: the actor 'eve' has no token by it"]
    assert len(unset_variables(SETTINGS, {})) == 2


def test_line_ends_around_a_variable_do_not_count() -> None:
    actor = resolve_actor(SETTINGS, "bobs", local_token=None, environ={"BOB_TOKEN": "bobs\n"})
    assert actor.name == "bob"
    with pytest.raises(AuthenticationError):
        resolve_actor(SETTINGS, "", local_token=None, environ={"BOB_TOKEN": " \n"})
