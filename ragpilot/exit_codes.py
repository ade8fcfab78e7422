"""How a command ends, as a number for the shell that ran it."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
FAILED: Final = 1
WRONG_USE: Final = 2
NOT_FOUND: Final = 3
"""Of `ask`: the not-found answer."""
PARTLY: Final = 4
"""Of `index`: some files failed."""
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141
