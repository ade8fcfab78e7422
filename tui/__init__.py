"""The terminal UI: Textual, speaking HTTP to the server."""
