"""What RagPilot logs of an error that nobody foresaw: its kind and its place, never what was asked or found."""

from __future__ import annotations

import logging
import traceback


def log_unexpected(logger: logging.Logger, error: BaseException, where: str) -> None:
    """Log the kind of ``error`` and the lines it passed through; ``where`` is a request's id, or what was done.

    Its message stays out, for it may quote a question, a chunk or a token; debug logging brings it.
    """
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("unexpected %s (%s)\n%s", type(error).__name__, where, frames.rstrip())
    logger.debug("%s: %s", where, error)
