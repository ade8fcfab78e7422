"""Who may read what: the last grant that matches, and nobody where there is doubt."""

from __future__ import annotations

import pytest

from ragpilot.config import CorpusSettings, GrantSettings
from ragpilot.ingest.grants import Grants, Sight
from ragpilot.types import Actor, LeftOut


def grants(*rules: tuple[list[str], list[str]], readers: tuple[str, ...] = ("team:everyone",)) -> Grants:
    listed = [GrantSettings(paths=paths, readers=who) for paths, who in rules]
    return Grants(CorpusSettings(readers=list(readers), grants=listed))


@pytest.mark.parametrize(
    ("path", "readers"),
    [
        ("src/app.py", {"team:everyone"}),
        ("hr/pay.md", {"team:hr"}),
        ("hr/deep/pay.md", {"team:hr"}),
        ("hr/public/holidays.md", {"team:everyone"}),
        ("docs/hr/about.md", {"team:everyone"}),
        ("hr/boss.key", set()),
        ("x/y/boss.key", set()),
        ("legal/case.md", {"team:legal", "user:ann"}),
    ],
)
def test_the_last_match_wins(path: str, readers: set[str]) -> None:
    rules = grants((["/hr/**", "!/hr/public/"], ["team:hr"]), (["legal/"], ["team:legal", "user:ann"]), (["*.key"], []))
    assert rules.readers(path) == readers
    assert rules.problems == ()


def test_no_readers_means_nobody() -> None:
    assert grants(readers=()).readers("a.py") == frozenset()


@pytest.mark.parametrize("glob", ["[abc", "!", "# a comment", "a\\", "[z-a]", "  ", "/"])
def test_a_grant_that_cannot_be_read_closes_what_it_may_have_meant(glob: str) -> None:
    rules = grants((["a/"], ["team:a"]), (["b/", glob], ["team:secret"]), (["c/"], ["team:c"]))
    assert rules.readers("c/x") == {"team:c"}
    for path in ("a/x", "b/x", "d/x"):
        assert rules.readers(path) == frozenset()
    assert len(rules.problems) == 1
    assert repr(glob) in rules.problems[0]


def test_names_with_escapes_match_as_shown_and_as_they_are() -> None:
    shown = grants((["odd\\\\\\\\name"], ["team:a"]))
    real = grants((["odd\\\\name"], ["team:a"]))
    assert shown.readers("odd\\\\name") == real.readers("odd\\\\name") == {"team:a"}


def test_an_actor_hears_of_what_he_may_read_and_an_administrator_of_everything() -> None:
    rules = grants((["hr/**", "*.key"], ["team:hr"]), (["attic/"], []))
    everyone = frozenset({"team:everyone"})
    ann = Sight(Actor("ann", everyone, frozenset({"ask", "ingest"})), rules)
    for path in ("src/app.py", "src", "src/", "docs/hr/about.md"):
        assert ann.sees(path)
    # A folder is named by what is in it: with or without a slash, deep or not.
    for path in ("hr/pay.md", "hr", "hr/", "hr/deep", "attic", "attic/old.md", "src/boss.key"):
        assert not ann.sees(path)
    found = [LeftOut(path, "binary") for path in ("hr/a.png", "a.png", "hr/")]
    assert ann.seen(found) == [LeftOut("a.png", "binary")]
    admin = Sight(Actor("ada", frozenset(), frozenset({"admin"})), rules)
    assert admin.whole
    assert admin.seen(found) == found
    assert admin.sees("attic")
    assert not Sight(Actor("ann", everyone), None).sees("src/app.py")
