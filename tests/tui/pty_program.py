"""The program as a terminal sees it, on a scripted server; run by ``test_terminal``."""

from __future__ import annotations

import sys

from tests.tui.host import Connector
from tests.tui.scripted import ScriptedBackend, answered
from tui.app import RagPilotApp

if __name__ == "__main__":
    backend = ScriptedBackend(answered("Quantum flux \x1b]52;c;aGk=\x07 regulates it [1]."))
    app = RagPilotApp(Connector(backend), label="demo")
    app.run()
    sys.exit(app.return_code)
