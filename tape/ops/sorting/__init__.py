"""Ops about the order and the positions of elements: sorted, where they stand in order, and positions as rows."""
