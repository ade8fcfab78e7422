"""Ruby."""

from __future__ import annotations

from tree_sitter import Node

from ragpilot.ingest.chunkers.code.language import Kind, Language, Source


def _name(node: Node, source: Source) -> str:
    return source.field(node, "name").replace("::", ".")


RUBY = Language(
    name="Ruby",
    module="tree_sitter_ruby",
    sample="# é\nmodule Shop\n  class Cart < Base\n    def add(item)\n    end\n  end\nend\n",
    expected=("Shop.Cart", "Shop.Cart.add"),
    definitions={
        "module": Kind.SCOPE,
        "class": Kind.TYPE,
        "method": Kind.CALLABLE,
        "singleton_method": Kind.CALLABLE,
    },
    minor={"assignment": ("left",)},
    transparent=frozenset({"body_statement", "singleton_class"}),
    bodiless=False,
    name_of=_name,
    constructors=frozenset({"initialize"}),
)
