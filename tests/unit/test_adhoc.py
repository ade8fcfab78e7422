"""Corpora that `ragpilot index FOLDER` makes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ragpilot.adhoc import AdHoc, choose, environment_of, forget, known, locate, remember, remembered
from ragpilot.config import Environment, Settings
from ragpilot.runtime import OwnerLock
from ragpilot.settings_loader import load, state_folder


def environment(tmp_path: Path, *corpora: Mapping[str, object]) -> Environment:
    settings = Settings.model_validate({"corpora": list(corpora)})
    return Environment(settings=settings, state=tmp_path / "home" / "state")


def test_a_path_belongs_to_the_innermost_root(tmp_path: Path) -> None:
    outer = {"name": "outer", "roots": ["/srv/code"]}
    inner = {"name": "inner", "roots": ["/srv/code/lib", "/srv/other"]}
    where = environment(tmp_path, outer, inner)

    def found(path: str) -> tuple[str, str | None] | None:
        part = locate(where, Path(path))
        return None if part is None else (part.corpus.name, None if part.path is None else str(part.path))

    assert found("/srv/code") == ("outer", None)
    assert found("/srv/code/src") == ("outer", "/srv/code/src")
    assert found("/srv/code/lib/x") == ("inner", "/srv/code/lib/x")
    assert found("/srv/other") == ("inner", "/srv/other")
    assert found("/srv") is None
    assert found("/srv/code2") is None


def test_the_first_of_two_corpora_with_one_root_is_meant(tmp_path: Path) -> None:
    where = environment(tmp_path, {"name": "a", "roots": ["/x"]}, {"name": "b", "roots": ["/x"]})
    part = locate(where, Path("/x/y"))
    assert part is not None
    assert part.corpus.name == "a"


def test_names_come_from_the_folder_and_stay_apart(tmp_path: Path) -> None:
    def name(folder: str, *taken: str) -> str:
        return choose(Path(folder), tmp_path / "state", set(taken)).name

    assert name("/srv/my shop") == "my-shop"
    assert name("/") == "root"
    assert name("/srv/日本") == "root"
    assert name("/srv/.config") == "config"
    assert name("/srv/shop", "Shop") == "shop-2"
    assert name("/srv/shop", "shop", "shop-2", "x") == "shop-3"
    assert len(name("/srv/" + "a" * 200)) == 50


def test_what_was_made_is_remembered_and_found(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "shop"
    folder.mkdir()
    state = state_folder(home, "folder", folder)
    assert known(home) == []
    made = choose(folder, state, set())
    remember(made)
    assert (state / "corpus.json").stat().st_mode & 0o777 == 0o600
    assert remembered(state) == made == AdHoc("shop", str(folder), state)
    assert known(home) == [made]
    assert choose(folder, state, {"shop"}) == made

    there = load(config=None, directory=folder, environ={"RAGPILOT_HOME": str(home), "XDG_CONFIG_HOME": str(tmp_path)})
    assert there.state == state
    assert [(corpus.name, corpus.roots) for corpus in there.settings.corpora] == [("shop", [str(folder)])]

    folder.rmdir()
    assert known(home) == []


def test_its_environment_knows_no_other_corpus(tmp_path: Path) -> None:
    where = environment(tmp_path, {"name": "other", "roots": ["/x"]})
    only = environment_of(AdHoc("shop", "/shop", tmp_path / "s"), where)
    assert [corpus.name for corpus in only.settings.corpora] == ["shop"]
    assert (only.state, only.directory) == (tmp_path / "s", Path("/shop"))
    assert only.settings.retrieval == where.settings.retrieval


@pytest.mark.parametrize("content", ["", "[]", "{", '{"name": "../x", "folder": "/x"}', '{"name": 1, "folder": "/x"}'])
def test_a_damaged_marker_is_none(tmp_path: Path, content: str) -> None:
    marker = tmp_path / "corpus.json"
    marker.write_text(content)
    marker.chmod(0o600)
    assert remembered(tmp_path) is None


def test_what_is_forgotten_leaves_nothing_unless_somebody_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    made = AdHoc("shop", str(folder), tmp_path / "home" / "shop")
    remember(made)
    with OwnerLock(made.state, "serve"):
        forget(made)
        assert made.state.is_dir()
        assert remembered(made.state) is None
    forget(made)
    assert not made.state.exists()
    forget(made)
