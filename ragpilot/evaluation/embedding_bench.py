"""How well an embedder tells related texts from unrelated ones, and how fast: figures to compare embedders by.

The data set is groups of short texts about one thing each. Every text is asked as a question for the others, which
stand as documents, as in the product.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from ragpilot.errors import InvalidRequestError
from ragpilot.ports import Embedder

MAX_TEXTS = 5_000
MAX_BYTES = 20_000_000
_HINT = 'Give JSON Lines: {"group": "…", "text": "…"}, at least two groups, at least two texts in each.'

_Matrix = NDArray[np.float32]
_Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Text:
    """One text of the data set, and the group that it belongs to."""

    group: str
    text: str


@dataclass(frozen=True, slots=True)
class Figures:
    """What an embedder reached. Shares and similarities are 0 to 1 (cosines may fall below)."""

    name: str
    dimensions: int
    texts: int
    groups: int
    within: float
    """Mean cosine of two texts of one group."""
    between: float
    """Mean cosine of two texts of different groups."""
    separation: float
    """``within - between``."""
    auroc: float
    """The chance that a related pair is nearer than an unrelated one."""
    top_1: float
    """Share of texts whose nearest other text is of their group."""
    top_3: float
    """Share of texts that have one of their group among the three nearest."""
    milliseconds_per_text: float
    milliseconds_per_question: float


def load_texts(file: Path | None = None) -> list[Text]:
    """The data set of ``file``; None: the one that comes with RagPilot, about software.

    Raises InvalidRequestError that names file and line.
    """
    name = str(file) if file else "the data set"
    texts: list[Text] = []
    places: dict[str, int] = {}
    # Not splitlines(): a JSON text may hold other ends of lines than the one between rows.
    for number, line in enumerate(_content(file, name).split("\n"), start=1):
        if not line.strip():
            continue
        text = _text(line, f"{name}, line {number}")
        first = places.setdefault(text.text, number)
        if first != number:
            raise InvalidRequestError(f"{name}, line {number}: the text of line {first} again.", hint=_HINT)
        texts.append(text)
    sizes = Counter(text.group for text in texts)
    if len(sizes) < 2:
        found = f"{len(texts):,} texts in one group" if texts else "no texts"
        raise InvalidRequestError(f"{name} holds too little to compare: {found}.", hint=_HINT)
    alone = next((group for group, size in sizes.items() if size < 2), None)
    if alone is not None:
        raise InvalidRequestError(f"{name} holds too little to compare: one text in group {alone!r}.", hint=_HINT)
    if len(texts) > MAX_TEXTS:
        raise InvalidRequestError(f"{name} holds {len(texts):,} texts; at most {MAX_TEXTS:,} are taken.")
    return texts


async def measure(embedder: Embedder, texts: Sequence[Text]) -> Figures:
    """Embed every text as a document and as a question. Raises EmbedderError."""
    await embedder.embed_question(texts[0].text)  # loads the model, which is no part of the time
    began = time.perf_counter()
    documents = np.stack(await embedder.embed_documents([text.text for text in texts]))
    per_text = (time.perf_counter() - began) * 1000 / len(texts)
    questions, times = [], []
    for text in texts:
        began = time.perf_counter()
        questions.append(await embedder.embed_question(text.text))
        times.append((time.perf_counter() - began) * 1000)
    names = np.array([text.group for text in texts])
    related = names[:, None] == names[None, :]
    within, between, area = _pairs(documents @ documents.T, related)
    top_1, top_3 = _recall(np.stack(questions) @ documents.T, related)
    return Figures(
        name=embedder.identity.name,
        dimensions=embedder.identity.dimensions,
        texts=len(texts),
        groups=len(set(names.tolist())),
        within=round(within, 4),
        between=round(between, 4),
        separation=round(within - between, 4),
        auroc=round(area, 4),
        top_1=round(top_1, 4),
        top_3=round(top_3, 4),
        milliseconds_per_text=round(per_text, 2),
        milliseconds_per_question=round(median(times), 2),
    )


def _pairs(similarity: _Matrix, related: _Mask) -> tuple[float, float, float]:
    """Mean similarity of related and of unrelated pairs, each pair once, and the area under the ROC curve."""
    once = np.triu(np.ones_like(related), k=1)
    near, far = similarity[once & related], np.sort(similarity[once & ~related])
    # Ties count half: the mean of the ranks that a related pair would have before and behind its equals.
    ranks = (np.searchsorted(far, near, side="left") + np.searchsorted(far, near, side="right")) / 2
    return float(near.mean()), float(far.mean()), float(ranks.mean() / len(far))


def _recall(similarity: _Matrix, related: _Mask) -> tuple[float, float]:
    """Shares of questions with one of their group first, and among the first three; no text finds itself."""
    others = similarity.copy()
    np.fill_diagonal(others, -np.inf)
    nearest = np.argsort(-others, axis=1, kind="stable")[:, :3]
    hits = np.take_along_axis(related, nearest, axis=1)
    return float(hits[:, 0].mean()), float(hits.any(axis=1).mean())


def _content(file: Path | None, name: str) -> str:
    source = file or files("ragpilot") / "data" / "embedding_bench.jsonl"
    try:
        with source.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidRequestError(f"{name} cannot be read: {error.strerror or error}.") from None
    if len(content) > MAX_BYTES:
        raise InvalidRequestError(f"{name} has more than {MAX_BYTES:,} bytes.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidRequestError(f"{name}, line {line}: no text in UTF-8.", hint=_HINT) from None


def _text(line: str, place: str) -> Text:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidRequestError(f"{place}: no JSON.", hint=_HINT) from None
    if not isinstance(row, dict):
        raise InvalidRequestError(f"{place}: no object with 'group' and 'text'.", hint=_HINT)
    for name in ("group", "text"):
        value = row.get(name)
        if not isinstance(value, str) or not value.strip() or _broken(value):
            found = "is missing" if name not in row else "must be a text that is not blank"
            raise InvalidRequestError(f"{place}: {name!r} {found}.", hint=_HINT)
    return Text(row["group"], row["text"])


def _broken(value: str) -> bool:
    """Whether it holds half of a surrogate pair, which JSON can spell and no embedder can take."""
    return any("\ud800" <= character <= "\udfff" for character in value)
