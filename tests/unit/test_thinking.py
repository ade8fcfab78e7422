from __future__ import annotations

import pytest

from ragpilot.adapters.thinking import ThinkingFilter

CASES = {
    "plain answer": "plain answer",
    "<think>because</think>\n\nIt is [1].": "It is [1].",
    " \n<think>a < b </thin </think>yes": "yes",
    "<think></think>\n\nyes": "yes",
    "<think>never ends": "",
    "The tag <think> is text </think>": "The tag <think> is text </think>",
    "  indented": "  indented",
    "<thin": "<thin",
    "<thinner>": "<thinner>",
    "\n\n": "\n\n",
    "<think>x</think>a <think>b</think>": "a <think>b</think>",
    "": "",
}


@pytest.mark.parametrize("text", CASES)
@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_reasoning_at_the_beginning_is_no_answer_text(text: str, size: int) -> None:
    filtered = ThinkingFilter()
    answer = [filtered.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join([*answer, filtered.end()]) == CASES[text]
    assert filtered.seen == text.lstrip().startswith("<think>")


def test_an_answer_is_passed_on_as_soon_as_it_is_one() -> None:
    filtered = ThinkingFilter()
    assert filtered.feed("<th") == ""
    assert filtered.feed("e ") == "<the "
    assert filtered.feed("next") == "next"
