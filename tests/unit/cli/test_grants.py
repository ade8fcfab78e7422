"""`ragpilot grants` over a project that was indexed in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ragpilot import bootstrap, cli, cli_session
from ragpilot.actors import token_hash
from ragpilot.bootstrap import Application
from ragpilot.config import Environment
from ragpilot.errors import StoreFullError
from ragpilot.grants_report import idle_grants
from ragpilot.runtime import OwnerLock, ServerRecord
from ragpilot.settings_loader import load
from tests.fakes import FakeEmbedder, MemoryStore, ScriptedChatModel

FILES = {"src/app.py": "def run():\n    return 1\n", "hr/pay.md": "# Pay\n\nA lot.\n", "hr/holidays.md": "# Holidays\n"}
ACTORS = f"""
[[actors]]
name = "ann"
principals = ["user:ann", "team:everyone"]
tokens = ["{token_hash("anns")}"]
[[actors]]
name = "olga"
permissions = ["ask", "ingest"]
tokens = ["{token_hash("olgas")}"]
"""
GRANTS = """
[[corpora.grants]]
paths = ["hr/**", "!hr/holidays.md"]
readers = ["team:people"]
"""


class Shop:
    """A project with a configuration of its own, and one store for all commands."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = folder / "shop"
        self.config = folder / "ragpilot.toml"
        self.store, self.embedder = MemoryStore(), FakeEmbedder()
        for name, text in FILES.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        monkeypatch.setattr(cli_session, "build", self._build)
        monkeypatch.setenv("RAGPILOT_CONFIG", str(self.config))
        monkeypatch.chdir(self.root)
        self.configure("")

    def configure(self, grants: str, actors: str = "") -> None:
        corpus = f'[[corpora]]\nname = "shop"\nroots = ["{self.root}"]\n'
        self.config.write_text(f"{corpus}{grants}{actors}")

    @property
    def environment(self) -> Environment:
        return load(config=str(self.config), directory=None, environ={"RAGPILOT_HOME": str(self.root.parent / "home")})

    @asynccontextmanager
    async def _build(self, environment: Environment) -> AsyncIterator[Application]:
        chat = ScriptedChatModel()
        async with bootstrap.build(environment, store=self.store, embedder=self.embedder, chat=chat) as application:
            yield application

    def readers(self) -> dict[str, set[str]]:
        held = self.store.chunks["shop"].values()
        return {entry.chunk.path: set(entry.chunk.readers) for entry in held}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shop:
    monkeypatch.setenv("RAGPILOT_HOME", str(tmp_path / "home"))
    made = Shop(tmp_path, monkeypatch)
    assert cli.run(["index", "--quiet"]) == 0
    capsys.readouterr()
    return made


