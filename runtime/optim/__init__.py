"""Optimizers, `SGD`, `Adam` and `AdamW`, and clipping of gradients: the same bits on every machine."""

from .clip import ClippedByNorm, clip_by_global_norm, clip_by_value
from .rule import Law, Rule
from .rules import SGD, Adam, AdamW, make_rule

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "ClippedByNorm",
    "Law",
    "Rule",
    "clip_by_global_norm",
    "clip_by_value",
    "make_rule",
]
