"""`ragpilot actor` over real files: what it prints, what it edits, and what it leaves alone."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ragpilot import cli
from ragpilot.actors import resolve_actor
from ragpilot.config import Settings
from ragpilot.runtime import OwnerLock
from ragpilot.settings_loader import load
from ragpilot.types import Actor

FIRST, SECOND, THIRD = ("a" * 64, "b" * 64, "c" * 64)

FILE = f"""\
# The team's RagPilot.
schema = "ragpilot/1"  # do not change

[[corpora]]
name = "shop"
readers = ["team:core"]

# Ann, from the core team
[[actors]]
name = "ann"
principals = ["user:ann", "team:core"]
tokens = [
    "{FIRST}",  # laptop
    "{SECOND}", # phone
]

# The build server. [[actors]] in a comment is none.
[[actors]]
name = "ci"  # 'tokens = [' in a comment is none
permissions = ["ask", "ingest"]
tokens = ["{THIRD}", "env:CI_TOKEN"]

[retrieval]   # the last section
top_k = 12
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration that is in force; the working folder is empty."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    path = tmp_path / "ragpilot.toml"
    path.write_text(FILE, encoding="utf-8")
    path.chmod(0o640)
    monkeypatch.setenv("RAGPILOT_CONFIG", str(path))
    return path


