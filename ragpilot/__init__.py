"""RagPilot answers questions about an indexed codebase, only from that codebase, with sources."""
