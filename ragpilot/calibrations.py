"""What `ragpilot calibrate` has fitted, kept beside the state folders: one file for each embedder's identity.

A model scores texts alike wherever it is used, so that every configuration of this user finds what was fitted once.
Another identity (another revision, other prefixes) finds nothing here: its cosines mean something else.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from ragpilot.errors import StateError
from ragpilot.files import private_folder, read_private, write_private
from ragpilot.types import Calibration, EmbedderIdentity, GateCalibration

FOLDER = "calibrations"


def recall(home: Path, identity: EmbedderIdentity) -> Calibration | None:
    """What was fitted for exactly this embedder; None where nothing was, or its file is damaged or not ours alone."""
    try:
        found = _parsed(read_private(_file(home, identity)) or b"")
    except (StateError, ValueError, TypeError, KeyError):
        return None
    return found if found.embedder == identity else None


def keep(home: Path, calibration: Calibration) -> Path:
    """Write down what was fitted; what was fitted for other identities of the same model is removed.

    Raises StateError.
    """
    file = _file(home, calibration.embedder)
    private_folder(file.parent)
    data = {**asdict(calibration), "made_at": calibration.made_at.isoformat()}
    write_private(file, json.dumps(data, indent=1).encode())
    for other in file.parent.glob(f"{_slug(calibration.embedder)}-*.json"):
        if other != file and _name_in(other) == calibration.embedder.name:
            other.unlink(missing_ok=True)
    return file


def _file(home: Path, identity: EmbedderIdentity) -> Path:
    digest = hashlib.sha256(json.dumps(asdict(identity), sort_keys=True).encode()).hexdigest()
    return home / FOLDER / f"{_slug(identity)}-{digest[:16]}.json"


def _slug(identity: EmbedderIdentity) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", identity.name).strip(".-")[:40] or "embedder"


def _parsed(content: bytes) -> Calibration:
    data: dict[str, Any] = json.loads(content)
    return Calibration(
        embedder=EmbedderIdentity(**data["embedder"]),
        floor=float(data["floor"]),
        gate=GateCalibration(**data["gate"]),
        made_at=datetime.fromisoformat(data["made_at"]),
        background_refused=float(data["background_refused"]),
        answerable_refused=float(data["answerable_refused"]),
    )


def _name_in(file: Path) -> str | None:
    try:
        return _parsed(read_private(file) or b"").embedder.name
    except (StateError, ValueError, TypeError, KeyError):
        return None
