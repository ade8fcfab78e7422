"""From candidates to an order: fusion, signals, near-duplicates. Pure; every weight stands in ``Weights``.

Scores here decide the order and nothing else: what a hit reports, and what the floor tests, is its raw cosine.
Fusion is convex over per-question min-max scores (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for
Hybrid Retrieval", 2023), which keeps the size of a lead where rank fusion forgets it.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ragpilot.lexical import path_words, terms_of, words
from ragpilot.naming import PROSE, Asked, covers, defines, is_file, spelt
from ragpilot.types import Candidate, RetrievalPlan


@dataclass(frozen=True, slots=True)
class Weights:
    """Every number of the ranking. Fused scores lie between 0 and 1; boosts are shares of the best one."""

    dense: float = 0.7
    """Share of the cosine in the fused score; the rest is lexical."""
    dense_symbol: float = 0.3
    """The same where the question is the bare name of a symbol."""
    together: float = 0.2
    """For the best chunk of a file, by how much of all score the file's chunks hold. The strongest signal."""
    definition: float = 1.5
    """For a chunk that defines a symbol which is the whole question; half of it where prose names the symbol."""
    spelt: float = 1.0
    """For one of the few chunks in which an identifier or a phrase of the question stands as it is written there."""
    file_stem: float = 0.3
    """For the share of the question's words that the file's own name holds."""
    test: float = 0.5
    """Factor for tests, unless the question is about tests."""
    example: float = 0.6
    """Factor for examples and benchmarks, unless the question is about them."""
    history: float = 0.6
    """Factor for lists of changes, unless the question is about them."""
    declares: float = 0.5
    """The best chunk of a file that declares something, and has so much of the score of its preamble, comes first."""
    source_type: float = 0.1
    """For a source type that the question implies."""
    prose: float = 0.1
    """For documents where a guide is asked for (times the plan's prior)."""
    focus: float = 0.3
    """For documents that the asker is looking at."""
    duplicate: float = 0.9
    """Share of words from which on two chunks are near-duplicates (Jaccard)."""


@dataclass(slots=True)
class Ranked:
    """A candidate on its way to a hit."""

    candidate: Candidate
    cosine: float
    fused: float
    score: float = 0.0
    signals: dict[str, float] = field(default_factory=dict)
    also_at: list[str] = field(default_factory=list)

    def add(self, name: str, amount: float) -> None:
        """Raise the score by ``amount`` and keep the reason."""
        self.score += amount
        self.signals[name] = round(self.signals.get(name, 0.0) + amount, 4)


_FEW = 4
"""Up to so many candidates that hold what a question spells are all meant."""

_TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|specs?|e2e|testdata|test_data|fixtures)/"
    r"|(?:^|/)(?:test_[^/]*|conftest|[^/]*_(?:test|spec)|[^/]*[.-](?:test|spec)|[^/]*(?:Tests?|Spec|IT))\.\w+$"
)
_EXAMPLE_PATH = re.compile(
    r"(?:^|/)_?(?:examples?|samples?|demos?|docs_src|benchmarks?|bench|playground)/", re.IGNORECASE
)
_HISTORY_PATH = re.compile(
    r"(?:^|/)(?:changelogs?/[^/]+|(?:change(?:s|log)|history|news|releases?|release[-_]?notes?)(?:\.(?:md|rst|txt|adoc|markdown))?)$",
    re.IGNORECASE,
)
# What every such path holds: of hundreds of candidates, few are worth the slower look.
_TEST_HINTS = ("test", "Test", "spec", "Spec", "e2e", "fixtures", "IT.")
_EXAMPLE_HINTS = ("example", "sample", "demo", "docs_src", "bench", "playground")


def is_test(path: str) -> bool:
    """Whether a path is a test's, by the conventions of the languages that are indexed."""
    return any(hint in path for hint in _TEST_HINTS) and bool(_TEST_PATH.search(path))


def is_example(path: str) -> bool:
    """Whether a path is an example's or a benchmark's."""
    lowered = path.lower()
    return any(hint in lowered for hint in _EXAMPLE_HINTS) and bool(_EXAMPLE_PATH.search(path))


def is_history(path: str) -> bool:
    """Whether a path is that of a list of changes."""
    return bool(_HISTORY_PATH.search(path))


