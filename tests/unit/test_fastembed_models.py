from __future__ import annotations

import shutil
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest

from ragpilot.adapters.fastembed_models import FastembedEmbedder
from ragpilot.adapters.minilm_model import MiniLmFiles
from ragpilot.errors import EmbedderUnavailableError

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(60)]

MODEL = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's folder as its page offers it."""
    files, target = MiniLmFiles(), tmp_path_factory.mktemp("model")
    (target / "model.onnx").symlink_to(files.weights)
    for file in files.tokenizer.glob("*.json"):
        shutil.copy(file, target)
    return target


def damage(folder: Path, target: Path) -> None:
    """A copy whose weights end early."""
    for file in folder.glob("*.json"):
        shutil.copy(file, target)
    (target / "model.onnx").write_bytes((folder / "model.onnx").read_bytes()[:1024])


async def test_a_model_by_name_embeds_from_its_folder(folder: Path) -> None:
    async with aclosing(FastembedEmbedder(MODEL, folder=folder)) as embedder:
        with pytest.raises(EmbedderUnavailableError, match="not loaded yet"):
            _ = embedder.identity
        question = await embedder.embed_question("where is the token budget enforced")
        near, far, _ = await embedder.embed_documents(["the token budget is enforced here", "apple pie", "[MASK] \0"])
        assert np.dot(question, near) > np.dot(question, far) + 0.2
        assert (embedder.identity.name, embedder.identity.dimensions) == (MODEL, 384)
        assert embedder.identity.truncation == 256
        assert len(embedder.identity.revision) == 16
        assert embedder.counter.count("some words") == 2
        assert (await embedder.check()).ok


async def test_unknown_names_missing_and_damaged_files_are_said(folder: Path, tmp_path: Path) -> None:
    async with aclosing(FastembedEmbedder("BAAI/no-such-model", folder=folder)) as embedder:
        with pytest.raises(EmbedderUnavailableError, match="does not know the model BAAI/no-such-model"):
            await embedder.prepare()
    async with aclosing(FastembedEmbedder(MODEL, folder=tmp_path)) as embedder:
        with pytest.raises(EmbedderUnavailableError, match=r"lacks the file model\.onnx"):
            await embedder.prepare()
    damage(folder, tmp_path)
    async with aclosing(FastembedEmbedder(MODEL, folder=tmp_path)) as embedder:
        health = await embedder.check()
    assert not health.ok
    assert f"cannot be loaded from {tmp_path}" in health.detail


async def test_nothing_is_downloaded_unless_allowed(tmp_path: Path) -> None:
    async with aclosing(FastembedEmbedder(MODEL, cache=tmp_path)) as embedder:
        with pytest.raises(EmbedderUnavailableError, match=f"cannot be loaded from {tmp_path}"):
            await embedder.prepare()
