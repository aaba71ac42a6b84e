"""Every row, and the ops that have none."""

from . import elementwise, functions, layers, losses, moving, planes, reductions, shapes, spatial

ROWS = [
    *elementwise.ROWS, *functions.ROWS, *shapes.ROWS, *moving.ROWS, *reductions.ROWS, *losses.ROWS, *spatial.ROWS,
    *planes.ROWS, *layers.ROWS,
]  # fmt: skip

DRAWS = ("uniform", "normal", "bernoulli", "integers", "permutation")

PLANAR = ("conv2d", "conv_transpose2d", "max_pool2d", "avg_pool2d", "smooth_max_pool2d")

WITHOUT = {
    **dict.fromkeys(DRAWS, "its numbers are those of our own generator"),
    "dropout": "it drops by our own generator",
    **dict.fromkeys(("scan", "while_loop", "cond"), "it runs functions: see test_loops.py"),
    "stop_gradient": "it gives what it is given, and no gradient",
    **dict.fromkeys(PLANAR, "its row is that of the op of any rank"),
}
"""Public ops without a row, and why."""
