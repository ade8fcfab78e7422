from __future__ import annotations

import numpy as np
import pytest

from ragpilot.adapters.minilm import MiniLmEmbedder
from ragpilot.ingest.chunkers import chunk_text
from ragpilot.ingest.chunkers.front_page import HEADER

README = "# Kestrel\n\nKestrel moves parcels between depots.\n\n## Use\n\nCall `kestrel send`.\n"


def test_the_opening_of_the_outermost_readme_is_named_by_what_readers_look_for_there() -> None:
    spans = chunk_text("README.md", README, "docs-markdown")
    assert [(span.title, span.header == HEADER) for span in spans] == [("Kestrel", True), ("Kestrel › Use", False)]
    assert spans[0].text == "# Kestrel\n\nKestrel moves parcels between depots."


@pytest.mark.parametrize("path", ["docs/README.md", "docs/guide.md", "READMES.md", "readme_tool.md"])
def test_other_documents_keep_their_headers(path: str) -> None:
    assert all(span.header != HEADER for span in chunk_text(path, README, "docs-markdown"))


def test_a_long_opening_is_named_so_in_its_first_pieces() -> None:
    text = "# Kestrel\n\n" + "\n\n".join(f"Depot {number} sends parcels to all others. " * 18 for number in range(6))
    spans = chunk_text("README", text, "docs-text")
    assert len(spans) > 4
    assert [span.header == HEADER for span in spans] == [True] * 3 + [False] * (len(spans) - 3)


@pytest.mark.asyncio
async def test_questions_about_the_project_are_near_and_those_about_other_things_are_not() -> None:
    embedder = MiniLmEmbedder()
    opening, *questions = await embedder.embed_documents(
        [
            HEADER,
            "what does this project do?",
            "what is this repository about",
            "what is this library for?",
            "give me an overview of this codebase",
            "what is the purpose of this repo",
            "how do I get started with painting",
            "what is the capital of france",
            "who manages this building",
        ]
    )
    cosines = [float(np.dot(opening, question)) for question in questions]
    await embedder.aclose()
    assert min(cosines[:5]) > 0.5
    assert max(cosines[5:]) < 0.3
