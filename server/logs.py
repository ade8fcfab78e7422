"""The server's log: a line a request, and of an error that nobody foresaw the place, never what was asked or found."""

from __future__ import annotations

import logging
import traceback


def configure_logging(level: int = logging.INFO) -> None:
    """Log to standard error, unless the process has decided about its log already."""
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # Of Hypercorn only what went wrong: the guard writes the line of each request.
    logging.getLogger("hypercorn.error").setLevel(logging.WARNING)


def log_unexpected(logger: logging.Logger, error: BaseException, where: str) -> None:
    """Log the kind of ``error`` and the lines it passed through; ``where`` is a request's id, or what was done.

    Its message stays out, for it may quote a question, a chunk or a token; debug logging brings it.
    """
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("unexpected %s (%s)\n%s", type(error).__name__, where, frames.rstrip())
    logger.debug("%s: %s", where, error)
