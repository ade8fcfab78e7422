from __future__ import annotations

import pytest

from ragpilot.ingest.chunkers.labels import MOST_WORDS, header
from ragpilot.ingest.chunkers.words import first_sentence, new_words, path_phrase, phrase


@pytest.mark.parametrize(
    ("identifier", "words"),
    [
        ("APIRouter.add_api_route", "api router add api route"),
        ("getHTTPResponse2", "get http response2"),
        ("OAuth2PasswordBearer", "oauth2 password bearer"),
        ("__init__", "init"),
        ("URLs", "urls"),
        ("parseJSON", "parse json"),
        ("übungNaïve", "übung naïve"),
        ("订单_total", "订单 total"),
        ("GET /orders/{id}", "get orders id"),
        ("#private", "private"),
        ("", ""),
    ],
)
def test_names_become_phrases(identifier: str, words: str) -> None:
    assert phrase(identifier) == words


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("fastapi/routing.py", "fastapi routing"),
        ("src/fastapi/dependencies/utils.py", "fastapi dependencies utils"),
        ("orders/__init__.py", "orders"),
        ("web/src/app/cart/index.ts", "app cart"),
        ("com/shop/order/OrderService.java", "shop order service"),
        ("card.component.ts", "card component"),
        (".github/workflows/test.yml", "github workflows test"),
        ("Makefile", "makefile"),
        ("index.js", "index"),
        ("README.md", "readme"),
        (".editorconfig", "editorconfig"),
    ],
)
def test_paths_lose_what_every_project_has(path: str, words: str) -> None:
    assert path_phrase(path) == words


@pytest.mark.parametrize(
    ("comment", "sentence"),
    [
        ("/// <summary>\n/// Purges the cache.\n/// </summary>\n/// <param name='x'>n</param>", "Purges the cache"),
        ("/**\n * Makes {@link Foo} go.\n *\n * @param x it\n */", "Makes Foo go"),
        ("/** @final */", ""),
        ("# Keeps foo_bar *here* in `order`.\n# More.", "Keeps foo_bar here in order"),
        ("Builds a :class:`Request`, then sends it. Later", "Builds a Request, then sends it"),
        ("// ----------\n// Helpers\n// ----------", "Helpers"),
        ("<!-- not shown -->", "not shown"),
        ("=" * 500, ""),
        ("x" * 500, "x" * 40),
        ("一个句子。另一个", "一个句子"),
    ],
)
def test_the_first_sentence_of_a_comment(comment: str, sentence: str) -> None:
    assert first_sentence(comment).rstrip("。") == sentence


def test_keywords_hashes_and_words_that_are_known_say_nothing_new() -> None:
    text = "public async def load(self, path: str, a, deadbeef1234, sha_c77100e6277c0a99b617)"

    assert new_words(text, ["path"], 10) == ["load"]


def test_a_header_is_bounded_and_names_nothing_twice() -> None:
    text = header("a/b.py", "load order", details=[" ".join(f"word{number}x" for number in range(50))], doc="one " * 90)

    assert len(text.split()) == MOST_WORDS
    assert header("cart.py", "cart") == "cart"
