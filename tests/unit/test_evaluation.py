from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragpilot import cli_eval
from ragpilot.config import Environment, RetrievalSettings, Settings
from ragpilot.errors import RootError
from ragpilot.evaluation.benchmark import asked_once, compare, summarise
from ragpilot.evaluation.questions import QuestionSetError, by_tree, draft, load_questions
from ragpilot.evaluation.report import comparison_table
from tests.builders import chunk
from tests.fakes import FakeEmbedder

SET = [
    {"query": "start engine", "relevant": [{"path": "engine.py", "symbol": "start_engine"}], "category": "semantic"},
    {"query": "brew coffee", "relevant": [{"path": "coffee.py"}], "category": "symbol"},
    {"query": "quagga zebra okapi", "kind": "nonsense", "targets": "any"},
]


def write_set(file: Path, rows: list[dict[str, object]]) -> Path:
    file.write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    return file


def tree(root: Path) -> Path:
    root.mkdir(parents=True)
    (root / "engine.py").write_text('def start_engine():\n    """Start engine."""\n', encoding="utf-8")
    (root / "coffee.py").write_text('def brew():\n    """Brew coffee."""\n', encoding="utf-8")
    return root


def environment(base: Path) -> Environment:
    settings = Settings(retrieval=RetrievalSettings(gate="off", min_score=0.1))
    return Environment(settings=settings, state=base / "state", directory=base)


def test_rows_become_questions_and_bad_rows_are_named(tmp_path: Path) -> None:
    questions = load_questions(write_set(tmp_path / "set.jsonl", SET))  # type: ignore[arg-type]
    assert [question.answerable for question in questions] == [True, True, False]
    assert questions[0].labels[0].grade == 2
    assert questions[2].targets is None
    for text, message in (("[1]", r"bad\.jsonl:1 has no 'query'"), ("{", "no JSON object"), ("", "no question"),
                          ('{"query": "x", "relevant": [{}]}', "needs at least a 'path'")):  # fmt: skip
        (tmp_path / "bad.jsonl").write_text(text, encoding="utf-8")
        with pytest.raises(QuestionSetError, match=message):
            load_questions(tmp_path / "bad.jsonl")
    with pytest.raises(QuestionSetError, match="cannot be read"):
        load_questions(tmp_path / "absent.jsonl")


def test_a_set_over_several_repositories_finds_its_trees(tmp_path: Path) -> None:
    rows = [
        {"query": "a", "repo": "x/one", "commit": "0123456789abcdef", "relevant": [{"path": "a"}]},
        {"query": "b", "repo": "x/two", "commit": "0123456789abcdef", "relevant": [{"path": "b"}]},
        {"query": "c", "kind": "k", "targets": ["x/two"]},
        {"query": "d", "kind": "k", "targets": "any"},
    ]
    for name in ("one", "two"):
        (tmp_path / f"x__{name}" / "0123456789ab").mkdir(parents=True)
    grouped = by_tree(load_questions(write_set(tmp_path / "set.jsonl", rows)), tmp_path)  # type: ignore[arg-type]
    assert {path.parent.name: [q.query for q in found] for path, found in grouped.items()} == {
        "x__one": ["a", "d"],
        "x__two": ["b", "c", "d"],
    }


@pytest.mark.asyncio
async def test_a_run_measures_ranking_and_refusal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(tmp_path / "tree")
    questions = write_set(tmp_path / "set.jsonl", SET)  # type: ignore[arg-type]
    run = {"as_json": True, "embedder": FakeEmbedder(256)}
    assert await cli_eval.run_eval(environment(tmp_path), questions, root, **run) == 0  # type: ignore[arg-type]
    found = json.loads(capsys.readouterr().out)
    summary = found["summary"]
    assert summary["file"]["ndcg@10"]["mean"] == 1.0
    assert summary["symbol"]["recall@1"] == 1.0
    assert summary["unanswerable_refused"] == 1.0
    assert summary["answerable_refused"] == 0.0
    assert summary["auroc"] == 1.0
    (tmp_path / "before.json").write_text(json.dumps(found), encoding="utf-8")
    monkeypatch.chdir(root)
    again = {"earlier": tmp_path / "before.json", "embedder": FakeEmbedder(256)}
    assert await cli_eval.run_eval(environment(tmp_path), questions, Path(), **again) == 0  # type: ignore[arg-type]
    table = capsys.readouterr().out
    assert table.endswith("\nNo question changed.\n"), "the same questions, however the root is written"
    assert "file ndcg@10" in table


