"""Which paths git would take into an index, whoever names them: what an index says came with the repository."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 4096
"""Bytes; no system opens a longer path."""
_GIT: Final = re.compile(rb"(?:\.git|git~1)[ .]*(?::.*)?", re.IGNORECASE | re.DOTALL)
"""Git's own folder, as Windows understands names too."""
_UNSEEN: Final = re.compile(rb"\xe2\x80[\x8c-\x8f\xaa-\xae]|\xe2\x81[\xaa-\xaf]|\xef\xbb\xbf")
"""Characters that file systems of macOS pass over in names."""


def is_sound(path: bytes) -> bool:
    """Whether a path relative to a work tree's top leads to something below it, by the one spelling of its name.

    Nothing else is followed: no absolute path and no empty one, no part that is empty, ``.``, ``..`` or ``.git`` in
    any case, no NUL, no slash at the end.
    """
    return len(path) <= _LONGEST and b"\0" not in path and all(map(_is_sound_part, path.split(b"/")))


def _is_sound_part(part: bytes) -> bool:
    return part not in (b"", b".", b"..") and _GIT.fullmatch(_UNSEEN.sub(b"", part)) is None
