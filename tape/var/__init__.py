"""Handles of values on a tape, with operators and methods."""
