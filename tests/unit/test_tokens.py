from __future__ import annotations

import subprocess
import sys
import threading
from itertools import accumulate

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ragpilot.adapters import tokens
from ragpilot.adapters.token_prefix import SEGMENT_LIMIT, encodable, segments
from ragpilot.adapters.tokens import TiktokenCounter, load_encoding
from ragpilot.errors import RagPilotError

SAMPLE = 'def f(x):\n    """It\'s 1,234 things — naïve\r\n\r\n  ones."""\n\treturn x_y\n\n\n# 漢字 and 😀\n' * 3

words = st.lists(
    st.one_of(
        st.text(max_size=8), st.sampled_from([" ", "\n", "\r\n", "  ", "\t", "a", "it's", "_", "x1", "Straße", "=="])
    ),
    max_size=40,
).map("".join)


def plain_count(text: str) -> int:
    return len(load_encoding().encode_ordinary(text))


@given(words, st.integers(1, 20))
def test_counts_of_segments_add_up(text: str, size: int) -> None:
    text = encodable(text)
    cut = list(segments(text, size, limit=10_000))
    assert "".join(cut) == text
    assert sum(map(plain_count, cut)) == plain_count(text)


@given(words, st.integers(1, 20), st.integers(0, 60))
def test_a_prefix_is_cut_where_the_whole_text_is(text: str, size: int, end: int) -> None:
    assume(end <= len(text))
    whole = set(accumulate(map(len, segments(text, size, size * 2))))
    part = list(accumulate(map(len, segments(text[:end], size, size * 2))))
    assert set(part[:-1]) == {place for place in whole if place < end}


def test_no_segment_is_over_the_limit() -> None:
    assert max(map(len, segments("a" * 100_000))) == SEGMENT_LIMIT


def test_a_long_text_counts_as_tiktoken_counts_it() -> None:
    text = SAMPLE * 200
    assert len(text) > 4 * SEGMENT_LIMIT
    assert TiktokenCounter().count(text) == plain_count(text)


def test_a_lone_surrogate_counts_as_the_replacement_character() -> None:
    counter = TiktokenCounter()
    assert counter.count("a\ud800b") == counter.count("a\ufffdb")
    assert counter.truncate("a\ud800b", 100) == "a\ud800b"


def test_a_cut_never_splits_a_character() -> None:
    counter = TiktokenCounter()
    assert counter.count("😀") == 2
    assert counter.truncate("😀😀", 3) == "😀"


def test_a_longer_prefix_may_take_fewer_tokens_than_the_cut_between_two() -> None:
    """The first token of the whole text ends before the longest prefix that is one token."""
    counter, encoding = TiktokenCounter(), load_encoding()
    text = "abcdefgh"
    natural = len(encoding.decode(encoding.encode_ordinary(text)[:1]))
    longest = max(end for end in range(len(text) + 1) if plain_count(text[:end]) <= 1)
    assert counter.truncate(text, 1) == text[:longest]
    assert longest >= natural


def test_threads_share_one_encoding() -> None:
    load_encoding.cache_clear()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(load_encoding())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(found) == 4
    assert len(set(map(id, found))) == 1


def test_missing_ranks_are_named_with_a_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    load_encoding.cache_clear()
    monkeypatch.setattr(tokens, "ENCODING", "no_such_ranks")
    with pytest.raises(RagPilotError, match=r"(?s)no_such_ranks.*Reinstall"):
        TiktokenCounter().count("text")
    load_encoding.cache_clear()


def test_importing_loads_no_tokenizer() -> None:
    code = "import sys, ragpilot.adapters.tokens, ragpilot.adapters.wordpiece; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)  # noqa: S603
    assert {"tiktoken", "tokenizers"}.isdisjoint(done.stdout.split())
