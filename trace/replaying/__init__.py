"""Traces held against what can be computed again: validation, states, replay."""
