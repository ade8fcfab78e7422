"""Text to citable spans, one module a kind of text. Pure."""
