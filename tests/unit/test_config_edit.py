from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragpilot.config_edit import with_settings
from ragpilot.errors import ConfigError

FILE = """\
# mine
schema = "ragpilot/1"

[chat]
# model = "a"
kind = "auto"   # as it comes
[[corpora]]
name = "default"
roots = ["."]
"""


def test_a_key_is_set_where_it_stands_and_the_rest_is_left() -> None:
    edited = with_settings(FILE, {"chat.kind": "ollama", "chat.model": 'a "b"', "chat.context_window": 4096})
    assert 'kind = "ollama"   # as it comes' in edited
    assert tomllib.loads(edited)["chat"] == {"kind": "ollama", "model": 'a "b"', "context_window": 4096}
    assert edited.startswith("# mine\n")
    assert edited.endswith(FILE[FILE.index("[[corpora]]") :])


def test_a_missing_table_and_a_missing_file_are_made() -> None:
    edited = with_settings(FILE, {"embedder.kind": "minilm"})
    assert tomllib.loads(edited)["embedder"] == {"kind": "minilm"}
    assert tomllib.loads(with_settings("", {"chat.kind": "openai"})) == {
        "schema": "ragpilot/1",
        "chat": {"kind": "openai"},
    }


@pytest.mark.parametrize(
    "text", ["chat = {kind = 'auto'}", "chat.kind = 'auto'", "chat = 1", "[chat", '[chat]\nkind = """\na"""']
)
def test_what_cannot_be_edited_safely_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        with_settings(text, {"chat.kind": "ollama"})


@given(value=st.one_of(st.text(max_size=20), st.integers(-(2**40), 2**40), st.booleans()))
def test_any_value_reads_back_as_it_was_or_is_refused(value: str | int | bool) -> None:
    try:
        edited = with_settings(FILE, {"chat.model": value})
    except ConfigError:
        assert isinstance(value, str)
        assert any(ord(char) in {0x7F, *range(0xD800, 0xE000), 0x85, 0x2028, 0x2029} for char in value)
    else:
        assert tomllib.loads(edited)["chat"]["model"] == value


def test_the_projects_own_file_can_be_edited() -> None:
    text = (Path(__file__).parents[2] / "config.toml").read_text(encoding="utf-8")
    edited = with_settings(text, {"chat.kind": "openai", "chat.url": "http://localhost:8080/v1", "store.shards": 2})
    found = tomllib.loads(edited)
    assert (found["chat"]["kind"], found["chat"]["url"], found["store"]["shards"]) == (
        "openai",
        "http://localhost:8080/v1",
        2,
    )
