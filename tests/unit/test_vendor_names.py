"""Changing a provider or a store is a change of configuration: the core does not know their names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VENDORS = re.compile(
    r"qdrant|ollama|onnx|fastembed|tiktoken|cl100k|openai|llama|minilm|sentence.transformers|hugging.?face|tokenizers\b"
    r"|vllm|lm.studio|nomic|smollm|mxbai|gemma|qwen|mistral|anthropic|cohere",
    re.IGNORECASE,
)
MAY_NAME_THEM = ("ragpilot/adapters/", "ragpilot/bootstrap/")

EXCEPTIONS = {
    # The words of config.toml, enumerated once.
    "ragpilot/config.py": (r"    kind: Literal\[", r"KINDS_OF_A_FILE = "),
    # Whose keys look like what; nothing here is spoken to.
    "ragpilot/ingest/secrets/token_kinds.py": (r'    _(several|prefixed)\("[a-z-]+-(key|token)", "(sk|hf)',),
}


def _named_in(path: str) -> list[str]:
    """The lines of a module, comments and docstrings included, that name a vendor and are no exception."""
    allowed = [re.compile(pattern) for pattern in EXCEPTIONS.get(path, ())]
    return [
        f"{path}:{number}: {line.strip()}"
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), start=1)
        if VENDORS.search(line) and not any(pattern.match(line) for pattern in allowed)
    ]


def test_no_vendor_is_named_outside_adapters_and_bootstrap() -> None:
    modules = [
        file.relative_to(ROOT).as_posix()
        for name in ("ragpilot", "server", "tui")
        for file in (ROOT / name).rglob("*.py")
    ]
    assert len(modules) > 100
    core = [path for path in modules if not path.startswith(MAY_NAME_THEM)]
    assert [found for path in sorted(core) for found in _named_in(path)] == []


@pytest.mark.parametrize("path", EXCEPTIONS)
def test_each_exception_is_still_needed(path: str) -> None:
    lines = [line for line in (ROOT / path).read_text(encoding="utf-8").splitlines() if VENDORS.search(line)]
    for pattern in EXCEPTIONS[path]:
        assert any(re.match(pattern, line) for line in lines), pattern


@pytest.mark.parametrize("line", ["import qdrant_client", "# as Ollama does", 'kind = "llamacpp"', "OpenAI-compatible"])
def test_what_counts_as_a_name(line: str) -> None:
    assert VENDORS.search(line)