def ran(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    assert cli.run(["grants", *arguments]) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_apply_gives_documents_their_readers_and_embeds_nothing(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    embedded = shop.embedder.documents_embedded
    assert shop.readers()["hr/pay.md"] == {"team:everyone"}
    shop.configure(GRANTS)
    assert ran(capsys, "apply")[0] == "shop: 1 document has other readers now.\n"
    assert shop.readers() == {
        "hr/pay.md": {"team:people"},
        "hr/holidays.md": {"team:everyone"},
        "src/app.py": {"team:everyone"},
    }
    assert ran(capsys, "apply", "--corpus", "shop")[0] == "shop: 0 documents have other readers now.\n"
    assert shop.embedder.documents_embedded == embedded
    ran(capsys, "apply", "--corpus", "other", code=2)


def test_a_grant_that_cannot_be_read_closes_and_is_told(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.configure('[[corpora.grants]]\npaths = ["[z-a]"]\nreaders = ["team:x"]\n')
    printed, told = ran(capsys, "apply")
    assert printed == "shop: 3 documents have other readers now.\n"
    assert "The grant for '[z-a]' cannot be read." in told
    assert set(map(frozenset, shop.readers().values())) == {frozenset()}
    assert "nobody reads it" in ran(capsys, "explain", "src/app.py")[0]


@pytest.mark.parametrize("token", ["", "anns", "unknown"])
def test_apply_is_for_whoever_owns_the_configuration_and_asks_for_no_token(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    shop.configure(GRANTS, ACTORS)
    monkeypatch.setenv("RAGPILOT_TOKEN", token)
    assert ran(capsys, "apply")[0] == "shop: 1 document has other readers now.\n"
    assert shop.readers()["hr/pay.md"] == {"team:people"}


def test_a_question_without_a_server_is_answered_by_the_grants_of_now(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.configure(GRANTS, ACTORS)
    monkeypatch.setenv("RAGPILOT_TOKEN", "anns")
    assert cli.run(["status", "--json"]) == 0
    assert [corpus["documents"] for corpus in json.loads(capsys.readouterr().out)["corpora"]] == [2]
    assert shop.readers()["hr/pay.md"] == {"team:people"}
    assert "index: indexed with these readers" in ran(capsys, "explain", "hr/pay.md")[0]
    shop.configure("", ACTORS)
    assert cli.run(["search", "pay", "--json"]) == 0
    assert shop.readers()["hr/pay.md"] == {"team:everyone"}


def test_grants_for_which_the_disk_has_no_room_keep_a_question_from_being_answered_by_those_before(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_room(*_: object) -> None:
        raise StoreFullError("The disk is full.", hint="Make room.")

    shop.configure(GRANTS)
    monkeypatch.setattr(MemoryStore, "set_readers", no_room)
    assert cli.run(["search", "pay"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "The disk is full." in printed.err
    assert "Make room." in printed.err


def serving(monkeypatch: pytest.MonkeyPatch, shop: Shop, *, takes: bool) -> list[str]:
    """A server that is asked twice before it has applied the grants; or that never takes them."""
    asked: list[str] = []

    async def found(_: Path) -> ServerRecord:
        return ServerRecord("http://127.0.0.1:5200", 4711, "")

    async def in_force(address: str) -> bool:
        asked.append(address)
        if takes and len(asked) == 2:
            async with cli_session.open_parts(shop.environment, "index") as application:
                await application.put_grants_in_force()
        return len(asked) == 2 or not takes

    monkeypatch.setattr("ragpilot.grants_report.find_server", found)
    monkeypatch.setattr("ragpilot.grants_report.access_in_force", in_force)
    return asked


def test_a_running_server_applies_them_when_it_is_asked(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.configure(GRANTS)
    asked = serving(monkeypatch, shop, takes=True)
    assert ran(capsys, "apply") == ("shop: 1 document has other readers now.\n", "")
    assert asked == ["http://127.0.0.1:5200"] * 2
    assert shop.readers()["hr/pay.md"] == {"team:people"}


def test_a_running_server_that_does_not_take_them_is_told(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.configure(GRANTS)
    serving(monkeypatch, shop, takes=False)
    printed, told = ran(capsys, "apply", code=1)
    assert printed == "shop: 0 documents have other readers now.\n"
    assert "Error: 1 document has other readers than the configuration says." in told
    assert "(process 4711) has not taken it; its log says why." in told


def test_a_command_that_holds_the_store_is_named(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    with OwnerLock(shop.environment.state, "index"):
        assert "in use by `ragpilot index`" in ran(capsys, "apply", code=1)[1]


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    return json.loads(ran(capsys, "explain", "--json", *arguments)[0])  # type: ignore[no-any-return]


@pytest.mark.parametrize("path", ["hr/pay.md", "./hr/pay.md", "{root}/hr/pay.md", "../shop/hr/pay.md"])
def test_explain_says_which_grant_decides(shop: Shop, capsys: pytest.CaptureFixture[str], path: str) -> None:
    shop.configure(GRANTS, ACTORS)
    given = path.format(root=shop.root)
    assert explained(capsys, given, "--actor", "ann") == {
        "corpus": "shop",
        "path": "hr/pay.md",
        "readers": ["team:people"],
        "grant": 1,
        "glob": "hr/**",
        "reason": "grant 1 of 1, by 'hr/**': the last one that matches",
        "indexed": True,
        "indexedReaders": ["team:everyone"],
        "actor": "ann",
        "mayRead": False,
    }
    printed, _ = ran(capsys, "explain", given, "-a", "ann")
    assert "hr/pay.md in corpus shop\n  readers: team:people\n" in printed
    assert "indexed with other readers (team:everyone) until grants are applied" in printed
    assert "ann may not read it: holds team:everyone, user:ann" in printed


def test_explain_what_no_grant_matches(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.configure(GRANTS, ACTORS)
    printed, _ = ran(capsys, "explain", "hr/holidays.md", "-a", "ann")
    assert "no grant matches it: the corpus's own readers count" in printed
    assert "index: indexed with these readers" in printed
    assert "ann may read it, as team:everyone" in printed
    printed, _ = ran(capsys, "explain", "hr/holidays.md", "-a", "olga")
    assert "olga may not read it: holds no principal" in printed


def test_explain_without_actors_and_for_what_is_not_indexed(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert "index: not indexed" in ran(capsys, "explain", "src/new.py")[0]
    assert explained(capsys, "src/app.py", "--actor", "local")["mayRead"] is True
    _, told = ran(capsys, "explain", "src/app.py", "--actor", "ann", code=2)
    assert told == "Error: There is no actor 'ann': none is configured.\nWhoever is here asks as 'local'.\n"
    assert "actor" not in ran(capsys, "explain", "src/app.py")[0]
    (shop.root / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    assert cli.run(["index", "--quiet"]) == 0
    capsys.readouterr()
    assert "left out of the index: " in ran(capsys, "explain", "logo.png")[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("hr",), "is a folder"),
        (("/etc/passwd",), "lies in no corpus"),
        (("../../etc/passwd",), "lies in no corpus"),
        (("hr/pay.md", "--actor", "nobody"), "There are: ann, olga"),
        (("hr/pay.md", "--corpus", "other"), "no corpus 'other'"),
    ],
)
def test_explain_refuses_what_it_cannot_know(
    shop: Shop, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    shop.configure(GRANTS, ACTORS)
    assert words in ran(capsys, "explain", *arguments, code=2)[1]


def test_of_several_corpora_the_one_that_knows_the_path_answers(
    shop: Shop, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    shop.configure("", f'[[corpora]]\nname = "other"\nroots = ["{other}"]\nreaders = ["team:x"]\n')
    assert ran(capsys, "explain", "src/app.py")[0].count("in corpus") == 1
    assert explained(capsys, "src/app.py", "--corpus", "other")["readers"] == ["team:x"]
    assert ran(capsys, "explain", "unheard/of.py")[0].count("in corpus") == 2


VAULT = '[[corpora]]\nname = "vault"\nroots = ["{root}"]\nreaders = ["team:vault"]\n'
INDEXERS = f"""
[[actors]]
name = "ann"
principals = ["team:everyone"]
permissions = ["ask", "ingest"]
tokens = ["{token_hash("anns")}"]
[[actors]]
name = "olga"
permissions = ["ask", "ingest"]
tokens = ["{token_hash("olgas")}"]
"""


@pytest.mark.parametrize(
    "options", [("index",), ("index", "--plan"), ("index", "--json"), ("index", "--plan", "--json")]
)
def test_commands_are_silent_on_corpora_that_one_may_not_know_of(
    shop: Shop,
    options: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    vault = tmp_path / "hidden"
    vault.mkdir()
    (vault / "a.md").write_text("# Gold\n")
    shop.configure(VAULT.format(root=vault), INDEXERS)
    monkeypatch.setenv("RAGPILOT_TOKEN", " anns\r\n")
    assert cli.run(list(options)) == 0
    shown = "".join(capsys.readouterr())
    assert "shop" in shown
    assert not any(word in shown for word in ("vault", "hidden", "Passed"))
    monkeypatch.setenv("RAGPILOT_TOKEN", "olgas")
    for further in ((), (str(vault),)):
        assert cli.run([*options, *further]) == 1
        assert capsys.readouterr() == ("", "Error: There is no collection that you may index.\n")


def test_status_of_a_new_folder_names_no_corpus_that_one_may_not_know_of(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.configure(VAULT.format(root=tmp_path), INDEXERS)
    monkeypatch.setenv("RAGPILOT_HOME", str(tmp_path / "elsewhere"))
    for token, known in (("anns", ["shop"]), ("olgas", []), ("wrong", [])):
        monkeypatch.setenv("RAGPILOT_TOKEN", token)
        assert cli.run(["status", "--json"]) == 0
        assert [item["corpus"] for item in json.loads(capsys.readouterr().out)["corpora"]] == known


@pytest.mark.parametrize(
    ("token", "words"), [("one\ntwo", "a line end"), ("one two", "a blank"), ("schlüssel", "ASCII")]
)
def test_what_cannot_be_a_token_is_said(
    shop: Shop, token: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAGPILOT_TOKEN", token)
    assert cli.run(["index"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("Error: RAGPILOT_TOKEN holds ")
    assert words in shown
    assert token not in shown


def test_a_grant_that_matches_nothing_is_told(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    told = "grant 2 of corpus shop matches no indexed document: finance/**, *.xls"
    shop.configure(f'{GRANTS}[[corpora.grants]]\npaths = ["finance/**", "*.xls"]\nreaders = ["team:people"]\n')
    assert ran(capsys, "apply")[1] == f"Warning: {told}\n"
    (shop.root / "finance").mkdir()
    (shop.root / "finance/a.md").write_text("# Costs\n")
    assert idle_grants(shop.environment, shop.environment.settings.corpora) == [("shop", told)]
    assert cli.run(["index", "--quiet"]) == 0
    capsys.readouterr()
    assert ran(capsys, "apply")[1] == ""
