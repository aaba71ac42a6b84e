"""Fronts, or parts of them, that are JSON: what they say, and how they are written and read."""
