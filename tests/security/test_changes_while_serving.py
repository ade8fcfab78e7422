"""Actors and grants that change beside a running server: in force at the next request, as processes really run.

A server in a process of its own, over the real store and the real embedder. Its configuration is edited by hand and by
`ragpilot actor`, and `ragpilot grants` says what came of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from ragpilot import cli
from ragpilot.actors import token_hash

COMMAND = [str(Path(sys.executable).with_name("ragpilot"))]
SECONDS = 60
FILES = {
    "src/budget.py": "def enforce_budget(blocks):\n    '''Cuts the context budget.'''\n    return blocks[:8]\n",
    "hr/pay.md": "# Pay\n\nThe context budget of salaries is CANARYPAY.\n",
}
ASKED = {"question": "where is the context budget?", "k": 20}
CLOSED = '\n[[corpora.grants]]\npaths = ["hr/**"]\nreaders = ["team:hr"]\n'


def actor(name: str, *principals: str, may: tuple[str, ...] = ("ask",)) -> str:
    listed = ", ".join(f'"{one}"' for one in principals)
    permissions = ", ".join(f'"{one}"' for one in may)
    head = f'\n[[actors]]\nname = "{name}"\nprincipals = [{listed}]\npermissions = [{permissions}]\n'
    return f'{head}tokens = ["{token_hash(f"token-of-{name}")}"]\n'


ANN = actor("ann", "team:core")
OLGA = actor("olga", "team:core", may=("ask", "ingest", "admin"))


@dataclass
class Shop:
    """A project, its own configuration file, and a server that runs by it."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    address: str = ""
    log: str = ""

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"

    def configure(self, text: str) -> None:
        root = self.folder / "shop"
        head = 'schema = "ragpilot/1"\n[retrieval]\ngate = "off"\nmin_score = -1.0\n[[corpora]]\nname = "shop"\n'
        self.config.write_text(f'{head}roots = ["{root}"]\nreaders = ["team:core"]\n{text}')

    def run(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        self.capsys.readouterr()
        assert cli.run(list(arguments)) == code
        captured = self.capsys.readouterr()
        return captured.out, captured.err

    def ask(self, name: str | None, path: str = "/search", body: Any = ASKED) -> httpx.Response:
        headers = {} if name is None else {"Authorization": f"Bearer token-of-{name}"}
        with httpx.Client(base_url=self.address, headers=headers, timeout=SECONDS, trust_env=False) as client:
            return client.get(path) if body is None else client.post(path, json=body)

    def found(self, name: str) -> set[str]:
        response = self.ask(name)
        assert response.status_code == 200, response.text
        return {hit["filePath"] for hit in response.json()["hits"]}

    @contextmanager
    def serving(self) -> Iterator[None]:
        with (self.folder / "server.log").open("w") as log:
            process = subprocess.Popen(  # noqa: S603 - our own command
                [*COMMAND, "serve", "--port", "0"],
                cwd=self.folder / "shop",
                stdout=log,
                stderr=subprocess.PIPE,
                encoding="utf-8",
            )
            assert process.stderr is not None
            try:
                for line in process.stderr:
                    if "answers at" in line:
                        self.address = line.split("answers at ")[1].split(";")[0]
                        break
                yield
            finally:
                process.terminate()
                self.log = "".join(process.stderr)
                process.stderr.close()
                process.wait(SECONDS)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shop:
    for name, text in FILES.items():
        file = tmp_path / "shop" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    for variable in (name for name in os.environ if name.startswith(("RAGPILOT_", "XDG_"))):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAGPILOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RAGPILOT_CHAT__KIND", "extractive")
    monkeypatch.setenv("RAGPILOT_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.chdir(tmp_path / "shop")
    made = Shop(tmp_path, capsys)
    made.configure(ANN + OLGA)
    return made


@pytest.mark.timeout(240)
def test_changes_count_from_the_next_request_on(shop: Shop) -> None:
    everything = {"src/budget.py", "hr/pay.md"}
    with shop.serving():
        assert shop.ask("olga", "/index", {}).status_code == 200
        assert shop.found("ann") == everything

        # A grant, by hand: at the very next question, whoever asks it.
        shop.configure(CLOSED + ANN + OLGA)
        assert shop.found("ann") == {"src/budget.py"}
        stats = shop.ask("ann", "/index/stats", None).json()
        assert (stats["documents"], stats["pointCount"]) == (1, 1)
        assert "CANARYPAY" not in shop.ask("ann", "/ask", {"question": "what is the budget of salaries?"}).text
        printed, _ = shop.run("grants", "explain", "hr/pay.md", "--actor", "ann")
        assert "index: indexed with these readers" in printed

        # And its end. `grants apply` needs neither token nor restart, and says what came of it.
        shop.configure(ANN + OLGA)
        printed, told = shop.run("grants", "apply")
        assert (printed, told) == ("shop: 1 document has other readers now.\n", "")
        assert shop.found("ann") == everything
        assert shop.run("grants", "apply")[0] == "shop: 0 documents have other readers now.\n"

        # A run of ingestion goes by the grants of now, also for what it finds new.
        (shop.folder / "shop/hr/bonus.md").write_text("# Bonus\n\nThe context budget of bonuses.\n")
        shop.configure(CLOSED + ANN + OLGA)
        assert shop.ask("olga", "/index", {}).status_code == 200
        assert shop.found("ann") == {"src/budget.py"}

        # A file that is wrong changes nothing, and the log says so; nor does one that ends in the middle.
        whole = shop.config.read_text()
        shop.config.write_text(whole.replace("[[corpora.grants]]", "[[corpora.grant]]"))
        assert shop.found("ann") == {"src/budget.py"}
        shop.config.write_text(whole + "\n[[actors]]\nname =")
        assert shop.found("ann") == {"src/budget.py"}
        assert "config.toml" in shop.run("grants", "apply", code=2)[1]
        shop.config.write_text(whole)

        # A new actor, and one whose token is revoked.
        assert shop.ask("bob").status_code == 401
        token = shop.run("actor", "add", "bob", "--team", "hr", "--write", str(shop.config))[0].strip()
        with httpx.Client(base_url=shop.address, timeout=SECONDS, trust_env=False) as client:
            answer = client.post("/search", json=ASKED, headers={"Authorization": f"Bearer {token}"})
            assert {hit["filePath"] for hit in answer.json()["hits"]} == {"hr/pay.md", "hr/bonus.md"}
            shop.run("actor", "revoke", "bob", "--write", str(shop.config))
            again = client.post("/search", json=ASKED, headers={"Authorization": f"Bearer {token}"})
            assert again.status_code == 401
        shop.run("actor", "revoke", "ann", "--write", str(shop.config))
        assert shop.ask("ann").status_code == 401
        assert shop.ask("olga").status_code == 200

        # The end of all actors lets nobody in until the server starts anew.
        told = shop.run("actor", "revoke", "olga", "--write", str(shop.config), code=2)[1]
        assert "--allow-anonymous" in told
        assert shop.ask("olga").status_code == 200
        told = shop.run("actor", "revoke", "olga", "--allow-anonymous", "--write", str(shop.config))[1]
        assert "lets nobody in until it is restarted" in told
        for name in ("olga", "ann", None):
            assert shop.ask(name).status_code == 401
        assert shop.ask(None, "/health", None).json() == {"status": "ok"}
    assert shop.log.count("is not taken, actors and grants stay as they were") >= 2
    assert "nobody gets in until the server is started anew" in shop.log
    assert "CANARYPAY" not in shop.log
    assert "token-of" not in shop.log
