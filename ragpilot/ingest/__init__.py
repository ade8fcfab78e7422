"""From files to chunks in the store: walk, read, redact, chunk, embed."""
