from __future__ import annotations

from tests.unit.chunkers.soundness import places, sound_spans

VUE = """\
<template>
  <CartLine v-for="line in lines" :key="line.id" />
</template>

<script setup lang="ts">
function addLine(id: string): void {
  lines.push({ id });
}

const total = <number>sum(lines);
</script>

<style scoped>
.a {
  color: red;
}
</style>
"""

SVELTE = """\
<script lang="ts">
  import { open } from "./store";
  export function toggleMenu() {
    open = !open;
  }
</script>

{#if open}<nav>MENU</nav>{/if}

<style>
  nav { color: red; }
</style>
"""


def test_a_vue_component_has_its_script_symbols_at_the_lines_of_the_file() -> None:
    spans = sound_spans("src/Cart.vue", VUE, "template")

    assert places(spans) == {"addLine": (6, 8), "total": (10, 11), ".a": (13, 17)}
    assert any("<CartLine" in span.text for span in spans)
    assert next(span for span in spans if span.symbol == "addLine").header == "cart: add line. id"


def test_a_svelte_component_too() -> None:
    spans = sound_spans("Menu.svelte", SVELTE, "template")

    assert places(spans)["toggleMenu"][0] == 3
    assert spans[0].text == '<script lang="ts">\n  import { open } from "./store";'
    assert any(span.text.startswith("{#if open}<nav>MENU") for span in spans)


def test_parts_of_a_component_are_never_mixed() -> None:
    text = (
        "<p>one</p>\n<script>\nlet a = 1;\n</script>\n<p>two</p>\n<style>\np { color: red; }\n</style>\n<p>three</p>\n"
    )

    spans = sound_spans("a.svelte", text, "template", max_chars=1000)

    assert not any("one" in span.text and "two" in span.text for span in spans)


def test_a_component_without_an_end_tag() -> None:
    sound_spans("a.vue", "<template>\n</template>\n<script>\nexport default {\n  data() {\n", "template")


def test_html_is_cut_at_elements_and_titled_by_them() -> None:
    card = (
        '<section class="card" id="{0}">\n  <h2>Card {0}</h2>\n' + "  <p>Some words in it.</p>\n" * 8 + "</section>\n"
    )
    text = (
        "<main>\n" + "".join(card.format(name) for name in ("alpha", "beta", "gamma", "delta", "epsilon")) + "</main>\n"
    )

    spans = sound_spans("page.component.html", text, "template")

    assert spans[1].title == "page.component.html › section.card"
    assert spans[1].text.startswith("<section")
    assert spans[1].header.startswith("page component: card")


def test_angular_bindings_are_searchable_words() -> None:
    text = '<app-card *ngFor="let card of cards" (click)="openDetails(card)"></app-card>\n@if (ready) { <b>MARK</b> }\n'
    (span,) = sound_spans("list.component.html", text, "template")

    assert span.header == "list component. app card ng cards click open details ready"


def test_odd_line_ends_shift_nothing_in_a_component() -> None:
    text = (
        VUE.replace("\n", "\r\n")
        .replace("  lines.push", "\r  lines.push")
        .replace("</template>\r\n", "</template>\r\r\n")
    )

    assert places(sound_spans("Cart.vue", text, "template"))["addLine"] == (6, 8)
