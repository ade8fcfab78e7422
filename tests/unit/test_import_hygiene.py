"""What importing the core loads, seen from a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("quart", "hypercorn", "textual", "qdrant_edge", "qdrant_client", "ollama", "onnxruntime", "fastembed")
CORE = (
    "ragpilot",
    "ragpilot.types",
    "ragpilot.errors",
    "ragpilot.events",
    "ragpilot.ports",
    "ragpilot.config",
    "ragpilot.settings_loader",
    "ragpilot.runtime",
    "ragpilot.actors",
    "ragpilot.lexical",
    "ragpilot.classify",
    "ragpilot.routing",
    "ragpilot.retrieval",
    "ragpilot.ranking",
    "ragpilot.prompting",
    "ragpilot.citations",
    "ragpilot.answering",
    "ragpilot.status",
    "ragpilot.ingest",
    "ragpilot.ingest.chunkers",
)


def loaded_by(*modules: str) -> set[str]:
    code = f"import sys, {', '.join(modules)}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


def test_the_package_loads_next_to_nothing() -> None:
    assert loaded_by("ragpilot").isdisjoint({*HEAVY, "numpy", "pydantic", "httpx", "asyncio"})


def test_the_core_loads_no_framework_and_no_vendor() -> None:
    assert loaded_by(*CORE).isdisjoint(HEAVY)


def test_what_answers_loads_nothing_of_what_indexes() -> None:
    assert loaded_by("ragpilot.answering", "ragpilot.searching").isdisjoint({"tree_sitter", "yaml"})


@pytest.mark.parametrize("module", ["ragpilot.cli", "tui.backend"])
def test_what_starts_a_command_loads_no_framework_and_no_vendor(module: str) -> None:
    assert loaded_by(module).isdisjoint({*HEAVY, "tiktoken", "tree_sitter"})
