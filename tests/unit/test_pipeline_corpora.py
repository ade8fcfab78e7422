"""Readers, roots and corpora of runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ragpilot.config import CorpusSettings, GrantSettings
from tests.fakes import OPERATOR
from tests.ingestion import FILES, Project, no_chunking
from tests.trees import git, needs_git

pytestmark = pytest.mark.asyncio


async def test_changed_grants_change_readers_alone(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run()
    vectors = dict(project.store.vectors)
    grants = [GrantSettings(paths=["docs/"], readers=["team:docs"]), GrantSettings(paths=["*.toml"], readers=[])]
    restricted = CorpusSettings(roots=project.corpus.roots, grants=grants)
    project.restart(chunk_text=no_chunking)
    # A run over another part closes what is closed now, too.
    report = await project.run(corpus=restricted, path=project.root / "src")
    assert (report.unchanged, report.embedded) == (2, 0)
    readers = {chunk.path: chunk.readers for chunk in project.chunks}
    assert readers["docs/guide.md"] == {"team:docs"}
    assert readers["settings.toml"] == frozenset()
    assert readers["src/orders.py"] == {"team:everyone"}
    assert project.store.vectors == vectors
    assert await project.service.apply_grants(OPERATOR, project.corpus) == 2
    assert {chunk.readers for chunk in project.chunks} == {frozenset({"team:everyone"})}
    assert await project.service.apply_grants(OPERATOR, project.corpus) == 0


async def test_a_grant_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    corpus = CorpusSettings(roots=[str(tmp_path / "project")], grants=[GrantSettings(paths=["[a"], readers=["team:a"])])
    project = Project(tmp_path, corpus=corpus)
    report = await project.run()
    assert "'[a' cannot be read" in report.warnings[0]
    assert {chunk.readers for chunk in project.chunks} == {frozenset()}
    assert project.complete


async def test_several_roots_have_prefixes(tmp_path: Path) -> None:
    for name in ("one/app", "two/app", "one/app/inner"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "m.py").write_text(f"place = '{name}'\n", encoding="utf-8")
    roots = [str(tmp_path / name) for name in ("one/app", "two/app", "one/app/inner")]
    project = Project(tmp_path, files={}, corpus=CorpusSettings(roots=roots))
    await project.run()
    assert project.paths == ["inner/m.py", "one-app/m.py", "two-app/m.py"]
    assert project.service.locate("default", "two-app/m.py") == tmp_path / "two/app/m.py"
    assert project.service.locate("default", "three/m.py") is None
    (tmp_path / "two/app/m.py").unlink()
    report = await project.run(path=tmp_path / "one/app/inner")
    assert (report.unchanged, report.removed) == (1, 0)
    # A root that is not configured any more takes its documents with it.
    report = await project.run(corpus=CorpusSettings(roots=roots[:1]))
    assert project.paths == ["inner/m.py", "m.py"]
    assert (report.added, report.removed) == (1, 2)


async def test_corpora_do_not_touch_each_other(tmp_path: Path) -> None:
    project = Project(tmp_path)
    other = CorpusSettings(name="other", roots=[str(project.root / "src")])
    await project.run()
    await project.run(corpus=other)
    shutil.rmtree(project.root / "src")
    (project.root / "src").mkdir()
    (project.root / "src/left.py").touch()
    assert (await project.run(corpus=other)).removed == 2
    assert project.paths == sorted(FILES)
    assert project.store.chunks["other"] == {}


async def test_the_state_folder_is_never_indexed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.state = project.root / "state"
    project.restart()
    await project.run()
    await project.run()
    assert project.paths == sorted(FILES)


@needs_git
async def test_the_commit_is_kept(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for command in ("init -q", "add -A", "commit -qm one"):
        git(project.root, *command.split())
    await project.run()
    commits = {chunk.commit for chunk in project.chunks}
    assert len(commits) == 1
    assert len(commits.pop() or "") == 40
