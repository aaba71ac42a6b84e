"""Optimizers, learning-rate schedules and clipping of gradients: the same bits on every machine."""

from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adamax import Adamax
from .clip import ClippedByNorm, clip_by_global_norm, clip_by_value
from .decays import Exponential, Linear, Polynomial
from .lamb import LAMB
from .lion import Lion
from .muon import Muon
from .nadam import NAdam
from .ops_rule import OpsRule, ops_rule
from .piecewise import CosineRestarts, Joined, MultiStep, Table
from .radam import RAdam
from .registry import make_rule
from .rmsprop import RMSprop
from .rule import Law, Rule
from .rules import SGD, Adam, AdamW
from .schedules import Constant, Cosine, OneCycle, Schedule, StepDecay, WarmUp
from .tape_schedules import FunctionSchedule

__all__ = [
    "LAMB",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ClippedByNorm",
    "Constant",
    "Cosine",
    "CosineRestarts",
    "Exponential",
    "FunctionSchedule",
    "Joined",
    "Law",
    "Linear",
    "Lion",
    "MultiStep",
    "Muon",
    "NAdam",
    "OneCycle",
    "OpsRule",
    "Polynomial",
    "RAdam",
    "RMSprop",
    "Rule",
    "Schedule",
    "StepDecay",
    "Table",
    "WarmUp",
    "clip_by_global_norm",
    "clip_by_value",
    "make_rule",
    "ops_rule",
]
