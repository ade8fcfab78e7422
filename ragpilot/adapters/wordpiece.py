"""A token counter over the WordPiece tokenizer of an embedder."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ragpilot.adapters.token_prefix import PrefixCounter
from ragpilot.errors import EmbedderUnavailableError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


class WordPieceCounter(PrefixCounter):
    """Counts word pieces, without truncation and without the ``[CLS]`` and ``[SEP]`` that a model adds.

    Loads at the first use and raises EmbedderUnavailableError if the file is missing or damaged; thread-safe.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._tokenizer: Tokenizer | None = None

    def _encode(self, text: str) -> Encoding:
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = load_tokenizer(self._file)
        # encode() holds the interpreter lock, encode_batch() does not
        return self._tokenizer.encode_batch([text], add_special_tokens=False)[0]

    def _tokens(self, text: str) -> int:
        return len(self._encode(text).ids)

    def _reach(self, text: str, tokens: int) -> int:
        offsets = self._encode(text).offsets
        return offsets[tokens][0] if tokens < len(offsets) else len(text)


def load_tokenizer(file: Path) -> Tokenizer:
    """A tokenizer that takes ``[MASK]`` and its like in a text as plain text and cuts nothing.

    Raises:
        EmbedderUnavailableError: The file is missing or is no tokenizer.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises Exception itself
        raise EmbedderUnavailableError(
            f"The tokenizer {file} cannot be loaded: {error}", hint="Reinstall ragpilot."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    plain_specials(tokenizer)
    return tokenizer


def plain_specials(tokenizer: Tokenizer) -> None:
    """Let ``[MASK]`` and its like in a text be plain text."""
    tokenizer.encode_special_tokens = True
