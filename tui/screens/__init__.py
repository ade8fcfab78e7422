"""Screens, each beside its TCSS."""
