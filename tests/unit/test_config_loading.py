"""Which files and variables count, in which order, and what a broken one says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragpilot.errors import ConfigError
from ragpilot.settings_loader import indexed_above, load
from tests.machine import FILE, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_any_file_the_working_folder_is_the_corpus(machine: Machine) -> None:
    environment = machine.load()
    assert [(corpus.name, corpus.roots) for corpus in environment.settings.corpora] == [
        ("default", [str(machine.work)])
    ]
    assert environment.origins == {}
    assert environment.directory == machine.work
    assert environment.state.parent == machine.home
    assert environment.state.name.startswith("work-")
    assert not machine.home.exists()


def test_the_users_file_then_the_named_one(machine: Machine, tmp_path: Path) -> None:
    machine.config.write_text("[retrieval]\ntop_k = 11\n")
    named = tmp_path / "named.toml"
    named.write_text("[retrieval]\ntop_k = 12\n")
    other = tmp_path / "other.toml"
    other.write_text("[retrieval]\ntop_k = 13\n")
    assert machine.load().settings.retrieval.top_k == 11
    assert machine.load(RAGPILOT_CONFIG=str(named)).settings.retrieval.top_k == 12
    chosen = machine.load(str(other), RAGPILOT_CONFIG=str(named))
    assert chosen.settings.retrieval.top_k == 13
    assert chosen.config == str(other)
    assert chosen.origins == {"retrieval.top_k": f"{other}:2"}


def test_the_configuration_folder_without_xdg(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    path = tmp_path / ".config" / "ragpilot" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[retrieval]\ntop_k = 3\n")
    environment = load(config=None, directory=machine.work, environ={"HOME": str(tmp_path)})
    assert environment.settings.retrieval.top_k == 3
    assert environment.state.parent == tmp_path / ".local" / "share" / "ragpilot"


def test_variables_come_last_and_are_typed(machine: Machine) -> None:
    machine.config.write_text('[chat]\nurl = "http://h:1"\ntemperature = 0.5\nkind = "ollama"\n')
    environment = machine.load(
        RAGPILOT_CHAT__TEMPERATURE="1",
        RAGPILOT_CHAT__URL="",
        RAGPILOT_CHAT__MODEL="7",
        RAGPILOT_RETRIEVAL__GATE="off",
        RAGPILOT_STORE__ON_DISK="True",
        RAGPILOT_STORE__PATH="vectors",
        RAGPILOT_SERVER__PORT="5_201",
        RAGPILOT_SERVER__ALLOWED_HOSTS='["box:5200", "ragpilot.internal"]',
        RAGPILOT_SERVER__CORS_ORIGIN="",
    )
    settings = environment.settings
    assert (settings.chat.temperature, settings.chat.url, settings.chat.model) == (1.0, None, "7")
    assert settings.chat.kind == "ollama"
    assert settings.retrieval.gate == "off"
    assert (settings.store.on_disk, settings.store.path) == (True, str(machine.work / "vectors"))
    assert settings.server.port == 5201
    assert settings.server.allowed_hosts == ["box:5200", "ragpilot.internal"]
    assert settings.server.cors_origin == ""
    assert environment.origins["server.port"] == "RAGPILOT_SERVER__PORT"
    assert environment.origins["chat.kind"] == f"{machine.config}:4"


def test_a_variable_may_be_a_number_or_a_word(machine: Machine) -> None:
    assert machine.load(RAGPILOT_RETRIEVAL__GATE="0.75").settings.retrieval.gate == 0.75
    assert machine.load(RAGPILOT_RETRIEVAL__GATE="auto").settings.retrieval.gate == "auto"


def test_variables_that_are_no_keys(machine: Machine) -> None:
    environment = machine.load(
        RAGPILOT_TOKEN="t", RAGPILOT_DEBUG="1", RAGPILOT_TEST_X="1", RAGPILOT_TEST_A__B="1", RAGPILOT_CONFIG=""
    )
    assert environment.notes == []


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("RAGPILOT_RETRIEVAL__TOPK", "5", "Did you mean RAGPILOT_RETRIEVAL__TOP_K?"),
        ("RAGPILOT_RETREIVAL__TOP_K", "5", "Did you mean RAGPILOT_RETRIEVAL__TOP_K?"),
        ("RAGPILOT_ACTORS__0__NAME", "x", "Sections: server, store"),
        ("RAGPILOT_RETRIEVAL__TOP_K", "five", 'retrieval.top_k must be a whole number from 1 to 50, not "five".'),
        ("RAGPILOT_RETRIEVAL__TOP_K", "51", "must be a whole number from 1 to 50, not 51."),
        ("RAGPILOT_RETRIEVAL__TOP_K", "5\nx = 1", "must be a whole number"),
        ("RAGPILOT_SERVER__PORT", "", "must be a whole number"),
        ("RAGPILOT_STORE__ON_DISK", "yes", "must be true or false"),
        ("RAGPILOT_SERVER__ALLOWED_HOSTS", "box", "must be a list"),
        ("RAGPILOT_SERVER__HOST", "0.0.0.0", "without [[actors]] only loopback is allowed"),  # noqa: S104
    ],
)
def test_a_wrong_variable_is_refused_by_name(machine: Machine, variable: str, value: str, said: str) -> None:
    message = machine.refused(**{variable: value})
    assert variable in message
    assert said in message


def test_single_underscores_are_noted_and_what_orchestrators_set_is_not(machine: Machine) -> None:
    (note,) = machine.load(RAGPILOT_CHAT_KIND="ollama", RAGPILOT_PORT="tcp://10.0.0.1:5200").notes
    assert "RAGPILOT_CHAT_KIND" in note
    assert "RAGPILOT_CHAT__KIND" in note


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'[chat]\nmodel = "mod\xe8le"\n', ":2:13: the byte 0xe8 is not UTF-8. Save it as UTF-8."),
        ('schema = "ragpilot/1"'.encode("utf-16"), "is UTF-16 text. Save it as UTF-8."),
        (b"[chat\nmodel = ", ":1:6: this is not TOML: Expected ']'"),
        (b"[chat]\nmodel = \n", ":2:9: this is not TOML: Invalid value."),
        (b"x = 1\nx = 2", ":2:6: this is not TOML: Cannot overwrite a value."),
        (b"[a.b]\n[a.b]", ":2:5: this is not TOML: Cannot declare a.b twice."),
        (b'x = "', ":1:6: this is not TOML: Unterminated string."),
        (b"x = " + b"[" * 5000, "is nested too deeply."),
        (b"#" * 1_000_001, "is larger than 1 MB"),
        (b"\n[chat]\n# c\n  modle = 1\n", ":4: unknown key 'modle' in chat; did you mean 'model'?"),
        (b"[[corpora]]\nname='a'\n[[corpora]]\nname = 'b b'", ":4: corpora[1].name must be"),
        (b"[[corpora]]\n[[corpora.grants]]\npaths=['x']\nreaders=['x']", ":4: corpora[0].grants[0].readers[0] must"),
        (b'[chat]\nmodel = """\n[server]\nport = "x"\n"""\nkind = 1', ":6: chat.kind must be"),
        (b"retrieval.top_k = 99", ":1: retrieval.top_k must be"),
    ],
)
def test_a_broken_file_names_file_line_and_key(machine: Machine, tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    message = machine.refused(str(path))
    assert message.startswith(str(path))
    assert said in message


def test_a_bom_tabs_and_windows_lines_are_fine(machine: Machine) -> None:
    machine.config.write_bytes(b"\xef\xbb\xbf[retrieval]\r\n\ttop_k\t=\t3\r\n")
    assert machine.load().settings.retrieval.top_k == 3


def test_an_empty_file_is_the_defaults(machine: Machine) -> None:
    machine.config.write_bytes(b"")
    assert machine.load().settings.retrieval.top_k == 8


def test_what_is_no_file(machine: Machine, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "is a folder" in machine.refused(str(tmp_path))
    assert "is a pipe or a device" in machine.refused(str(pipe))
    assert "is a pipe or a device" in machine.refused("/dev/zero")
    missing = machine.refused(str(tmp_path / "missing.toml"))
    assert "There is no configuration file" in missing
    assert "--config" in missing
    assert "named by RAGPILOT_CONFIG" in machine.refused(RAGPILOT_CONFIG=str(tmp_path / "missing.toml"))
    assert "--config names no file" in machine.refused("")
    assert "cannot be read" in machine.refused("a\0b")


def test_an_unreadable_file(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.config.write_text("")

    def refuse(path: object, flags: int) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)
    assert machine.refused() == f"The configuration file {machine.config} cannot be read: permission denied."


def test_a_working_folder_that_is_none(machine: Machine, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ConfigError, match="is a file, not a folder"):
        machine.load(at=file)
    with pytest.raises(ConfigError, match="There is no folder"):
        machine.load(at=tmp_path / "missing")


def test_a_working_folder_whose_path_is_no_one_line(machine: Machine, tmp_path: Path) -> None:
    folder = tmp_path / "two\nlines"
    folder.mkdir()
    with pytest.raises(ConfigError, match=r'two\\nlines" has a line break or another control character'):
        machine.load(at=folder)


def test_the_nearest_folder_above_that_is_indexed(machine: Machine) -> None:
    inner = machine.work / "a" / "b"
    inner.mkdir(parents=True)
    assert indexed_above(machine.load(at=inner)) is None
    for folder in (machine.work, machine.work / "a"):
        state = machine.load(at=folder).state
        state.mkdir(parents=True)
        assert indexed_above(machine.load(at=inner)) != folder
        (state / "manifest.sqlite3").touch()
        assert indexed_above(machine.load(at=inner)) == folder
    assert indexed_above(machine.load(at=machine.work)) is None


def test_a_folder_above_is_found_by_its_file_too(machine: Machine) -> None:
    inner = machine.work / "a"
    inner.mkdir()
    (machine.work / "config.toml").write_text(FILE + '[[corpora]]\nroots = ["."]\n')
    state = machine.load().state
    state.mkdir(parents=True)
    (state / "manifest.sqlite3").touch()
    assert indexed_above(machine.load(at=inner)) == machine.work


def test_relative_paths_are_the_files(machine: Machine, tmp_path: Path) -> None:
    machine.config.write_text(
        '[store]\npath = "vectors"\n[[corpora]]\nname = "a"\nroots = ["code", "~/lib"]\n[[corpora]]\nname = "b"\n'
    )
    settings = machine.load().settings
    base = machine.config.parent
    assert settings.store.path == str(base / "vectors")
    assert [corpus.roots for corpus in settings.corpora] == [[str(base / "code"), str(tmp_path / "lib")], [str(base)]]


def test_roots_are_compared_after_their_links(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "code" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "code" / "inner")
    machine.config.write_text('[[corpora]]\nname = "a"\nroots = ["../../code", "../../link"]\n')
    message = machine.refused()
    assert "inside another of its roots" in message
    assert str(machine.config) in message


def test_the_state_folder_belongs_to_the_file_that_lists_corpora(machine: Machine, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    machine.config.write_text("[retrieval]\ntop_k = 3\n")
    assert machine.load().state != machine.load(at=other).state
    machine.config.write_text('[[corpora]]\nname = "a"\nroots = ["/x"]\n')
    assert machine.load().state == machine.load(at=other).state
    assert machine.load().state.name.startswith("ragpilot-")


def test_state_folders_are_told_apart_by_path_not_by_name(machine: Machine, tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "same name", tmp_path / "b" / "same name"
    for folder in (one, two):
        folder.mkdir(parents=True)
    names = {machine.load(at=folder).state.name for folder in (one, two)}
    assert len(names) == 2
    assert all(name.startswith("same-name-") for name in names)
    (tmp_path / "link").symlink_to(one)
    assert machine.load(at=tmp_path / "link").state == machine.load(at=one).state
    assert machine.load(at=Path("/")).state.name.startswith("root-")


def test_a_token_that_could_be_guessed_is_refused(machine: Machine) -> None:
    machine.config.write_text(FILE + '[[actors]]\nname = "ann"\ntokens = ["env:ANN"]\n')
    said = machine.refused(ANN="kurz-und-geheim\n")
    assert "The token of the actor 'ann' in ANN has fewer than 16 characters, which is too weak." in said
    assert "geheim" not in said
    assert machine.load(ANN="sixteen-letters!\n").settings.actors[0].tokens == ["env:ANN"]
    assert machine.load().settings.actors[0].tokens == ["env:ANN"]  # unset: this may not be the server's environment
