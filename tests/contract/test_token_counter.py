"""What every TokenCounter must do. A further counter joins by one line in COUNTERS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragpilot
from ragpilot.adapters.tokens import TiktokenCounter
from ragpilot.adapters.wordpiece import WordPieceCounter
from ragpilot.ports import TokenCounter
from tests.fakes import FakeTokenCounter

TOKENIZER = Path(ragpilot.__file__).parent / "data" / "minilm" / "tokenizer.json"

COUNTERS: dict[str, Callable[[], TokenCounter]] = {
    "fake": FakeTokenCounter,
    "tiktoken": TiktokenCounter,
    "wordpiece": lambda: WordPieceCounter(TOKENIZER),
}

pieces = st.sampled_from(
    [
        "def ",
        "embedding",
        " 한국어",
        "naïve",
        "e\u0301",
        "\r\n",
        "\n\n",
        "   ",
        "\t",
        "<|endoftext|>",
        "[MASK]",
        "12345",
    ]
)
texts = st.one_of(st.text(max_size=60), st.lists(pieces, max_size=20).map("".join))
with_surrogates = st.lists(st.one_of(texts, st.sampled_from(["\ud83d", "\ude00", "\x00"])), max_size=6).map("".join)


@pytest.fixture(scope="module", params=COUNTERS)
def counter(request: pytest.FixtureRequest) -> TokenCounter:
    return COUNTERS[request.param]()


def test_the_empty_text_has_no_tokens(counter: TokenCounter) -> None:
    assert counter.count("") == 0
    assert counter.truncate("", 5) == ""


def test_words_have_tokens_and_longer_texts_more(counter: TokenCounter) -> None:
    assert 0 < counter.count("where is the budget") < counter.count("where is the budget enforced, and by whom?")


@pytest.mark.parametrize("text", ["<|endoftext|>", "<|fim_prefix|>x<|endofprompt|>", "[CLS] a [SEP] [PAD]", "</s><s>"])
def test_special_tokens_are_plain_text(counter: TokenCounter, text: str) -> None:
    assert counter.count(text) > 1
    assert counter.truncate(text, 10_000) == text


@pytest.mark.parametrize("tokens", [0, -1, -100])
def test_no_room_leaves_nothing(counter: TokenCounter, tokens: int) -> None:
    assert counter.truncate("some words", tokens) == ""


@given(text=with_surrogates, tokens=st.integers(1, 30))
def test_a_truncated_text_is_a_prefix_that_fits(counter: TokenCounter, text: str, tokens: int) -> None:
    prefix = counter.truncate(text, tokens)
    assert text.startswith(prefix)
    assert counter.count(prefix) <= tokens
    if counter.count(text) <= tokens:
        assert prefix == text


@given(text=with_surrogates, tokens=st.integers(1, 30))
def test_no_longer_prefix_fits(counter: TokenCounter, text: str, tokens: int) -> None:
    kept = len(counter.truncate(text, tokens))
    assert all(counter.count(text[:end]) > tokens for end in range(kept + 1, min(len(text), kept + 100) + 1))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" * 200_000, id="letter"),
        pytest.param(" " * 1_000_000 + "x", id="blanks"),
        pytest.param("\t" * 1_000_000 + "x", id="tabs"),
        pytest.param("\n" * 200_000 + "x", id="line ends"),
        pytest.param("=-" * 100_000, id="signs"),
        pytest.param("字" * 200_000, id="unspaced"),
        pytest.param("\ud800" * 200_000, id="surrogates"),
        pytest.param("def run(x):\n    return x + 1\n\n" * 35_000, id="a megabyte of code"),
    ],
)
def test_no_long_text_breaks_or_stalls_it(counter: TokenCounter, text: str) -> None:
    assert counter.count(text) >= 0
    prefix = counter.truncate(text, 500)
    assert text.startswith(prefix)
    assert counter.count(prefix) <= 500
