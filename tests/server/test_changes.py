"""Actors and grants that change under a running server."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragpilot import access_config
from ragpilot.access_config import AccessConfiguration
from ragpilot.actors import token_hash
from ragpilot.config import Environment
from ragpilot.settings_loader import load, trust_folder
from ragpilot.types import Actor
from server.app import Server, create_app
from tests.server.support import LOCAL_TOKEN, ScriptedIngestion, Stand, bearer, until

ANN = f'[[actors]]\nname = "ann"\nprincipals = ["team:core"]\ntokens = ["{token_hash("anns")}"]\n'
BOB = f'[[actors]]\nname = "bob"\nprincipals = ["team:core"]\ntokens = ["{token_hash("bobs")}"]\n'
GRANT = '[[corpora.grants]]\npaths = ["hr/**"]\nreaders = ["team:hr"]\n'


class Granting(ScriptedIngestion):
    """Notes by which grants it was told to go."""

    def __init__(self) -> None:
        super().__init__()
        self.by: list[list[str]] = []
        self.held = asyncio.Event()
        self.held.set()

    async def apply_grants(self, actor: Actor, corpus: Any) -> int:
        await self.held.wait()
        self.by.append([*corpus.readers, *(glob for grant in corpus.grants for glob in grant.paths)])
        return 1


class Place:
    """A configuration file, and an application that goes by it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        self.file = folder / "ragpilot.toml"
        self.environ = {"HOME": str(folder), "RAGPILOT_HOME": str(folder / "home"), "RAGPILOT_CONFIG": str(self.file)}
        self.loads = 0
        monkeypatch.setattr(access_config, "load", self._load)
        self.ingestion = Granting()

    def _load(self, **given: Any) -> Environment:
        self.loads += 1
        return load(**given)

    def configure(self, *actors: str, grants: str = "", name: str = "shop") -> None:
        root = self.folder.as_posix()
        self.file.write_text(f'[[corpora]]\nname = "{name}"\nroots = ["{root}"]\n{grants}{"".join(actors)}')

    def app(self, environment: Environment | None = None) -> Server:
        environment = environment or load(config=None, directory=self.folder, environ=self.environ)
        stand = Stand(settings=environment.settings, ingestion=self.ingestion)
        token = None if environment.settings.actors else LOCAL_TOKEN
        configuration = AccessConfiguration(environment, self.environ)
        return create_app(stand, local_token=token, configuration=configuration)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path, monkeypatch)
    made.configure(ANN)
    return made


async def status(app: Server, token: str | None, path: str = "/corpora") -> int:
    response = await app.test_client().get(path, headers={} if token is None else bearer(token))
    await response.get_data()
    return response.status_code


@pytest.mark.asyncio
async def test_a_file_that_has_not_changed_is_not_read_again(place: Place) -> None:
    app = place.app()
    assert [await status(app, "anns") for _ in range(5)] == [200] * 5
    assert place.loads == 0


@pytest.mark.asyncio
async def test_actors_come_and_go_with_the_next_request(place: Place) -> None:
    app = place.app()
    assert [await status(app, token) for token in ("anns", "bobs", None)] == [200, 401, 401]
    place.configure(ANN, BOB)
    assert [await status(app, token) for token in ("bobs", "anns", None)] == [200, 200, 401]
    place.configure(BOB)
    assert [await status(app, token) for token in ("anns", "bobs")] == [401, 200]
    assert place.loads == 2


@pytest.mark.asyncio
async def test_of_many_requests_at_once_one_reads_and_none_is_served_by_what_was(place: Place) -> None:
    app = place.app()
    assert await status(app, "anns") == 200
    place.configure(BOB, grants=GRANT)
    place.ingestion.held.clear()
    asked = [asyncio.create_task(status(app, token)) for token in ("anns", "bobs") * 10]
    async with asyncio.timeout(10):
        await until(lambda: app.context.runs.busy)
        assert not [task for task in asked if task.done()]
        assert await status(app, None, "/health") == 200
        place.ingestion.held.set()
        assert [await task for task in asked] == [401, 200] * 10
    assert place.loads == 1
    assert place.ingestion.by == [["team:everyone"], ["team:everyone", "hr/**"]]


