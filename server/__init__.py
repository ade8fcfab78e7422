"""The HTTP server: Quart under Hypercorn."""
