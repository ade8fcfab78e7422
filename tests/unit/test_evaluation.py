from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragpilot import cli_eval
from ragpilot.config import Environment, RetrievalSettings, Settings
from ragpilot.errors import RootError
from ragpilot.evaluation.benchmark import asked_once, compare, summarise
from ragpilot.evaluation.questions import QuestionSetError, load_questions
from ragpilot.evaluation.report import comparison_table, summary_table
from ragpilot.evaluation.trees import by_tree, left_out, unknown_labels
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


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"relevant": "a.py"}, """'relevant' is "a.py"; it must be a list."""),
        ({"relevant": [{}]}, "'relevant' 1 needs at least a 'path' that is a text."),
        ({"relevant": [{"path": "a"}, {"path": 3}]}, "'relevant' 2 needs at least a 'path' that is a text."),
        ({"relevant": ["a.py"]}, "'relevant' 1 needs at least a 'path' that is a text."),
        ({"relevant": [{"path": "a", "start": "a"}]}, """'relevant' 1: 'start' is "a"; it must be a line, counted"""),
        ({"relevant": [{"path": "a", "end": 0}]}, "'relevant' 1: 'end' is 0; it must be a line, counted from 1."),
        ({"relevant": [{"path": "a", "end": True}]}, "'relevant' 1: 'end' is true; it must be a line"),
        ({"relevant": [{"path": "a", "start": 9, "end": 8}]}, "'relevant' 1: 'end' 8 lies before 'start' 9."),
        ({"relevant": [{"path": "a", "grade": -3}]}, "'grade' is -3; it must be 2 (primary) or 1 (supporting)."),
        ({"relevant": [{"path": "a", "grade": 0}]}, "'grade' is 0; it must be 2"),
        ({"relevant": [{"path": "a", "grade": [2]}]}, "'grade' is [2]; it must be 2"),
        ({"relevant": [{"path": "a", "symbol": 7}]}, "'relevant' 1: 'symbol' is 7; it must be a text."),
        ({"category": ["x"]}, """'category' is ["x"]; it must be a text."""),
        ({"kind": 1}, "'kind' is 1; it must be a text."),
        ({"repo": "../up"}, """'repo' is "../up"; it must be a name, without dots before it."""),
        ({"repo": "x/one", "commit": "../../etc"}, """'commit' is "../../etc"; it must be a name"""),
        ({"targets": "x/one"}, """'targets' is "x/one"; it must be "any" or a list of repositories."""),
        ({"targets": [1]}, "'targets' is [1]; it must be"),
    ],
)  # fmt: skip
def test_what_a_row_holds_of_the_wrong_kind_is_named(tmp_path: Path, row: dict[str, object], message: str) -> None:
    file = write_set(tmp_path / "set.jsonl", [{"query": "a"}, {"query": "x", **row}])
    with pytest.raises(QuestionSetError) as raised:
        load_questions(file)
    assert raised.value.message.startswith(f"{file}:2: ")
    assert message in raised.value.message


def test_a_set_whose_trees_are_all_missing_is_refused_by_their_names(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"query": f"q{n}", "repo": f"x/r{n // 2:02}", "relevant": [{"path": "a"}]} for n in range(24)
    ]
    file = write_set(tmp_path / "set.jsonl", [{"query": "z", "targets": "any"}, *rows])
    with pytest.raises(QuestionSetError) as raised:
        by_tree(load_questions(file), tmp_path)
    lines = raised.value.message.splitlines()
    assert lines[0] == f"No repository of the set has its tree under {tmp_path}."
    assert lines[1:3] == [f"  {file}:2: no folder {tmp_path}/x__r00", f"  {file}:4: no folder {tmp_path}/x__r01"]
    assert lines[10:] == [f"  {file}:20: no folder {tmp_path}/x__r09", "  … and 2 more"]


def test_what_is_asked_over_no_tree_is_counted_with_the_reason(tmp_path: Path) -> None:
    labels = [{"path": "a"}]
    rows: list[dict[str, object]] = [
        {"query": "here", "repo": "x/one", "relevant": labels},
        {"query": "absent here", "repo": "x/one"},
        {"query": "gone", "repo": "x/two", "relevant": labels},
        {"query": "gone too", "repo": "x/two", "relevant": labels},
        {"query": "nowhere", "relevant": labels},
        {"query": "elsewhere", "targets": ["x/two"]},
        {"query": "anywhere", "targets": "any"},
    ]
    (tmp_path / "x__one").mkdir()
    questions = load_questions(write_set(tmp_path / "set.jsonl", rows))
    grouped = by_tree(questions, tmp_path)
    assert [[q.query for q in group] for group in grouped.values()] == [["here", "absent here", "anywhere"]]
    assert left_out(questions, grouped, tmp_path) == [
        "4 questions of the set left out:",
        f"  no folder {tmp_path}/x__two: 2 questions",
        "  no 'repo', in a set of several trees: 1 question",
        f"  no tree of x/two under {tmp_path}: 1 question",
    ]
    assert left_out(questions[:1], grouped, tmp_path) == []


def test_labels_that_name_nothing_are_told(tmp_path: Path) -> None:
    def labelled(**label: object) -> dict[str, object]:
        return {"query": "q", "relevant": [label]}

    rows = [
        labelled(path="a.py", symbol="App.run"),
        labelled(path="a.py", symbol="App::walk"),
        labelled(path="api.yaml", symbol="GET /movie"),
        labelled(path="b.py"),
        labelled(path="a.py", start=3, end=9),
    ]
    file = write_set(tmp_path / "set.jsonl", rows)
    texts = {"a.py": "def run(): ...\n", "api.yaml": "paths: {}"}
    found = unknown_labels(load_questions(file), texts.get, lambda *_: {"GET /movie"})
    assert found == [
        "3 labels cannot be found by any search:",
        f"  {file}:2: no symbol App::walk in a.py",
        f"  {file}:4: no file b.py in the tree, or it is not indexed",
        f"  {file}:5: a.py has no line 3",
    ]
    many = load_questions(write_set(file, [labelled(path=f"{n}.py") for n in range(40)]))
    assert unknown_labels(many, texts.get, lambda *_: set())[-1] == "  … and 30 more"


@pytest.mark.asyncio
async def test_a_run_tells_of_wrong_labels_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tree(tmp_path / "tree")
    rows: list[dict[str, object]] = [
        {"query": "start engine", "relevant": [{"path": "engine.py", "symbol": "stop_engine"}, {"path": "gone.py"}]},
        {"query": "brew coffee", "relevant": [{"path": "coffee.py", "symbol": "brew"}]},
        {"query": "quagga zebra okapi"},
    ]
    file = write_set(tmp_path / "set.jsonl", rows)
    assert await cli_eval.run_eval(environment(tmp_path), file, root, embedder=FakeEmbedder(256)) == 0
    printed, told = capsys.readouterr()
    assert "2 labels cannot be found by any search:" in told
    assert f"{file}:1: no symbol stop_engine in engine.py" in told
    assert f"{file}:1: no file gone.py in the tree" in told
    assert "  ndcg@10 without a category" in printed
    assert "  refused without a category" in printed
    assert summary_table({"questions": 1, "trees": 1, "milliseconds": {"p50": 1, "p95": 2}})


@pytest.mark.asyncio
async def test_a_root_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RootError, match="is no folder"):
        await cli_eval.run_make(environment(tmp_path), tmp_path / "absent")


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
