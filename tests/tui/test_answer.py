from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Markdown, Static, TextArea

from tests.tui.scripted import HOSTILE, visible
from tui.widgets.answer import Answer
from tui.widgets.blocks import AnswerMarkdown, cited_number, make_parser
from tui.widgets.lists import AnswerList

BOUND = 60.0

DOCUMENTS = {
    "mixed": """\
# T

| a | b |
|---|---|
| `x|y` | 2 |

1. one
   - two
     ```py
     # c
     ```

**bold _it** al_ [l](u

```unclosed
code""",
    "lists": """\
- a
- b

  more of b
    1. x
    2. y
- c [1]

9. nine
10. ten
11. eleven

> quote
> - in it
""",
    "tables": "| a | b |\n|--|--|\n| 1 | **2** |\n| [/ | `[id]` |\n\nafter\n\n| c |\n|--|\n| d |\n",
    "fences": """\
```py
def f(): pass
```
text
~~~
```
~~~
    indented code

```no-such-language x
[/bold]
```
""",
    "breaks": """\
a
b\x20\x20
c\\
d

---

Setext
===

## H2

HTML <b>stays</b> <script>x</script>

[1]: not a definition
""",
}


class Host(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.answer = Answer()
        self.once = AnswerMarkdown()
        self.box = TextArea()

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield self.answer
            yield self.once
        yield self.box


def text_of(widget: Widget) -> Any:
    if isinstance(widget, AnswerList) and widget.flat is not None:
        return [(row.indent, row.bullet, str(row.words), sorted(map(str, row.words.spans))) for row in widget.flat]
    if isinstance(widget, Static):
        visual = widget.visual
        return (
            (str(visual), sorted(map(str, visual.spans))) if isinstance(visual, Content) else repr(widget.content)[:30]
        )
    return None


def tree(widget: Widget) -> Any:
    return [
        (type(child).__name__, text_of(child), getattr(child, "symbol", None), tree(child)) for child in widget.children
    ]


def seen(pilot: Pilot[None]) -> str:
    """Everything on the screen, as text, with the blanks of the layout taken out."""
    return "".join("".join(segment.text for segment in strip) for strip in pilot.app.screen._compositor.render_strips())


@pytest.mark.asyncio
@pytest.mark.parametrize(("name", "size"), [("mixed", 1), *((name, 7) for name in DOCUMENTS)])
async def test_streamed_markdown_ends_as_the_whole_text_rendered_once(name: str, size: int) -> None:
    document = DOCUMENTS[name]
    app = Host()
    async with asyncio.timeout(BOUND), app.run_test() as pilot:
        app.answer.PACE = 0.0  # type: ignore[misc]
        for at in range(0, len(document), size):
            app.answer.feed(document[at : at + size])
            await pilot.pause()
        await app.answer.settle()
        await app.once.update(document)
        await pilot.pause()
        assert app.answer.text == document
        assert app.answer.query_one(Markdown).source == document
        assert tree(app.answer.query_one(AnswerMarkdown)) == tree(app.once)


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["lists", "tables", "fences"])
async def test_growing_blocks_are_right_before_the_last_drawing(name: str) -> None:
    """Appending alone must lead where one rendering leads: the last drawing is no cover for a wrong one."""
    document = DOCUMENTS[name]
    app = Host()
    async with asyncio.timeout(BOUND), app.run_test() as pilot:
        for at in range(0, len(document), 3):
            await app.once.append(document[at : at + 3])
        app.answer.feed(document)
        await app.answer.settle()
        await pilot.pause()
        assert tree(app.once) == tree(app.answer.query_one(AnswerMarkdown))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "frame", ["{}", "- {}", "> {}", "| {} | b |\n|--|--|\n| {} | c |", "# {}", "```\n{}\n```", "`{}`"]
)
async def test_text_is_literal_wherever_it_stands(frame: str) -> None:
    app = Host()
    async with asyncio.timeout(BOUND), app.run_test(size=(160, 300)) as pilot:
        app.answer.feed("\n\n".join(frame.replace("{}", text) for text in HOSTILE))
        await app.answer.settle()
        await pilot.pause()
        shown = seen(pilot)
        for text in HOSTILE:
            assert visible(text) in shown, text
        assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in shown)


def test_html_and_links_are_text_and_bare_names_are_no_links() -> None:
    tokens = make_parser().parse("see events.py, [a](b), <b>x</b> and x[1][1] but [2][4] and ([3])\n\n[1]: kept")
    inline = [child for token in tokens for child in token.children or []]
    assert [child.attrs["href"] for child in inline if child.type == "link_open"] == [
        "source:2",
        "source:4",
        "source:3",
        "source:1",
    ]
    words = "".join(child.content for child in inline)
    assert words == "see events.py, [a](b), <b>x</b> and x[1][1] but [2][4] and ([3])[1]: kept"


@pytest.mark.parametrize(
    ("href", "number"), [("source:3", 3), ("source:", None), ("source:x", None), ("http://x", None), ("source:²", None)]
)
def test_only_citations_lead_anywhere(href: str, number: int | None) -> None:
    assert cited_number(href) == number


def pathological(kind: str, tokens: int) -> Iterator[str]:
    line = {"prose": "\n\n", "list": "\n- ", "table": " |\n| ", "fence": "\n", "nested": "\n  - "}[kind]
    yield {"table": "| a |\n|--|\n| ", "fence": "```py\n", "nested": "- a"}.get(kind, "")
    for number in range(tokens):
        yield line if number % 9 == 0 else f" word{number}"


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["prose", "list", "table", "fence", "nested"])
async def test_a_long_answer_is_whole_and_what_is_drawn_stays_bounded(kind: str) -> None:
    """Drawing costs by the widgets there are and by the Markdown that is parsed anew: neither grows with the answer."""
    pieces = list(pathological(kind, 20_000))
    app = Host()
    async with asyncio.timeout(BOUND), app.run_test() as pilot:
        app.box.focus()
        for at in range(0, len(pieces), 400):
            for piece in pieces[at : at + 400]:
                app.answer.feed(piece)
            await asyncio.sleep(0.001)
            if at == 10_000:
                await pilot.press("x")
                assert app.box.text == "x"
        await app.answer.settle()
        rich = app.answer.query_one(Markdown).source
        plain = "".join(str(piece.visual) for piece in app.answer.query(".plain").results(Static))
        assert app.answer.text == rich + plain == "".join(pieces)
        assert 0 < len(rich) <= 20_000
        assert len(app.answer.query("*")) < 250


@pytest.mark.asyncio
async def test_an_answer_can_be_begun_again() -> None:
    app = Host()
    async with asyncio.timeout(BOUND), app.run_test() as pilot:
        app.answer.feed("word " * 9_000)
        await app.answer.settle()
        assert app.answer.query(".plain")
        await app.answer.reset()
        app.answer.feed("anew")
        await app.answer.settle()
        await pilot.pause()
        assert app.answer.text == "anew"
        assert not app.answer.query(".plain")
        assert app.answer.query_one(Markdown).source == "anew"
