"""``python -m server``: the server alone, as the terminal UI starts it for itself."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ragpilot.adhoc import environment_of, remembered
from ragpilot.errors import ConfigError, RagPilotError
from ragpilot.settings_loader import load
from server.run import serve


def main(arguments: list[str] | None = None) -> int:
    """Load the configuration and serve. Exit codes: 0 stopped, 1 failed, 2 wrong use or configuration."""
    parser = argparse.ArgumentParser(prog="python -m server", description="Runs the RagPilot server.")
    parser.add_argument("--config", metavar="FILE", help="configuration file")
    parser.add_argument("--directory", metavar="DIR", type=Path, help="working folder; default: the current one")
    parser.add_argument("--state", metavar="DIR", type=Path, help="state folder; default: that of the configuration")
    parser.add_argument("--port", metavar="N", type=_port, help="port; 0: any that is free")
    parser.add_argument(
        "--idle-exit",
        metavar="SECONDS",
        type=float,
        help="leave after so long without a request and without indexing; "
        "without --port, a free port is taken where the configured one is in use",
    )
    given = parser.parse_args(arguments)
    try:
        environment = load(config=given.config, directory=given.directory, environ=os.environ)
        if given.state is not None:
            environment = environment.model_copy(update={"state": given.state.absolute()})
            if (made := remembered(environment.state)) is not None:
                environment = environment_of(made, environment)
        detached = given.idle_exit is not None
        serve(environment, port=given.port, any_port=detached and given.port is None, idle_exit=given.idle_exit)
    except RagPilotError as error:
        sys.stderr.write(f"ragpilot: {error}\n")
        return 2 if isinstance(error, ConfigError) else 1
    return 0


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) < 65_536):
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
