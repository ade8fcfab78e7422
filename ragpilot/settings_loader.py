"""Finds, checks and layers configuration (DESIGN section 8). Reads files; takes everything else by argument.

The layers, each over the one before: defaults; the user's own file (``--config``, else ``RAGPILOT_CONFIG``, else
the user's configuration folder); the ``config.toml`` of the working folder, as far as ``trust`` lets it;
``RAGPILOT_<SECTION>__<KEY>``. Who names a file with ``--config`` wants that file: the working folder's is not read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import platformdirs
from pydantic import ValidationError

from ragpilot import trust
from ragpilot.actors import weak_variables
from ragpilot.adhoc import remembered
from ragpilot.config import KINDS_OF_A_FILE, SCHEMA, Environment, Settings, contradictions
from ragpilot.config_file import ConfigFile, KeyPath, parse, read, read_bytes
from ragpilot.config_variables import read_variables
from ragpilot.config_words import dotted, problems
from ragpilot.errors import ConfigError
from ragpilot.files import file_state

FILE_NAME = "config.toml"
MANIFEST = "manifest.sqlite3"
"""What a state folder holds once something was indexed."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What one file or the variables set: nested as in a file, paths absolute, and where each key was set."""

    data: dict[str, Any]
    origins: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """The RagPilot configuration of a working folder. ``wishes``: what it sets that only a trusted file may."""

    file: ConfigFile
    settings: Settings
    wishes: list[trust.Wish]


def load(*, config: str | None, directory: Path | None, environ: Mapping[str, str]) -> Environment:
    """The settings in force for ``directory`` (None: the current folder), and where state lies.

    Args:
        config: The file that ``--config`` names; relative to the current folder.
        directory: The working folder.
        environ: The environment variables; no others are looked at.

    Raises:
        ConfigError: For anything that is wrong, in words that name file, line, key and the nearest right one.
        UntrustedConfigError: The working folder's file sets what only a trusted one may.
    """
    folder = _working_folder(directory)
    home = state_home(environ)
    looked_at = _states(config, folder, home, environ)
    files: list[str] = []
    layers: list[Layer] = []
    corpora_file: Path | None = None

    own = _own_file(config, environ)
    if own is not None:
        layers.append(_layer(own, _check(own), own.path.parent, home_folder=environ.get("HOME")))
        corpora_file = own.path if "corpora" in own.data else None
        files.append(str(own.path))
    found = find(folder) if config is None else None
    if found is not None and (own is None or not _same(found.file.path, own.path)):
        trusted = trust.is_trusted(home, found.file)
        if found.wishes and not trusted:
            raise trust.refuse(found.file, found.wishes)
        layers.append(_folder_layer(found, trusted=trusted))
        corpora_file = found.file.path if "corpora" in found.file.data else corpora_file
        files.append(str(found.file.path))
    variables = read_variables(environ)
    layers.append(Layer(_absolute(variables.data, folder), variables.origins))

    merged = _merge([layer.data for layer in layers])
    state = state_folder(home, "file", corpora_file) if corpora_file else state_folder(home, "folder", folder)
    if "corpora" not in merged:
        made = remembered(state)
        merged["corpora"] = [{"name": made.name if made else "default", "roots": [str(folder)]}]
    settings = Settings.model_validate(merged)
    origins = {key: place for layer in layers for key, place in layer.origins.items()}
    if wrong := contradictions(settings):
        raise ConfigError("\n".join(f"{origins.get(key, 'Defaults')}: {text}" for key, text in wrong))
    if weak := weak_variables(settings, environ):
        raise ConfigError("\n".join(weak), hint="`ragpilot actor add` and `actor token` make strong ones.")
    return Environment(
        settings=settings,
        state=state,
        home=home,
        directory=folder,
        config=None if config is None or own is None else str(own.path),
        origins=origins,
        files=files,
        looked_at=looked_at,
        notes=variables.notes,
    )