def ran(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    assert cli.run(["actor", *arguments]) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def settings() -> Settings:
    return load(config=None, directory=None, environ=os.environ).settings


def changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that went and those that came."""
    old, new = before.splitlines(), after.splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


def test_add_prints_the_token_and_a_table_that_lets_it_in(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed, told = ran(capsys, "add", "bob", "--team", "core", "-t", "qa", "-p", "ask", "-p", "ingest")
    token, _, table = printed.partition("\n")
    assert re.fullmatch(r"rp_[A-Za-z0-9_-]{43}", token)
    assert token not in table
    assert token not in told
    given = Settings.model_validate(tomllib.loads(table))
    actor = resolve_actor(given, token, local_token=None)
    assert actor == Actor("bob", frozenset({"user:bob", "team:core", "team:qa"}), frozenset({"ask", "ingest"}))
    assert file.read_text() == FILE
    assert "corpora: shop" in told


def test_add_with_write_appends_and_leaves_everything_else(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed, _ = ran(capsys, "add", "bob", "--team", "core", "--corpus", "shop", "--write", str(file))
    assert file.read_text().startswith(FILE.rstrip("\n") + "\n\n[[actors]]\n")
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(file.parent.glob(".*")) == []
    actor = resolve_actor(settings(), printed.strip(), local_token=None)
    assert actor == Actor("bob", frozenset({"user:bob", "team:core"}), frozenset({"ask"}), "shop")


def test_each_token_is_another(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(capsys, "add", "bob")[0].splitlines()[0] != ran(capsys, "add", "bob")[0].splitlines()[0]


def test_the_first_actor_ends_anonymous_access_and_is_told_so(
    file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "new" / "config.toml"
    monkeypatch.delenv("RAGPILOT_CONFIG")
    _, told = ran(capsys, "add", "ann", "--team", "everyone", "--write", str(new))
    assert "ends anonymous access" in told
    assert "corpora: default" in told
    assert new.read_text().startswith('schema = "ragpilot/1"\n\n[[actors]]\n')
    monkeypatch.setenv("RAGPILOT_CONFIG", str(new))
    assert [actor.name for actor in settings().actors] == ["ann"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "Ann"), "There is an actor 'Ann' already"),
        (("add", "no blanks"), "name"),
        (("add", "bob", "--team", "two words"), "principal"),
        (("add", "bob", "--corpus", "a/b"), "corpus"),
        (("token", "nobody"), "no actor 'nobody'"),
        (("revoke", "nobody"), "no actor 'nobody'"),
        (("revoke", "ann", "ffff"), "is no token of ann"),
        (("revoke", "ann", "a"), "is no token of ann"),
        (("revoke", "ci", "env:OTHER"), "is no token of ci"),
    ],
)
@pytest.mark.parametrize("write", [False, True])
def test_what_cannot_be_is_refused_and_the_file_stays(
    file: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str, write: bool
) -> None:
    printed, told = ran(capsys, *arguments, *(["--write", str(file)] if write else []), code=2)
    assert words in told
    assert printed == ""
    assert file.read_text() == FILE


def test_another_token_beside_the_old_ones(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ann", "ci"):
        before = file.read_text()
        token = ran(capsys, "token", name, "--write", str(file))[0].strip()
        gone, come = changed(before, file.read_text())
        assert len(come) == 1
        assert len(gone) == (name == "ci")
        assert resolve_actor(settings(), token, local_token=None).name == name
    assert [len(actor.tokens) for actor in settings().actors] == [3, 3]
    shown, told = ran(capsys, "token", "ann")
    token, line = shown.splitlines()
    assert line == f'"{hashlib.sha256(token.encode()).hexdigest()}"'
    assert f"{file}:9" in told


@pytest.mark.parametrize(
    ("fingerprint", "gone"),
    [(FIRST[:12], f'    "{FIRST}",  # laptop'), (SECOND[:12].upper(), f'    "{SECOND}", # phone')],
)
def test_revoke_takes_one_token_with_its_line(
    file: Path, capsys: pytest.CaptureFixture[str], fingerprint: str, gone: str
) -> None:
    ran(capsys, "revoke", "ann", fingerprint, "--write", str(file))
    assert changed(FILE, file.read_text()) == ([gone], [])
    assert len(settings().actors[0].tokens) == 1


@pytest.mark.parametrize(("fingerprint", "left"), [(THIRD[:12], '"env:CI_TOKEN"'), ("env:CI_TOKEN", f'"{THIRD}"')])
def test_revoke_takes_one_token_out_of_a_line(
    file: Path, capsys: pytest.CaptureFixture[str], fingerprint: str, left: str
) -> None:
    ran(capsys, "revoke", "ci", fingerprint, "--write", str(file))
    assert f"\ntokens = [{left}]\n" in file.read_text()
    assert len(file.read_text().splitlines()) == len(FILE.splitlines())


def test_revoke_of_the_actor_takes_its_table_and_no_comment_of_the_next(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(capsys, "revoke", "ann", "--write", str(file))
    text = file.read_text()
    assert "# The build server." in text
    assert FIRST not in text
    assert [actor.name for actor in settings().actors] == ["ci"]
    ran(capsys, "revoke", "ci", THIRD[:12], "--write", str(file))
    # The last token of an actor goes with the actor.
    ran(capsys, "revoke", "ci", "env:CI_TOKEN", "--allow-anonymous", "--write", str(file))
    assert settings().actors == []
    assert settings().retrieval.top_k == 12
    assert "[retrieval]   # the last section" in file.read_text()


def test_revoke_without_write_says_what_and_where(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(capsys, "revoke", "ann", FIRST[:12])[0] == f'Remove "{FIRST}", in {file}:9.\n'
    assert ran(capsys, "revoke", "ann")[0] == f"Remove the table of that actor, in {file}:9.\n"
    assert file.read_text() == FILE


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_line_endings_and_the_mark_at_the_beginning_stay(
    file: Path, capsys: pytest.CaptureFixture[str], ending: str, bom: bytes
) -> None:
    whole = bom + FILE.replace("\n", ending).encode()
    file.write_bytes(whole)
    ran(capsys, "add", "bob", "--write", str(file))
    ran(capsys, "token", "ann", "--write", str(file))
    ran(capsys, "revoke", "ann", SECOND[:12], "--write", str(file))
    content = file.read_bytes()
    assert content.startswith(bom + b"#")
    assert content.count(b"\n") == content.count(ending.encode())
    ran(capsys, "revoke", "bob", "--write", str(file))


INLINE = f'actors = [{{name = "ann", tokens = ["{FIRST}", "{SECOND}"]}}, {{name = "eve", tokens = ["{THIRD}"]}}]\n'
WRONG = f'[[actors]]\nname = "ann"\ntokens = ["{FIRST}", "{SECOND}"]\nactors_of = 1\n'


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (INLINE, ("add", "bob")),
        (INLINE, ("revoke", "ann")),
        (WRONG, ("add", "bob")),
        (WRONG, ("token", "ann")),
        (WRONG, ("revoke", "ann")),
    ],
)
def test_a_file_that_is_wrong_or_written_too_oddly_is_left_alone(
    file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, arguments: tuple[str, ...]
) -> None:
    odd = tmp_path / "odd.toml"
    odd.write_text(text)
    printed, told = ran(capsys, *arguments, "--write", str(odd), code=2)
    assert printed == ""
    assert ("cannot be edited safely" if text is INLINE else "unknown key 'actors_of'") in told
    assert odd.read_text() == text


def test_what_can_be_edited_safely_is_however_it_is_written(
    file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    odd = tmp_path / "odd.toml"
    odd.write_text(INLINE)
    ran(capsys, "token", "ann", "--write", str(odd))
    ran(capsys, "revoke", "ann", FIRST, "--write", str(odd))
    assert tomllib.loads(odd.read_text())["actors"][0]["tokens"][1:] == [SECOND]


def test_a_link_is_followed_and_stays_a_link(file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    ran(capsys, "add", "bob", "--write", str(link))
    assert link.is_symlink()
    assert [actor.name for actor in settings().actors] == ["ann", "ci", "bob"]


def test_list_shows_fingerprints_and_no_hash(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, _ = ran(capsys, "list")
    assert "ann: user:ann, team:core; may ask" in shown
    assert f"token {FIRST[:12]}\n" in shown
    assert "token env:CI_TOKEN (not set here)" in shown
    assert FIRST[:13] not in shown
    monkeypatch.setenv("CI_TOKEN", "x" * 16)
    assert "not set" not in ran(capsys, "list")[0]
    listed: list[dict[str, Any]] = json.loads(ran(capsys, "list", "--json")[0])
    assert [(actor["name"], len(actor["tokens"])) for actor in listed] == [("ann", 2), ("ci", 2)]
    assert listed[0]["tokens"][0] == FIRST[:12]


def test_list_without_actors_says_who_asks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "as team:everyone" in ran(capsys, "list")[0]


def test_a_running_server_goes_by_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with OwnerLock(load(config=None, directory=None, environ=os.environ).state, "serve") as lock:
        lock.announce("http://127.0.0.1:5200")
        for arguments in (("add", "bob"), ("token", "ann"), ("revoke", "ann")):
            assert "goes by the configuration from its next request on" in ran(capsys, *arguments)[1]
        assert f"if {file} is a file that it reads" in ran(capsys, "add", "bob", "--write", str(file))[1]


# --- the last actor


@pytest.mark.parametrize("by", [(), (FIRST[:12],)], ids=["actor", "token"])
def test_the_last_actor_stays_unless_it_is_meant(
    file: Path, capsys: pytest.CaptureFixture[str], by: tuple[str, ...]
) -> None:
    ran(capsys, "revoke", "ci", "--write", str(file))
    ran(capsys, "revoke", "ann", SECOND[:12], "--write", str(file))
    before = file.read_bytes()
    _, told = ran(capsys, "revoke", "ann", *by, "--write", str(file), code=2)
    assert "ann is the last actor" in told
    assert "whoever is on this machine asks without a token" in told
    assert "--allow-anonymous" in told
    assert file.read_bytes() == before
    _, told = ran(capsys, "revoke", "ann", *by)
    assert "Warning: ann is the last actor. Without any actor, whoever is on this machine asks" in told
    _, told = ran(capsys, "revoke", "ann", *by, "--allow-anonymous", "--write", str(file))
    assert "has no actor any more. Without any actor, whoever is on this machine asks without a token." in told
    assert settings().actors == []


def test_what_nothing_could_start_with_is_not_written(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(FILE + '[server]\nhost = "0.0.0.0"\n')
    ran(capsys, "revoke", "ci", "--write", str(file))
    before = file.read_bytes()
    _, told = ran(capsys, "revoke", "ann", "--allow-anonymous", "--write", str(file), code=2)
    assert "would be refused as a whole: server.host = '0.0.0.0' would let other machines ask" in told
    assert "server.allowed_hosts" in told
    assert file.read_bytes() == before


def test_a_server_that_runs_lets_nobody_in_without_actors(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with OwnerLock(load(config=None, directory=None, environ=os.environ).state, "serve"):
        ran(capsys, "revoke", "ci", "--write", str(file))
        _, told = ran(capsys, "revoke", "ann", "--allow-anonymous", "--write", str(file))
    assert "lets nobody in until it is restarted" in told


# --- corpora


def test_a_default_corpus_must_be_there(file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before = file.read_bytes()
    for further in ((), ("--write", str(file))):
        _, told = ran(capsys, "add", "bob", "--corpus", "shoop", *further, code=2)
        assert "There is no corpus 'shoop'" in told
        assert "There are: shop." in told
    assert file.read_bytes() == before
    ran(capsys, "add", "bob", "--corpus", "shop", "--write", str(file))
    # Of a file that is not in force, its own corpora count as well.
    other = tmp_path / "other.toml"
    other.write_text('schema = "ragpilot/1"\n[[corpora]]\nname = "elsewhere"\n')
    ran(capsys, "add", "cy", "--corpus", "elsewhere", "--write", str(other))


# --- a config.toml of the working folder


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where such a file is, or would be."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder / "config.toml"


def test_a_trusted_file_stays_trusted(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own.write_text('schema = "ragpilot/1"\n[server]\nport = 5201\n')
    assert cli.run(["trust"]) == 0
    for arguments in (
        ("add", "ann", "--team", "everyone"),
        ("token", "ann"),
        ("add", "bob"),
        ("revoke", "bob"),
        ("revoke", "ann", "--allow-anonymous"),
    ):
        _, told = ran(capsys, *arguments, "--write", str(own))
        assert "ragpilot trust" not in told
        assert settings().server.port == 5201
    assert settings().actors == []


def test_a_file_that_is_made_here_is_trusted(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, told = ran(capsys, "add", "ann", "--team", "everyone", "--write", str(own))
    assert "ragpilot trust" not in told
    assert [actor.name for actor in settings().actors] == ["ann"]
    own.write_text(own.read_text() + "# changed by somebody else\n")
    assert cli.run(["actor", "list"]) == 2
    assert "is not trusted" in capsys.readouterr().err


def test_a_file_that_was_not_trusted_is_not_trusted_for_an_edit(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own.write_text('schema = "ragpilot/1"\n')
    _, told = ran(capsys, "add", "ann", "--team", "everyone", "--write", str(own))
    assert "It does not count yet." in told
    assert "`ragpilot trust`" in told
    assert cli.run(["actor", "list"]) == 2
    assert cli.run(["trust"]) == 0
    assert [actor.name for actor in settings().actors] == ["ann"]


def test_a_file_that_does_not_say_whose_it_is_says_so_from_then_on(tmp_path: Path) -> None:
    shop = tmp_path / "config.toml"
    shop.write_text('# The shop.\n[[corpora]]\nname = "shop"\n', encoding="utf-8")
    assert cli.run(["actor", "add", "ann", "--team", "core", "--write", str(shop)]) == 0
    text = shop.read_text(encoding="utf-8")
    assert text.startswith('schema = "ragpilot/1"\n\n# The shop.\n[[corpora]]\nname = "shop"\n')
    assert tomllib.loads(text)["actors"][0]["name"] == "ann"