@pytest.mark.asyncio
async def test_a_draft_is_a_set_that_can_be_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tree(tmp_path / "tree")
    assert await cli_eval.run_make(environment(tmp_path), root, embedder=FakeEmbedder()) == 0
    drafted = tmp_path / "draft.jsonl"
    drafted.write_text(capsys.readouterr().out, encoding="utf-8")
    assert {label.path for q in load_questions(drafted) for label in q.labels} <= {"engine.py", "coffee.py"}


@pytest.mark.asyncio
async def test_a_root_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RootError, match="is no folder"):
        await cli_eval.run_make(environment(tmp_path), tmp_path / "absent")


def test_drafts_take_one_documented_symbol_a_document() -> None:
    chunks = [
        chunk("a.py", symbol="Router", header="app router: router. Dispatches requests by path"),
        chunk("a.py", "other", symbol="Other", header="app router: other thing. Something else entirely"),
        chunk("b.py", symbol=None, header="b"),
        chunk("c.md", symbol=None, source_type="docs-markdown", header="guide: How to install it on Linux"),
    ]
    rows = draft(chunks)
    assert [(row["query"], row["relevant"][0]["path"]) for row in rows] == [
        ("router. Dispatches requests by path", "a.py"),
        ("How to install it on Linux", "c.md"),
    ]


def row(query: str, ndcg: float, **fields: object) -> dict[str, Any]:
    judged = {"shown": ndcg, "refused": False, "relevant_source": True, "top": [], **fields}
    return {"tree": "t", "query": query, "file": {"ndcg@10": ndcg}, **judged}


def test_what_changed_between_two_runs_comes_largest_first() -> None:
    changes = compare(
        [row("a", 0.5), row("b", 0.1), row("c", 1.0)], [row("a", 0.6), row("b", 1.0), row("c", 1.0, refused=True)]
    )
    assert [(change["query"], round(change["ndcg@10"], 3)) for change in changes] == [
        ("b", 0.9),
        ("a", 0.1),
        ("c", 0.0),
    ]
    assert summarise([])["questions"] == 0


def test_what_floor_and_gate_let_through_and_relevant_sources_are_changes() -> None:
    before = [
        row("same", 1.0),
        row("shown", 1.0, shown=0.25),
        row("source", 1.0, relevant_source=False),
        row("gone", 1),
    ]
    after = [row("same", 1.0), row("shown", 1.0, shown=1.0), row("source", 1.0), row("new", 1)]
    changes = compare(before, after)
    assert [(change["query"], change["shown_ndcg@10"], change["relevant_source"]) for change in changes] == [
        ("shown", 0.75, [True, True]),
        ("source", 0.0, [False, True]),
    ]
    assert comparison_table(changes, once=asked_once(before, after)).splitlines() == [
        "2 questions changed; NDCG@10 of the ranking, and of what floor and gate let through:",
        "  +0.000  +0.750  shown  (t)",
        "  +0.000  +0.000  source  (t)  now with a relevant source",
        "Asked in one of the two runs alone, and not compared: 2.",
    ]
    assert comparison_table(compare(before, before)) == "No question changed."
    assert comparison_table(compare([row("c", 1.0)], [row("c", 1.0, refused=True, relevant_source=False)])) == (
        "1 question changed; NDCG@10 of the ranking, and of what floor and gate let through:\n"
        "  +0.000  +0.000  c  (t)  now refused  now without a relevant source"
    )


@pytest.mark.asyncio
async def test_an_earlier_run_is_what_a_run_printed(tmp_path: Path) -> None:
    root = tree(tmp_path / "tree")
    questions = write_set(tmp_path / "set.jsonl", SET)  # type: ignore[arg-type]
    for text in ("[]", "{", '{"questions": [1]}', '{"questions": [{"tree": "t", "query": "q"}]}'):
        (tmp_path / "before.json").write_text(text, encoding="utf-8")
        with pytest.raises(QuestionSetError, match=r"before\.json is no earlier run"):
            await cli_eval.run_eval(environment(tmp_path), questions, root, earlier=tmp_path / "before.json")
