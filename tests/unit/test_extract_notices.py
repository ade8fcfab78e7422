"""Notices of copyright and licence: left out of extracts, unless they are what is asked about."""

from __future__ import annotations

import pytest

from ragpilot.adapters.extract_notices import notice_in
from ragpilot.adapters.extract_words import Words
from ragpilot.adapters.extractive import extract
from tests.builders import chunk
from tests.extracts import PLENTY, prompt

APACHE = """// Copyright 2013-2023 The Cobra Authors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License."""
OPENING = chunk(
    "bash.go", f'{APACHE}\n\npackage cobra\n\nimport (\n\t"bytes"\n\t"fmt"\n)', source_type="code-go", end=12
)
BODY = chunk(
    "bash.go", "func complete(word string) string {\n\treturn bash(word)\n}", symbol="complete", start=30, end=32
)


def rows(text: str, sign: str, question: str = "bash") -> range:
    asked = prompt(question, chunk("a.c", text))
    return notice_in(text.split("\n"), sign, Words(question, asked.blocks))


def test_a_passage_of_notice_and_imports_gives_way_to_one_that_says_something() -> None:
    answer = extract(prompt("how does bash complete?", OPENING, BODY), PLENTY)
    assert "**complete** `bash.go:30-32` [2]" in answer
    assert "Copyright" not in answer
    assert answer.endswith("Also: [1] `bash.go:1-12`")


def test_what_says_nothing_is_no_measure_for_what_is_near() -> None:
    other = chunk("zsh.go", "func zsh() {\n\tbash()\n}", symbol="zsh", start=5, end=7, source_type="code-go")
    answer = extract(prompt("how does bash complete?", OPENING, BODY, other, scores=(0.95, 0.7, 0.78)), PLENTY)
    assert "**complete** `bash.go:30-32` [2]" in answer
    assert "**zsh** `zsh.go:5-7` [3]" in answer


@pytest.mark.parametrize("constants", [1, 40])
def test_a_notice_before_something_else_is_a_mark(constants: int) -> None:
    text = f"{APACHE}\n\n" + "\n".join(f"const bash{at} = {at}" for at in range(constants))
    answer = extract(prompt("bash0", chunk("bash.go", text, source_type="code-go")), PLENTY)
    assert "```go\n// …\nconst bash0 = 0\n" in answer
    assert "Apache" not in answer


def test_who_asks_about_the_licence_sees_it() -> None:
    answer = extract(prompt("which license is it under?", OPENING, BODY), PLENTY)
    assert "// Licensed under the Apache License" in answer


def test_what_a_comment_says_before_its_notice_stays() -> None:
    text = "/* Draws a bar.\n *\n * Copyright (c) 2009 Me\n * All rights reserved.\n */\nint bar;"
    assert rows(text, "//") == range(2, 5)
    assert rows("#!/bin/sh\n# SPDX-License-Identifier: MIT\nrun", "#") == range(1, 2)


@pytest.mark.parametrize(
    "text", ["// Sets the copyright of a page.\nint page;", "int page; // Copyright 2009 Me", "\n\n"]
)
def test_other_comments_are_no_notice(text: str) -> None:
    assert not rows(text, "//")
