"""Figures: each a ratio or a quality, measured in one run (`make bench`)."""