def _scaled(values: Sequence[float]) -> list[float]:
    """Min-max to 0..1; all 1 where all are alike, for then they do not tell candidates apart."""
    low, high = min(values), max(values)
    if high - low < 1e-9:
        return [1.0 if high > 0 else 0.0] * len(values)
    return [(value - low) / (high - low) for value in values]


def fuse(candidates: Iterable[Candidate], *, dense_share: float) -> list[Ranked]:
    """Candidates with a cosine, each with its convex fused score, in no order."""
    pool = [(candidate, candidate.cosine) for candidate in candidates]
    scored = [(candidate, cosine) for candidate, cosine in pool if cosine is not None]
    if not scored:
        return []
    dense = _scaled([cosine for _, cosine in scored])
    lexical = _scaled([candidate.lexical_score for candidate, _ in scored])
    ranked = []
    for (candidate, cosine), near, shared in zip(scored, dense, lexical, strict=True):
        fused = dense_share * near + (1 - dense_share) * shared
        # What a question names is what it is about, however little its vector says of that.
        named = cosine if candidate.name_score is None else max(cosine, candidate.name_score)
        ranked.append(Ranked(candidate, named, fused, fused))
    return ranked


def _boost_definitions(ranked: Sequence[Ranked], asked: Asked, unit: float, weights: Weights) -> None:
    amount = weights.definition * unit * (1.0 if asked.bare_symbol else 0.5)
    for item in ranked:
        chunk = item.candidate.chunk
        if chunk.source_type in PROSE:
            continue
        share = max((defines(chunk, symbol) for symbol in asked.symbols), default=0.0)
        if share:
            item.add("definition", amount * share)


def _boost_spelt(ranked: Sequence[Ranked], asked: Asked, unit: float, weights: Weights) -> None:
    """What few chunks hold tells them apart, what most hold does not."""
    if not asked.symbols and not asked.phrases:
        return
    held = {id(item): spelt(item.candidate.chunk, asked) for item in ranked}
    count = Counter(name for names in held.values() for name in names)
    amount = weights.spelt * unit
    for item in ranked:
        if names := held[id(item)]:
            item.add("spelt", amount * max(min(1.0, _FEW / count[name]) for name in names))


def _boost_file_names(ranked: Sequence[Ranked], asked: Asked, unit: float, weights: Weights) -> None:
    """A file whose name holds the question's words: ``retry policy`` and ``retry_policy.go``."""
    if not asked.terms:
        return
    for item in ranked:
        path = item.candidate.chunk.path
        own = {term for word in path_words(path)[-3:-1] for term in terms_of(word)}
        shared = len(own & asked.terms)
        if shared:
            item.add("file_stem", weights.file_stem * unit * shared / max(len(asked.terms), len(own)))
        if any(is_file(path, named) for named in asked.files):
            item.add("named_file", weights.definition * unit)
        if any(covers(item.candidate.chunk, place) for place in asked.lines):
            item.add("named_lines", weights.definition * unit)


def _boost_together(ranked: Sequence[Ranked], unit: float, weights: Weights) -> None:
    """Several good chunks in one file speak for the file: its best chunk is raised by the file's share."""
    held: dict[str, float] = defaultdict(float)
    best: dict[str, Ranked] = {}
    for item in ranked:
        path = item.candidate.chunk.path
        held[path] += item.score
        if path not in best or item.score > best[path].score:
            best[path] = item
    most = max(held.values(), default=0.0)
    if most > 0:
        for path, item in best.items():
            item.add("together", weights.together * unit * held[path] / most)


def _weigh_paths(ranked: Sequence[Ranked], asked: Asked, weights: Weights) -> None:
    for item in ranked:
        path = item.candidate.chunk.path
        for name, factor, applies in (
            ("test", weights.test, not asked.about_tests and is_test(path)),
            ("example", weights.example, not asked.about_examples and is_example(path)),
            ("history", weights.history, not asked.about_changes and is_history(path)),
        ):
            if applies:
                item.add(name, item.score * (factor - 1.0))


def _in_focus(path: str, focus: Sequence[str]) -> bool:
    return any(
        path == given or path.startswith(given.rstrip("/") + "/") or fnmatch.fnmatchcase(path, given) for given in focus
    )


