"""A config.toml that came with a repository reaches no key, host or folder outside, until it is trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragpilot.errors import ConfigError, UntrustedConfigError
from ragpilot.settings_loader import passed_over, trust_folder
from tests.machine import FILE, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def write(machine: Machine, text: str) -> Path:
    path = machine.work / "config.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[chat]\nurl = 'http://evil'\n",
        b"this is not TOML [[[",
        b"\xff\xfe",
        b'schema = "ragpilot/2"\nnew = 1\n',
        b'schema = "other"\n[chat]\nurl = 1\n',
        b'[tool]\nschema = "ragpilot/1"\n',
        b'text = """\nschema = "ragpilot/1"\n"""\n',
    ],
)
def test_anybody_elses_file_is_passed_over(machine: Machine, content: bytes) -> None:
    (machine.work / "config.toml").write_bytes(content)
    environment = machine.load()
    assert environment.settings.chat.url is None
    assert environment.files == []
    path = machine.work / "config.toml"
    assert passed_over(machine.work) == f'{path} is not read: it does not say schema = "ragpilot/1".'


def test_only_what_is_there_and_not_read_is_passed_over(machine: Machine) -> None:
    assert passed_over(machine.work) is None
    write(machine, FILE)
    assert passed_over(machine.work) is None


def test_a_folder_or_link_to_nowhere_of_that_name_is_passed_over(machine: Machine) -> None:
    (machine.work / "config.toml").mkdir()
    assert machine.load().files == []
    (machine.work / "config.toml").rmdir()
    (machine.work / "config.toml").symlink_to(machine.work / "nowhere")
    assert machine.load().files == []


def test_a_broken_one_of_ours_is_told(machine: Machine) -> None:
    path = write(machine, FILE + "[retrieval]\ntop_k = \n")
    assert machine.refused().startswith(f"{path}:3:9: this is not TOML")
    write(machine, FILE + "[retrieval]\ntopk = 1\n")
    assert "did you mean 'top_k'?" in machine.refused()


def test_its_free_sections_lie_over_the_users(machine: Machine) -> None:
    machine.config.write_text('[retrieval]\ntop_k = 12\nmin_score = 0.4\n[chat]\nkind = "extractive"\n')
    path = write(machine, FILE + "[retrieval]\ntop_k = 5\n[prompt]\ncontext_budget = 1000\n")
    environment = machine.load()
    settings = environment.settings
    assert (settings.retrieval.top_k, settings.retrieval.min_score, settings.prompt.context_budget) == (5, 0.4, 1000)
    assert settings.chat.kind == "extractive"
    assert environment.origins["retrieval.top_k"] == f"{path}:3"
    assert environment.files == [str(machine.config), str(path)]
    assert machine.load(RAGPILOT_RETRIEVAL__TOP_K="6").settings.retrieval.top_k == 6


def test_defaults_written_out_are_no_wish_and_do_not_undo_the_users_services(machine: Machine) -> None:
    machine.config.write_text('[chat]\nkind = "extractive"\n')
    own = Path(__file__).parents[2] / "config.toml"
    write(machine, own.read_text(encoding="utf-8"))
    environment = machine.load()
    assert environment.settings.chat.kind == "extractive"
    assert environment.settings.corpora[0].roots == [str(machine.work)]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[chat]\nkind = "openai"\nurl = "http://evil:1"\n', ["chat.kind at line 3", "chat.url at line 4"]),
        ('[chat]\napi_key_env = "AWS_SECRET"\n', ["chat.api_key_env at line 3"]),
        ('[embedder]\nkind = "openai"\n', ["embedder.kind"]),
        ('[store]\npath = "x"\n', ["store.path"]),
        ("[server]\nport = 5201\n", ["server.port"]),
        ('[server]\nallowed_hosts = ["evil"]\n', ["server.allowed_hosts"]),
        ("[ingest]\nmax_file_bytes = 2048\n", ["ingest.max_file_bytes"]),
        ('[local]\nprincipals = ["team:core"]\n', ["local.principals"]),
        ('[[actors]]\nname = "a"\ntokens = ["env:X"]\n', ["actors at line 2"]),
        ('[[sources]]\nname = "a"\nmodule = "os"\n', ["sources at line 2"]),
        ('[[corpora]]\nname = "a"\nroots = ["/etc"]\n', ["corpora[0].roots[0] (an absolute path)"]),
        ('[[corpora]]\nname = "a"\nroots = ["../.."]\n', ["corpora[0].roots[0] (a path with '..')"]),
        ('[[corpora]]\nname = "a"\nroots = ["sub/../../x"]\n', ["(a path with '..')"]),
        ('[[corpora]]\nname = "a"\nroots = [".", "out"]\n', ["corpora[0].roots[1] (a link that leaves the folder)"]),
        ('[[corpora]]\nname = "a"\nroots = ["out/deeper"]\n', ["(a link that leaves the folder)"]),
        (
            '[[corpora]]\nname = "a"\n[[corpora]]\nname = "b"\nroots = ["/"]\n',
            ["corpora[1].roots[0] (an absolute path)"],
        ),
    ],
)
def test_anything_else_is_refused_by_name(machine: Machine, tmp_path: Path, text: str, named: list[str]) -> None:
    (tmp_path / "outside").mkdir()
    (machine.work / "out").symlink_to(tmp_path / "outside")
    write(machine, FILE + text)
    with pytest.raises(UntrustedConfigError) as caught:
        machine.load()
    assert all(name in caught.value.message for name in named)
    assert "`ragpilot trust`" in caught.value.hint
    assert not machine.home.exists()


def test_corpora_inside_the_folder_are_free(machine: Machine) -> None:
    (machine.work / "src").mkdir()
    (machine.work / "link").symlink_to("src")
    machine.config.write_text('[[corpora]]\nname = "mine"\nroots = ["/x"]\n')
    users = machine.load().state
    write(machine, FILE + '[[corpora]]\nname = "code"\nroots = ["link"]\n[[corpora]]\nname = "all"\n')
    environment = machine.load()
    assert [(corpus.name, corpus.roots) for corpus in environment.settings.corpora] == [
        ("code", [str(machine.work / "src")]),
        ("all", [str(machine.work)]),
    ]
    assert environment.state != users
    assert environment.state.name.startswith("work-")


def test_nothing_in_it_is_expanded(machine: Machine) -> None:
    write(machine, FILE + '[[corpora]]\nname = "a"\nroots = ["~", "$HOME", "${HOME}/x", "~root"]\n')
    roots = machine.load().settings.corpora[0].roots
    assert roots == [str(machine.work / name) for name in ("~", "$HOME", "${HOME}/x", "~root")]


def test_trust_lasts_until_a_byte_changes(machine: Machine) -> None:
    text = FILE + '[chat]\nkind = "extractive"\n[retrieval]\ntop_k = 4\n'
    path = write(machine, text)
    found = trust_folder(directory=machine.work, environ=machine.environ)
    assert [str(wish) for wish in found.wishes] == ["chat.kind"]
    settings = machine.load().settings
    assert (settings.chat.kind, settings.retrieval.top_k) == ("extractive", 4)

    write(machine, text + " ")
    with pytest.raises(UntrustedConfigError):
        machine.load()
    write(machine, text)
    assert machine.load().settings.chat.kind == "extractive"

    elsewhere = machine.work.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "config.toml").write_bytes(path.read_bytes())
    with pytest.raises(UntrustedConfigError):
        machine.load(at=elsewhere)


def test_trusted_all_of_it_counts_outside_roots_too(machine: Machine) -> None:
    machine.config.write_text('[chat]\nkind = "extractive"\n')
    write(machine, FILE + '[chat]\nkind = "auto"\n[[corpora]]\nname = "a"\nroots = ["/srv/code"]\n')
    trust_folder(directory=machine.work, environ=machine.environ)
    settings = machine.load().settings
    assert settings.chat.kind == "auto"
    assert settings.corpora[0].roots == ["/srv/code"]


def test_the_record_is_private_and_keeps_what_was_trusted_before(machine: Machine) -> None:
    other = machine.work.parent / "other"
    other.mkdir()
    for folder in (machine.work, other):
        (folder / "config.toml").write_text(FILE + "[server]\nport = 1\n")
        trust_folder(directory=folder, environ=machine.environ)
    record = machine.home / "trusted.json"
    assert record.stat().st_mode & 0o777 == 0o600
    assert machine.home.stat().st_mode & 0o777 == 0o700
    assert set(json.loads(record.read_bytes())) == {str(machine.work / "config.toml"), str(other / "config.toml")}
    assert [entry.name for entry in machine.home.iterdir()] == ["trusted.json"]
    assert machine.load().settings.server.port == 1


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", b'{"x": 1}', b"\xff"])
def test_a_damaged_record_trusts_nothing(machine: Machine, damage: bytes) -> None:
    write(machine, FILE + "[server]\nport = 1\n")
    trust_folder(directory=machine.work, environ=machine.environ)
    (machine.home / "trusted.json").write_bytes(damage)
    with pytest.raises(UntrustedConfigError):
        machine.load()


def test_a_record_that_others_can_write_trusts_nothing(machine: Machine) -> None:
    write(machine, FILE + "[server]\nport = 1\n")
    trust_folder(directory=machine.work, environ=machine.environ)
    (machine.home / "trusted.json").chmod(0o666)
    with pytest.raises(UntrustedConfigError):
        machine.load()


def test_nothing_to_trust(machine: Machine) -> None:
    with pytest.raises(ConfigError, match=r"There is no config.toml of RagPilot in"):
        trust_folder(directory=machine.work, environ=machine.environ)
    write(machine, FILE + "[chat]\nx = 1\n")
    with pytest.raises(ConfigError, match="unknown key 'x'"):
        trust_folder(directory=machine.work, environ=machine.environ)
    assert not machine.home.exists()


def test_a_file_named_by_hand_is_the_users_own(machine: Machine) -> None:
    path = write(machine, FILE + "[server]\nport = 5201\n")
    assert machine.load(str(path)).settings.server.port == 5201
    assert machine.load(RAGPILOT_CONFIG=str(path)).settings.server.port == 5201


def test_with_config_the_folders_file_is_not_read(machine: Machine, tmp_path: Path) -> None:
    write(machine, FILE + "[server]\nport = 5201\n")
    named = tmp_path / "named.toml"
    named.write_text("[retrieval]\ntop_k = 3\n")
    assert machine.load(str(named)).settings.server.port == 5200
    with pytest.raises(UntrustedConfigError):
        machine.load(RAGPILOT_CONFIG=str(named))
