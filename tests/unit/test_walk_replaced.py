"""The walk of a tree whose files and folders took each other's places since git last saw them."""

from __future__ import annotations

import shutil
from pathlib import Path

from ragpilot.ingest.roots import Root
from ragpilot.ingest.walk import walk
from tests.trees import both_ways, git, needs_git, paths, reasons, write


@needs_git
@both_ways
def test_a_folder_that_is_now_a_file_hides_nothing_and_is_no_refusal(tmp_path: Path, *, use_git: bool) -> None:
    root = write(tmp_path / "root", {"a.py": "1", "pkg/b.py": "1", "pkg/deep/c.py": "1"})
    git(root, "init", "-q")
    git(root, "add", "-A")
    shutil.rmtree(root / "pkg")
    (root / "a.py").unlink()
    write(root, {"pkg": "a file", "a.py/x.py": "1"})

    listing = walk(Root(root), use_git=use_git)

    assert paths(listing) == ["a.py/x.py", "pkg"]
    assert reasons(listing) == {}
    assert listing.unlisted == []
