from __future__ import annotations

import pytest

from ragpilot.cli_output import receipt
from ragpilot.events import Done
from ragpilot.types import Outcome


def test_a_receipt_says_how_and_what_became_of_each_candidate(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (
        {"rank": 1, "id": "1", "source": "a.py:1-9 (A)", "cosine": 0.61, "lexical": 9.5, "score": 1.2,
         "signals": {"definition": 0.75}, "fate": "in_prompt", "tokens": 120},
        {"rank": 2, "id": "2", "source": "b.py:3\x1b]52;c;eA==\x07", "cosine": 0.2, "fate": "dropped_by_floor"},
        {"rank": None, "id": "3", "source": "c.py:7", "cosine": 0.4, "fate": "dropped_by_budget"},
    )  # fmt: skip
    plan = {"intent": "definition", "evidence": 0.7312, "gate": 0.51, "floor": 0.35}
    receipt(Done(Outcome.ANSWERED, "r", plan=plan, receipt=rows))
    out, err = capsys.readouterr()
    assert out == ""
    assert "definition: evidence 0.731, gate 0.510, floor 0.35" in err
    assert "  1  a.py:1-9 (A)\n     in prompt, 120 tokens: cosine 0.61, lexical 9.5, score 1.2, definition +0.75" in err
    assert "dropped by floor: cosine 0.2" in err
    assert "  –  c.py:7\n     dropped by budget: cosine 0.4" in err
    assert "\x1b" not in err
