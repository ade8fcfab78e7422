"""Reasoning that a model writes into its answer, ``<think> … </think>``: taken out while it streams."""

from __future__ import annotations

OPENING, CLOSING = "<think>", "</think>"


class ThinkingFilter:
    """Drops reasoning at the beginning of an answer. Later markers are text: an answer may speak of them."""

    def __init__(self) -> None:
        self._held = ""
        self._state = "start"
        self.seen = False
        """Whether the answer began with reasoning."""

    def feed(self, piece: str) -> str:
        """What of ``piece``, and of what was held back before it, is answer text."""
        if self._state == "answer":
            return piece
        self._held += piece
        if self._state == "start":
            beginning = self._held.lstrip()
            if beginning.startswith(OPENING):
                self._state, self.seen = "thinking", True
                self._held = beginning[len(OPENING) :]
            elif OPENING.startswith(beginning):
                return ""  # blank so far, or a part of the marker
            else:
                return self._release(self._held)
        if self._state == "thinking":
            _, closing, answer = self._held.partition(CLOSING)
            if closing:
                self._state, self._held = "after", answer
            else:
                # No more than the marker's beginning has to be kept.
                self._held = self._held[-len(CLOSING) :]
                return ""
        answer = self._held.lstrip()  # the blank lines between reasoning and answer
        return self._release(answer) if answer else ""

    def end(self) -> str:
        """What was held back, once the stream has ended: text if it never became reasoning."""
        return self._release(self._held) if self._state == "start" else ""

    def _release(self, text: str) -> str:
        self._state, self._held = "answer", ""
        return text
