"""The server's log on standard error."""

from __future__ import annotations

import logging

SECURITY = 35
"""The level of what an operator must be able to follow up, such as writes that an agent asks for: above warnings."""


def configure_logging(level: int = logging.INFO) -> None:
    """Log to standard error, unless the process has decided about its log already."""
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.addLevelName(SECURITY, "SECURITY")
    # The protocol's library tells of every call what the guard's line tells.
    logging.getLogger("mcp").setLevel(logging.WARNING)
    # Of Hypercorn only what went wrong: the guard writes the line of each request.
    logging.getLogger("hypercorn.error").setLevel(logging.WARNING)
    # A line for every call of a chat model's service says nothing that the answer does not.
    logging.getLogger("httpx").setLevel(logging.WARNING)