def _boost_plan(ranked: Sequence[Ranked], asked: Asked, plan: RetrievalPlan, unit: float, weights: Weights) -> None:
    for item in ranked:
        chunk = item.candidate.chunk
        if chunk.source_type in plan.source_types:
            item.add("source_type", weights.source_type * unit)
        if plan.document_prior and chunk.source_type in PROSE:
            item.add("prose", weights.prose * unit * plan.document_prior)
        if asked.focus and _in_focus(chunk.path, asked.focus):
            item.add("focus", weights.focus * unit)


def rank(
    candidates: Iterable[Candidate], asked: Asked, plan: RetrievalPlan, weights: Weights | None = None
) -> list[Ranked]:
    """All candidates that have a cosine, best first; ties fall by cosine, then path and line, then id."""
    weights = weights or Weights()
    ranked = fuse(candidates, dense_share=weights.dense_symbol if asked.bare_symbol else weights.dense)
    unit = max((item.fused for item in ranked), default=0.0)
    _boost_definitions(ranked, asked, unit, weights)
    _boost_file_names(ranked, asked, unit, weights)
    _boost_plan(ranked, asked, plan, unit, weights)
    _boost_together(ranked, unit, weights)
    _weigh_paths(ranked, asked, weights)
    _boost_spelt(ranked, asked, unit, weights)
    _put_declarations_first(ranked, weights)
    ranked.sort(key=_order)
    return ranked


def _put_declarations_first(ranked: Sequence[Ranked], weights: Weights) -> None:
    """A file that is found by its name is shown by what it declares, not by the imports that it begins with."""
    best: dict[str, Ranked] = {}
    declaring: dict[str, Ranked] = {}
    begins: dict[str, int] = {}
    for item in ranked:
        chunk = item.candidate.chunk
        if chunk.path not in best or item.score > best[chunk.path].score:
            best[chunk.path] = item
        if chunk.symbol is None or not chunk.source_type.startswith("code-"):
            continue
        begins[chunk.path] = min(chunk.start_line, begins.get(chunk.path, chunk.start_line))
        if chunk.path not in declaring or item.score > declaring[chunk.path].score:
            declaring[chunk.path] = item
    for path, other in declaring.items():
        first = best[path]
        chunk = first.candidate.chunk
        preamble = chunk.symbol is None and chunk.start_line < begins[path]
        if preamble and other.score >= weights.declares * first.score:
            lead = first.score - other.score
            first.add("preamble", -lead)
            other.add("declares", lead)


def _order(item: Ranked) -> tuple[float, float, str, int, str]:
    chunk = item.candidate.chunk
    return (-round(item.score, 9), -round(item.cosine, 9), chunk.path, chunk.start_line, chunk.id)


def collapse(ranked: Sequence[Ranked], *, most: int, weights: Weights | None = None) -> list[Ranked]:
    """The first ``most`` items without near-duplicates of earlier ones, which note where else they stand."""
    share = (weights or Weights()).duplicate
    kept: list[tuple[Ranked, frozenset[str]]] = []
    for item in ranked:
        own = frozenset(words(item.candidate.chunk.text))
        twin = next((other for other, held in kept if _alike(own, held, share)), None)
        if twin is not None:
            chunk = item.candidate.chunk
            twin.also_at.append(f"{chunk.path}:{chunk.start_line}-{chunk.end_line}")
            continue
        if len(kept) == most:
            break
        kept.append((item, own))
    return [item for item, _ in kept]


def _alike(left: frozenset[str], right: frozenset[str], share: float) -> bool:
    """Whether the words in common are at least ``share`` of all; most pairs are told apart by a dozen words."""
    smaller, larger = sorted((left, right), key=len)
    both = len(left) + len(right)
    # Of the smaller's words so many may be missing from the larger: common / (both - common) >= share.
    spare = len(smaller) - share * both / (1.0 + share) + 1e-9
    missing = 0
    for word in smaller:
        if word not in larger:
            missing += 1
            if missing > spare:
                return False
    common = len(smaller) - missing
    return common >= share * (both - common)


def spread(ranked: Sequence[Ranked], *, per_document: int, k: int) -> list[Ranked]:
    """The best ``k``, at most ``per_document`` of one document while other documents have something to say."""
    taken: list[Ranked] = []
    held_back: list[Ranked] = []
    count: dict[str, int] = defaultdict(int)
    for item in ranked:
        document = item.candidate.chunk.document_id
        target = taken if count[document] < per_document else held_back
        count[document] += 1
        target.append(item)
    chosen = taken[:k]
    chosen += held_back[: k - len(chosen)]
    return sorted(chosen, key=_order)
