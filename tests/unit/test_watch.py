"""What a change of files asks for, decided without a file system."""

from __future__ import annotations

import pytest

from ragpilot.ingest.watch import Tree, place_of

TREE = Tree(
    tops=frozenset({"/w/shop", "/w/lib/one.py"}),
    folders=frozenset({"/w/shop", "/w/shop/src", "/w/shop/src/orders", "/w/shop/docs", "/w/lib"}),
    files=frozenset({"/w/shop/src/a.py", "/w/shop/src/orders/b.py", "/w/shop/.gitignore", "/w/lib/one.py"}),
    ignored=frozenset({"/w/shop/node_modules", "/w/shop/debug.log"}),
    signals=frozenset({"/w/shop/.git/index", "/w/.gitignore"}),
)


@pytest.mark.parametrize(
    "path",
    [
        "/w/shop/src/a.py",
        "/w/shop/src/new.py",
        "/w/shop/fresh/folder/new.py",  # a folder that came after the walk
        "/w/shop/src",  # gone, or made again
        "/w/shop/src/orders/.gitignore",
        "/w/shop/vendor/clone/.git",  # a repository inside, made or removed
        "/w/shop/.git/index",
        "/w/.gitignore",
        "/w/lib/one.py",
        "/w/shop",
    ],
)
def test_what_counts(path: str) -> None:
    assert TREE.concerns(path)


@pytest.mark.parametrize(
    "path",
    [
        "/w/shop/node_modules",
        "/w/shop/node_modules/left/pad.js",
        "/w/shop/debug.log",
        "/w/shop/.git/index.lock",
        "/w/shop/.git/objects/ab/cdef",
        "/w/shop/src/clone/.git/HEAD",
        "/w/shop.txt",
        "/w/shopping/a.py",
        "/w/lib/two.py",  # beside the one file that is watched
        "/elsewhere",
    ],
)
def test_what_does_not_count(path: str) -> None:
    assert not TREE.concerns(path)


def test_a_rule_file_is_never_taken_as_known() -> None:
    assert TREE.is_known("/w/shop/src/a.py")
    assert not TREE.is_known("/w/shop/src/new.py")
    assert not TREE.is_known("/w/shop/.gitignore")


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"/w/shop/src/a.py"}, "/w/shop/src/a.py"),
        ({"/w/shop/src/a.py", "/w/shop/src/orders/b.py"}, "/w/shop/src"),
        ({"/w/shop/src/orders/b.py", "/w/shop/src/orders/c.py"}, "/w/shop/src/orders"),
        ({"/w/shop/src/a.py", "/w/shop/docs/b.md"}, None),  # their only common folder is the root
        ({"/w/shop/src/orders/.gitignore"}, "/w/shop/src/orders"),
        ({"/w/shop/.gitignore"}, None),
        ({"/w/shop/src/clone/.git"}, "/w/shop/src/clone"),
        ({"/w/shop/src/orders/pyvenv.cfg"}, "/w/shop/src/orders"),
        ({"/w/shop/.git/index", "/w/shop/src/a.py"}, None),
        ({"/w/shop/src"}, "/w/shop/src"),
        ({"/w/shop"}, None),
        ({"/w/lib/one.py"}, None),  # all that is watched there
        ({"/w/shop/src/a.py", "/w/lib/one.py"}, None),
        (set(), None),
    ],
)
def test_how_narrow_a_run_may_be(changes: set[str], place: str | None) -> None:
    assert place_of(TREE, changes, stands=lambda _: True) == place


def test_of_what_is_gone_the_folder_above_is_covered() -> None:
    gone = {"/w/shop/src/orders/b.py", "/w/shop/src/orders"}
    assert place_of(TREE, {"/w/shop/src/orders/b.py"}, stands=lambda path: path not in gone) == "/w/shop/src"
    assert place_of(TREE, {"/w/shop/src/a.py"}, stands=lambda path: path == "/w/shop") is None
    assert place_of(TREE, {"/w/shop/src/a.py"}, stands=lambda _: False) is None
