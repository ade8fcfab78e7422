"""RagPilot's own actors and grants stay out of the index, and hashes of tokens out of every text."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragpilot.actors import token_hash
from ragpilot.config import CorpusSettings, IngestSettings
from ragpilot.ingest.access_files import is_access_file
from ragpilot.ingest.secrets import redact
from ragpilot.ingest.sources import SourceFiles
from tests.fakes import OPERATOR
from tests.ingestion import Project

SCHEMA = 'schema = "ragpilot/1"\n'
HASH = token_hash("a token of ann's")
ACTOR = f'[[actors]]\nname = "ann"\nprincipals = ["team:hr"]\ntokens = ["{HASH}"]\n'
GRANTS = '[[corpora]]\nname = "shop"\n[[corpora.grants]]\npaths = ["hr/**"]\nreaders = ["team:hr"]\n'


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("config.toml", SCHEMA + ACTOR),
        ("deploy/config.toml", SCHEMA + GRANTS),
        (
            "ops/ragpilot.conf",
            "\ufeff" + ACTOR.replace("\n", "\r\n"),
        ),  # named by --config: needs neither name nor schema
        ("ops/ragpilot.conf", GRANTS),
        ("config.toml", SCHEMA + f'actors = [{{ name = "ann", tokens = ["{HASH}"] }}]\n'),
        ("config.toml", SCHEMA + 'corpora = [{ name = "shop", grants = [] }]\n'),
        ("config.toml.bak", SCHEMA + ACTOR + "name ="),  # in the middle of an edit
    ],
)
def test_what_says_who_may_read_what_is_access_configuration(path: str, text: str) -> None:
    assert is_access_file(path, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("config.toml", SCHEMA + "[retrieval]\ntop_k = 8\n# [[actors]]\n"),
        ("config.toml", SCHEMA + '[[corpora]]\nname = "shop"\nroots = ["."]\n'),
        ("README.md", f"# Setup\n\n```toml\n{SCHEMA}{ACTOR}{GRANTS}```\n"),
        ("films.toml", '[[actors]]\nname = "Ann"\nborn = 1970\n'),
        ("actors.py", "actors = 1\ngrants = 2\n"),
    ],
)
def test_everything_else_is_not(path: str, text: str) -> None:
    assert not is_access_file(path, text)


def test_the_configuration_of_this_repository_is_indexed() -> None:
    text = (Path(__file__).parents[2] / "config.toml").read_text()
    assert "actors" in text
    assert not is_access_file("config.toml", text)


def test_hashes_of_tokens_are_replaced_in_any_text() -> None:
    other = token_hash("another")
    text = f'```toml\n{ACTOR}tokens = [\n  "{other}", # old\n  \'env:ANN\',\n]\nsum = "{HASH[:40]}"\n```\n'
    told, kinds = redact(text)
    assert kinds == ("ragpilot-token-hash",)
    assert told == text.replace(HASH, "[redacted:ragpilot-token-hash]").replace(other, "[redacted:ragpilot-token-hash]")
    assert redact("tokens = [1, 2]\n" * 3) == ("tokens = [1, 2]\n" * 3, ())


@pytest.mark.asyncio
async def test_a_run_counts_it_and_removes_what_was_indexed_of_it(tmp_path: Path) -> None:
    project = Project(tmp_path, files={"a.py": "x = 1\n", "deploy/config.toml": SCHEMA + "[retrieval]\ntop_k = 8\n"})
    await project.run()
    assert project.paths == ["a.py", "deploy/config.toml"]
    project.write({"deploy/config.toml": SCHEMA + ACTOR + GRANTS})
    report = await project.run()
    assert [(item.path, item.reason) for item in report.left_out] == [("deploy/config.toml", "access configuration")]
    assert project.paths == ["a.py"]
    plan = await project.service.plan(OPERATOR, project.corpus)
    assert [(item.path, item.reason) for item in plan.left_out] == [("deploy/config.toml", "access configuration")]
    corpus = CorpusSettings(name="shop", roots=[str(project.root)])
    files = SourceFiles([corpus], IngestSettings())
    assert files.read_text("shop", "a.py") == "x = 1\n"
    assert files.read_text("shop", "deploy/config.toml") is None
