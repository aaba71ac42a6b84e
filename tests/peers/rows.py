"""Every row, and the ops that have none."""

from . import elementwise, layers, reductions, shapes, spatial

ROWS = [*elementwise.ROWS, *shapes.ROWS, *reductions.ROWS, *spatial.ROWS, *layers.ROWS]

WITHOUT = {
    "uniform": "its numbers are those of our own generator",
    "dropout": "it drops by our own generator",
}
"""Public ops without a row, and why."""
