"""The models of the configuration, and the words for what is wrong with a value."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ragpilot.config import EVERYONE, Settings, contradictions, is_loopback
from ragpilot.config_words import key_schema, nearest, problems

PROJECT_FILE = Path(__file__).parents[2] / "config.toml"


def wrong(data: dict[str, Any]) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(data)
    return [problem.text for problem in problems(caught.value, data)]


def test_the_projects_own_file_is_the_defaults() -> None:
    text = PROJECT_FILE.read_text(encoding="utf-8")
    assert Settings.model_validate(tomllib.loads(text)) == Settings()


def test_the_projects_own_file_mentions_every_key() -> None:
    text = PROJECT_FILE.read_text(encoding="utf-8")
    every = tomllib.loads(re.sub(r"(?m)^# (?=\[\[|[a-z_]+ = )", "", text))
    Settings.model_validate(every)

    def keys(schema_key: tuple[str | int, ...], value: Any) -> None:
        schema = key_schema(schema_key)
        assert schema is not None
        if isinstance(value, list) and value and isinstance(value[0], dict):
            keys((*schema_key, 0), value[0])
        elif isinstance(value, dict):
            assert set(value) == set(schema["properties"]), schema_key
            for name, item in value.items():
                keys((*schema_key, name), item)

    keys((), every)


def test_defaults_are_what_a_file_would_hold() -> None:
    defaults = Settings().model_dump(by_alias=True)
    assert defaults["schema"] == "ragpilot/1"
    assert defaults["corpora"] == [{"name": "default", "roots": ["."], "readers": [EVERYONE], "grants": []}]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"chat": {"baseURL": "x"}}, "unknown key 'baseURL' in chat; did you mean 'url'?"),
        ({"retrieval": {"topK": 1}}, "unknown key 'topK' in retrieval; did you mean 'top_k'?"),
        ({"top_k": 1}, "unknown key 'top_k'; did you mean [retrieval] top_k?"),
        ({"server": {"top_k": 1}}, "unknown key 'top_k' in server; did you mean [retrieval] top_k?"),
        ({"retrival": {}}, "unknown section 'retrival'; did you mean 'retrieval'?"),
        (
            {"ollama": {"model": "m"}},
            'unknown section \'ollama\'; did you mean [embedder] kind = "ollama" or [chat] kind = "ollama"?',
        ),
        ({"store": {"zzz": 1}}, "unknown key 'zzz' in store; valid here: kind, path, url, api_key_env, shards, "),
        ({"corpora": [{"rotos": ["x"]}]}, "unknown key 'rotos' in corpora[0]; did you mean 'roots'?"),
        ({"retrieval": {"top_k": "five"}}, 'retrieval.top_k must be a whole number from 1 to 50, not "five".'),
        ({"retrieval": {"top_k": -1}}, "retrieval.top_k must be a whole number from 1 to 50, not -1."),
        ({"retrieval": {"top_k": True}}, "retrieval.top_k must be a whole number from 1 to 50, not true."),
        ({"retrieval": {"top_k": 8.0}}, "retrieval.top_k must be a whole number from 1 to 50, not 8."),
        ({"retrieval": {"min_score": 1.01}}, "retrieval.min_score must be a number from -1 to 1, not 1.01."),
        ({"retrieval": {"min_score": float("nan")}}, "retrieval.min_score must be a number from -1 to 1, not nan."),
        (
            {"retrieval": {"gate": "on"}},
            'retrieval.gate must be one of "auto", "off" or a number from 0 to 2, not "on".',
        ),
        (
            {"prompt": {"context_budget": 10}},
            "prompt.context_budget must be a whole number from 256 to 200000, not 10.",
        ),
        ({"chat": {"idle_seconds": 0}}, "chat.idle_seconds must be a number above 0, not 0."),
        ({"store": {"on_disk": "yes"}}, 'store.on_disk must be true or false, not "yes".'),
        ({"retrieval": 5}, "retrieval must be a table, not 5."),
        ({"corpora": {}}, "corpora must be tables, each under a header in double brackets, not a table."),
        ({"corpora": [{"roots": []}]}, "corpora[0].roots must be a list with at least one item, each the path of a"),
        ({"corpora": [{"roots": ["a\0b"]}]}, "corpora[0].roots[0] must be the path of a folder, not"),
        ({"corpora": [{"grants": [{"paths": ["x"]}]}]}, "corpora[0].grants[0].readers is missing: it must be a list"),
        ({"corpora": [{"readers": ["ann"]}]}, "corpora[0].readers[0] must be a principal such as "),
        ({"corpora": [{"name": "a"}, {"name": "A"}]}, "corpora names 'a' twice"),
        ({"sources": [{"name": "a", "module": "os;x"}]}, "sources[0].module must be a module, and a class in it"),
        ({"schema": "ragpilot/2"}, 'schema must be "ragpilot/1", not "ragpilot/2".'),
        ({"server": {"host": "http://a"}}, "server.host must be a host name or address without scheme"),
        ({"server": {"cors_origin": "*"}}, "server.cors_origin must be one origin"),
        ({"server": {"cors_origin": "http://a/b"}}, "server.cors_origin must be one origin"),
        ({"chat": {"url": "localhost:11434"}}, "chat.url is no address such as"),
        ({"store": {"url": "127.0.0.1:6333"}}, "store.url is no address such as http://localhost:6333"),
        ({"chat": {"url": "http://h:99999"}}, "chat.url is no address such as"),
        ({"chat": {"url": "http://h/?key=x"}}, "chat.url may hold no '?'"),
    ],
)
def test_what_is_wrong_is_said_in_words(data: dict[str, Any], sentence: str) -> None:
    (said,) = wrong(data)
    assert said.startswith(sentence)
    assert "pydantic" not in said


@pytest.mark.parametrize(
    "data",
    [
        {"store": {"api_key_env": "sk-geheim-1"}},
        {"chat": {"url": "http://ann:geheim-1@host/"}},
        {"actors": [{"name": "a", "tokens": ["geheim-1"]}]},
        {"actors": [{"name": "a", "tokens": "geheim-1"}]},
        {"actors": [{"name": "a", "tokens": ["env:geheim-1"]}]},
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(data: dict[str, Any]) -> None:
    (said,) = wrong(data)
    assert "geheim" not in said


def test_all_problems_are_told_at_once_and_one_a_key() -> None:
    said = wrong({"retrieval": {"top_k": 0, "gate": []}, "chat": {"kind": "x"}, "nothing": 1})
    assert len(said) == 4


def test_names_and_values_of_a_file_are_printable_in_messages() -> None:
    said = wrong({"\x1b]0;x\x07": 1, "chat": {"kind": "\x1b[2J\u202e"}})
    assert all(sentence.isprintable() for sentence in said)


def test_addresses_are_normalised() -> None:
    urls = ["http://h:1/", "http://h:1//", "http://h:1//v1/", "http://h:1"]
    settings = [Settings.model_validate({"chat": {"url": url}}) for url in urls]
    assert [item.chat.url for item in settings] == ["http://h:1", "http://h:1", "http://h:1/v1", "http://h:1"]


def test_two_actors_cannot_share_a_token() -> None:
    token = "a" * 64
    actors = [{"name": "ann", "tokens": [token, token]}, {"name": "bob", "tokens": [token.upper()]}]
    assert "two actors the same token" in wrong({"actors": actors})[0]
    Settings.model_validate({"actors": actors[:1]})


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("LocalHost", True),
        ("0.0.0.0", False),  # noqa: S104
        ("::", False),
        ("192.168.1.2", False),
        ("localhost.example.org", False),
        ("my-box", False),
    ],
)
def test_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_other_interfaces_need_actors() -> None:
    open_server = {"server": {"host": "0.0.0.0"}}  # noqa: S104
    assert [key for key, _ in contradictions(Settings.model_validate(open_server))] == ["server.host"]
    actors = [{"name": "ann", "tokens": ["env:ANN"]}]
    assert contradictions(Settings.model_validate({**open_server, "actors": actors})) == []


def test_a_root_inside_another_is_a_contradiction() -> None:
    def judged(*roots: str) -> list[str]:
        settings = Settings.model_validate({"corpora": [{"name": "c", "roots": list(roots)}]})
        return [key for key, _ in contradictions(settings)]

    assert judged("/a/b", "/a") == ["corpora"]
    assert judged("/a", "/a") == ["corpora"]
    assert judged("/a", "/ab") == []


def test_the_nearest_key() -> None:
    keys = ["kind", "model", "url", "api_key_env"]
    assert nearest("baseURL", keys) == "url"
    assert nearest("Model", keys) == "model"
    assert nearest("apiKey", keys) == "api_key_env"
    assert nearest("zzz", keys) is None
    assert nearest("x", []) is None


def test_corpora_by_name() -> None:
    settings = Settings.model_validate({"corpora": [{"name": "one"}, {"name": "two"}]})
    assert settings.corpus(None) == settings.corpora[0]
    assert settings.corpus("two") == settings.corpora[1]
    assert settings.corpus("three") is None


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        (["src/**", "{a,b}/**"], "corpora[0].grants[0].paths[1] may hold no '{' and no '}': "),
        (["[{]x"], "corpora[0].grants[0].paths[0] may hold no '{'"),
        (["!hr/**"], "corpora[0].grants[0].paths may not begin with a path that has a leading '!'"),
    ],
)
def test_globs_that_would_grant_nothing_are_refused(paths: list[str], sentence: str) -> None:
    (said,) = wrong({"corpora": [{"grants": [{"paths": paths, "readers": ["team:hr"]}]}]})
    assert said.startswith(sentence)
    assert "such as" in said


def test_globs_that_mean_what_they_say_are_taken() -> None:
    paths = ["hr/**", "!hr/holidays.md", r"\!important/**", r"templates/\{\{name\}\}/**"]
    settings = Settings.model_validate({"corpora": [{"grants": [{"paths": paths, "readers": ["team:hr"]}]}]})
    assert settings.corpora[0].grants[0].paths == paths
