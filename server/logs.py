"""The server's log on standard error."""

from __future__ import annotations

import logging


def configure_logging(level: int = logging.INFO) -> None:
    """Log to standard error, unless the process has decided about its log already."""
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # Of Hypercorn only what went wrong: the guard writes the line of each request.
    logging.getLogger("hypercorn.error").setLevel(logging.WARNING)
