"""Code, cut at symbols by tree-sitter grammars: one engine, and a small declaration for each language."""
