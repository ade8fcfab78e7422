"""The `ragpilot` command, and ``python -m ragpilot``."""

from __future__ import annotations

import signal


def main() -> None:
    """Entry point of the console script.

    Until all is loaded, which takes a moment, Ctrl-C ends the process as it ends any other: nothing is under way yet
    that could be left half done, and a traceback through other people's modules would tell nobody anything.
    """
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from ragpilot import cli

    if heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
