"""Names of any bytes as paths that can be shown, and found again."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ragpilot.ingest.paths import raw_path, shown_path
from ragpilot.ingest.roots import Root, locate
from ragpilot.ingest.walk import walk


def test_any_bytes_survive_and_the_file_is_found_again(tmp_path: Path) -> None:
    names = [
        b"plain.py",
        b"caf\xc3\xa9",
        b"latin\xe9.py",
        b"new\nline",
        b"esc\x1b[0m",
        b"back\\slash",
        b"\\xe9",
        b"a\x7f",
    ]
    root = tmp_path / "t"
    root.mkdir()
    for name in names:
        Path(os.path.join(os.fsencode(root), name).decode("utf-8", "surrogateescape")).write_bytes(name)  # noqa: PTH118
    listing = walk(Root(root))
    assert len({entry.path for entry in listing.files}) == len(names)
    for entry in listing.files:
        assert entry.path.isprintable()
        found = locate((Root(root),), entry.path)
        assert found is not None
        assert found.read_bytes() == raw_path(entry.path)


@given(st.binary(min_size=1, max_size=40).filter(lambda raw: b"\0" not in raw))
def test_shown_paths_lead_back(raw: bytes) -> None:
    shown = shown_path(raw)
    assert raw_path(shown) == raw
    assert shown.isprintable()
    shown.encode("utf-8")