@pytest.mark.asyncio
async def test_changed_grants_are_applied_and_known_of(place: Place) -> None:
    app = place.app()
    assert await status(app, "anns") == 200
    place.configure(ANN, grants=GRANT)
    assert await status(app, "anns") == 200
    place.configure(ANN, grants=GRANT)
    assert await status(app, "anns") == 200
    place.configure(ANN)
    assert await status(app, "anns") == 200
    # What is as it was is not applied once more.
    assert place.ingestion.by == [["team:everyone"], ["team:everyone", "hr/**"], ["team:everyone"]]
    place.configure(ANN, grants='readers = ["team:core"]\n')
    response = await app.test_client().get("/corpora", headers=bearer("anns"))
    assert [item["name"] for item in json.loads(await response.get_data())["corpora"]] == ["shop"]
    place.configure(ANN, grants='readers = ["team:others"]\n')
    response = await app.test_client().get("/corpora", headers=bearer("anns"))
    assert json.loads(await response.get_data()) == {"corpora": []}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "wrong", ["[[actors]]\nname = 1\n", "[[acters]]\n", "[[actors", "\xff", '[server]\nhost = "::"\n']
)
async def test_a_file_that_is_wrong_changes_nothing_until_it_is_right(
    place: Place, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    app = place.app()
    place.file.write_bytes(wrong.encode("latin-1"))
    assert [await status(app, token) for token in ("anns", None, "anns")] == [200, 401, 200]
    assert caplog.text.count("is not taken, actors and grants stay as they were") == 1
    assert place.loads == 1
    place.configure(BOB)
    assert [await status(app, token) for token in ("anns", "bobs")] == [401, 200]


@pytest.mark.asyncio
async def test_a_defect_in_reading_changes_nothing(
    place: Place, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "secret words"

    def broken(**_: Any) -> Environment:
        raise ZeroDivisionError(words)

    app = place.app()
    monkeypatch.setattr(access_config, "load", broken)
    place.configure(BOB)
    assert [await status(app, token) for token in ("anns", "bobs")] == [200, 401]
    assert "unexpected ZeroDivisionError" in caplog.text
    assert "secret words" not in caplog.text


@pytest.mark.asyncio
async def test_without_actors_any_more_nobody_gets_in_until_there_are_some(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    app = place.app()
    gone: tuple[Callable[[], object], ...] = (place.configure, place.file.unlink)
    for remove in gone:
        remove()
        assert [await status(app, token) for token in ("anns", None, LOCAL_TOKEN)] == [401] * 3
        assert await status(app, None, "/health") == 200
    assert "nobody gets in until the server is started anew" in caplog.text
    place.configure(BOB)
    assert [await status(app, token) for token in ("bobs", None)] == [200, 401]


@pytest.mark.asyncio
async def test_the_first_actor_ends_anonymous_access(place: Place) -> None:
    place.configure()
    app = place.app()
    assert [await status(app, token) for token in (None, LOCAL_TOKEN)] == [200, 200]
    place.configure(ANN)
    assert [await status(app, token) for token in (None, LOCAL_TOKEN, "anns")] == [401, 401, 200]


@pytest.mark.asyncio
async def test_a_folders_file_counts_once_it_is_trusted(place: Place) -> None:
    del place.environ["RAGPILOT_CONFIG"]
    own = place.folder / "config.toml"
    own.write_text(f'schema = "ragpilot/1"\n{ANN}')
    trust_folder(directory=place.folder, environ=place.environ)
    app = place.app()
    assert await status(app, "anns") == 200
    own.write_text(f'schema = "ragpilot/1"\n{BOB}')
    assert [await status(app, token) for token in ("anns", "bobs")] == [200, 401]
    trust_folder(directory=place.folder, environ=place.environ)
    assert [await status(app, token) for token in ("anns", "bobs")] == [401, 200]


@pytest.mark.asyncio
async def test_corpora_are_those_of_the_start(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    app = place.app()
    assert await status(app, "anns") == 200
    place.configure(BOB, grants=GRANT, name="other")
    response = await app.test_client().get("/corpora", headers=bearer("bobs"))
    assert [item["name"] for item in json.loads(await response.get_data())["corpora"]] == []
    assert place.ingestion.by == [["team:everyone"]]
    with caplog.at_level(logging.INFO):
        assert [corpus.grants for corpus in app.context.services.settings.corpora] == [[]]


@pytest.mark.asyncio
async def test_another_configurations_grants_are_not_ours(place: Place) -> None:
    environment = load(config=None, directory=place.folder, environ=place.environ)
    app = place.app(environment.model_copy(update={"state": place.folder.parent / "elsewhere"}))
    assert await status(app, "anns") == 200
    place.configure(BOB, grants=GRANT)
    assert [await status(app, token) for token in ("anns", "bobs")] == [401, 200]
    assert place.ingestion.by == [["team:everyone"]]


@pytest.mark.asyncio
async def test_a_file_is_read_once_it_rests(place: Place) -> None:
    app = place.app()
    assert await status(app, "anns") == 200
    place.configure(grants=GRANT)
    asked = asyncio.create_task(status(app, "bobs"))
    for count in range(5):
        await asyncio.sleep(0.02)
        place.file.write_text(place.file.read_text() + f"# still at it: {count}\n")
    place.configure(BOB, grants=GRANT)
    async with asyncio.timeout(10):
        assert await asked == 200
    assert place.loads == 1


def test_looking_costs_next_to_nothing(place: Place) -> None:
    configuration = AccessConfiguration(load(config=None, directory=place.folder, environ=place.environ), place.environ)
    assert set(configuration.states()) == {
        str(place.file),
        str(place.folder / "config.toml"),
        str(Path(place.environ["RAGPILOT_HOME"]) / "trusted.json"),
    }
    assert not configuration.changed()
    assert not AccessConfiguration(
        Environment(settings=place.app().context.services.settings, state=place.folder), {}
    ).changed()
