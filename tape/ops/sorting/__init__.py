"""Ops about the order of elements: where they stand in order, in order, and the first few."""
