"""Optimizers, learning-rate schedules and clipping of gradients: the same bits on every machine."""

from .clip import ClippedByNorm, clip_by_global_norm, clip_by_value
from .ops_rule import OpsRule, ops_rule
from .rule import Law, Rule
from .rules import SGD, Adam, AdamW, make_rule
from .schedules import Constant, Cosine, OneCycle, Schedule, StepDecay, WarmUp

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "ClippedByNorm",
    "Constant",
    "Cosine",
    "Law",
    "OneCycle",
    "OpsRule",
    "Rule",
    "Schedule",
    "StepDecay",
    "WarmUp",
    "clip_by_global_norm",
    "clip_by_value",
    "make_rule",
    "ops_rule",
]
