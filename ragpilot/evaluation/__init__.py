"""Measuring retrieval and refusal."""