def _states(config: str | None, folder: Path, home: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Every file that ``load`` looks at, and its state now."""
    places = [folder / FILE_NAME, home / trust.RECORDS]
    with contextlib.suppress(ConfigError):  # raised where it matters
        places.insert(0, own_file(config=config, environ=environ))
    return {str(place): file_state(place) for place in places}


def own_file(*, config: str | None, environ: Mapping[str, str]) -> Path:
    """Where the user's own configuration is, or would be. Raises ConfigError where this user has no home folder."""
    named = config if config is not None else environ.get("RAGPILOT_CONFIG")
    return Path(named).absolute() if named else _platform_folder("config", environ) / FILE_NAME


def find(folder: Path) -> Found | None:
    """The ``config.toml`` of a working folder if it is RagPilot's; anybody else's is passed over in silence.

    Raises ConfigError for one that says it is RagPilot's and is wrong.
    """
    path = folder / FILE_NAME
    try:
        content = read_bytes(path)
    except ConfigError:
        return None
    ours = re.search(rb"""(?m)^(?:\xef\xbb\xbf)?[ \t]*["']?schema["']?[ \t]*=[ \t]*["']ragpilot/1["']""", content)
    if ours is None:
        return None
    file = parse(path, content)
    if file.data.get("schema") != SCHEMA:
        return None
    settings = _check(file)
    return Found(file, settings, trust.wishes(file, settings))


def passed_over(folder: Path) -> str | None:
    """Why the ``config.toml`` of a working folder is not read, in words; None where there is none, or it is read."""
    path = folder / FILE_NAME
    if not path.is_file() or find(folder) is not None:
        return None
    return f'{path} is not read: it does not say schema = "{SCHEMA}".'


def indexed_above(environment: Environment) -> Path | None:
    """The nearest folder above the working folder that something was indexed for, by itself or by its file."""
    home = environment.state.parent
    for folder in environment.directory.parents:
        states = state_folder(home, "folder", folder), state_folder(home, "file", folder / FILE_NAME)
        if any((state / MANIFEST).exists() for state in states):
            return folder
    return None


def trust_folder(*, directory: Path | None, environ: Mapping[str, str]) -> Found:
    """Trust the ``config.toml`` of the working folder as it is now. Raises ConfigError where there is none."""
    folder = _working_folder(directory)
    found = find(folder)
    if found is None:
        raise ConfigError(
            f"There is no {FILE_NAME} of RagPilot in {folder}.", hint=f'It would say schema = "{SCHEMA}".'
        )
    trust.record(state_home(environ), found.file)
    return found


def state_home(environ: Mapping[str, str]) -> Path:
    """The folder that holds the state folders of all configurations: RAGPILOT_HOME, or the platform's user data."""
    if home := environ.get("RAGPILOT_HOME"):
        return Path(home).absolute()
    return _platform_folder("data", environ)


def state_folder(home: Path, kind: Literal["file", "folder"], path: Path) -> Path:
    """The state folder of a configuration file or a working folder: a readable name and a short hash."""
    resolved = os.path.realpath(path)
    readable = Path(resolved).parent.name if kind == "file" else Path(resolved).name
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", readable).strip(".-")[:40] or "root"
    digest = hashlib.sha256(f"{kind}\0{resolved}".encode(errors="surrogateescape")).hexdigest()
    return home / f"{name}-{digest[:10]}"


def _working_folder(directory: Path | None) -> Path:
    try:
        folder = Path(os.path.realpath(Path.cwd() if directory is None else directory))
    except (OSError, ValueError):
        raise ConfigError("The current folder is gone, or its name cannot be read.") from None
    if not folder.exists():
        raise ConfigError(f"There is no folder {folder}.")
    if not folder.is_dir():
        raise ConfigError(f"{folder} is a file, not a folder.")
    if re.search(r"[\x00-\x1f]", str(folder)):
        raise ConfigError(
            f"The folder {json.dumps(str(folder))} has a line break or another control character in its path.",
            hint="Sources are cited by path, in one line: rename the folder.",
        )
    return folder


def _own_file(config: str | None, environ: Mapping[str, str]) -> ConfigFile | None:
    """The user's own file; None where none is named and the configuration folder has none."""
    if config is not None:
        return _named(config, "--config")
    if variable := environ.get("RAGPILOT_CONFIG"):
        return _named(variable, "RAGPILOT_CONFIG")
    path = _platform_folder("config", environ) / FILE_NAME
    try:
        exists = path.exists()
    except OSError:
        exists = False
    return read(path) if exists else None


def _named(name: str, by: str) -> ConfigFile:
    if not name.strip():
        raise ConfigError(f"{by} names no file.")
    path = Path(name).absolute()
    try:
        content = read_bytes(path)
    except ConfigError as error:
        raise ConfigError(error.message, hint=f"It was named by {by}.") from None
    return parse(path, content)


def _platform_folder(kind: Literal["config", "data"], environ: Mapping[str, str]) -> Path:
    """Where this user's configuration or data lies, judged by ``environ`` rather than the process's own variables."""
    if (base := environ.get(f"XDG_{kind.upper()}_HOME")) and Path(base).is_absolute():
        return Path(base) / "ragpilot"
    if (home := environ.get("HOME")) and sys.platform not in {"darwin", "win32"}:
        return Path(home, ".config" if kind == "config" else ".local/share", "ragpilot").absolute()
    try:
        if kind == "config":
            return platformdirs.user_config_path("ragpilot", appauthor=False)
        return platformdirs.user_data_path("ragpilot", appauthor=False)
    except (RuntimeError, KeyError):
        raise ConfigError(
            "This user has no home folder.", hint="Name a folder for state in RAGPILOT_HOME and set XDG_CONFIG_HOME."
        ) from None


def _check(file: ConfigFile) -> Settings:
    """The file's own settings. Raises ConfigError that names every wrong key and its line."""
    try:
        return Settings.model_validate(file.data)
    except ValidationError as error:
        found = sorted(problems(error, file.data), key=lambda problem: file.line(problem.key) or 0)
    raise ConfigError("\n".join(f"{file.place(problem.key)}: {problem.text}" for problem in found))


def _layer(file: ConfigFile, settings: Settings, base: Path, *, home_folder: str | None) -> Layer:
    """All that a file of the user's own sets; ``~`` in its paths is the user's home."""
    data = _absolute(_completed(file.data, settings), base, home_folder)
    return Layer(data, {dotted(key): file.place(key) for key in _leaves(file.data)})


def _folder_layer(found: Found, *, trusted: bool) -> Layer:
    """What the working folder's file may set. Its paths are taken as they stand: nothing in them is expanded."""
    free = {name for name in found.file.data if trusted or name in trust.FREE_SECTIONS or name == "corpora"}
    data = {name: value for name, value in found.file.data.items() if name in free}
    data = _absolute(_completed(data, found.settings), found.file.path.parent)
    return Layer(data, {dotted(key): found.file.place(key) for key in _leaves(found.file.data) if key[0] in free})


def _completed(data: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """``data`` with the roots of every corpus written out, so that they can be made absolute."""
    if "corpora" not in data:
        return data
    tables = zip(data["corpora"], settings.corpora, strict=True)
    return {**data, "corpora": [{**table, "roots": list(corpus.roots)} for table, corpus in tables]}


def _absolute(data: dict[str, Any], base: Path, home_folder: str | None = None) -> dict[str, Any]:
    def absolute(path: str) -> str:
        if home_folder and (path == "~" or path.startswith("~/")):
            path = home_folder + path[1:]
        return os.path.realpath(base / path)

    result = dict(data)
    if "corpora" in data:
        result["corpora"] = [
            {**table, "roots": [absolute(root) for root in table["roots"]]} for table in data["corpora"]
        ]
    for name in ("store", "embedder"):
        if (table := data.get(name)) and table.get("path") is not None:
            result[name] = {**table, "path": absolute(table["path"])}
    if (chat := data.get("chat")) and chat.get("kind") in KINDS_OF_A_FILE and chat.get("model"):
        result["chat"] = {**chat, "model": absolute(chat["model"])}
    return result


def _merge(layers: list[dict[str, Any]]) -> dict[str, Any]:
    """Tables are merged key by key; lists, corpora and actors among them, are replaced whole."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            both = isinstance(value, dict) and isinstance(merged.get(name), dict)
            merged[name] = {**merged[name], **value} if both else value
    return merged


def _leaves(data: Mapping[str, Any]) -> list[KeyPath]:
    """The keys that a file sets: one level of tables; a list counts as one value."""
    return [
        (name, key) if key else (name,)
        for name, value in data.items()
        for key in (value if isinstance(value, dict) and value else ("",))
    ]


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
