"""Optimizers, learning-rate schedules and clipping of gradients: the same bits on every machine."""

from typing import TYPE_CHECKING

from ...base.pytorch_names import refuse_names as _refuse_names
from ...tape.numerics.engine.numba_internals import formula
from .clip import ClippedByNorm, clip_by_global_norm, clip_by_value
from .kinds import SHARE
from .laws.pointwise import Law, PointLaw, law
from .lbfgs.lbfgs import LBFGS
from .methods.adadelta import Adadelta
from .methods.adafactor import Adafactor
from .methods.adagrad import Adagrad
from .methods.adam import Adam, AdamW
from .methods.adamax import Adamax
from .methods.lamb import LAMB
from .methods.lion import Lion
from .methods.muon import Muon
from .methods.nadam import NAdam
from .methods.radam import RAdam
from .methods.rmsprop import RMSprop
from .methods.sgd import SGD
from .rates.decays import Constant, Cosine, Exponential, Linear, OneCycle, Polynomial, StepDecay
from .rates.functions import FunctionSchedule
from .rates.held import HeldRate
from .rates.piecewise import CosineRestarts, Joined, MultiStep, Table
from .rates.rated import Rate, rate
from .rates.schedules import Schedule
from .rates.warm_up import WarmUp
from .rules.ops_rule import OpsRule, ops_rule
from .rules.point_rule import PointRule
from .rules.registry import make_rule
from .rules.rule import Rule

__all__ = [
    "LAMB",
    "LBFGS",
    "SGD",
    "SHARE",
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
    "HeldRate",
    "Joined",
    "Law",
    "Linear",
    "Lion",
    "MultiStep",
    "Muon",
    "NAdam",
    "OneCycle",
    "OpsRule",
    "PointLaw",
    "PointRule",
    "Polynomial",
    "RAdam",
    "RMSprop",
    "Rate",
    "Rule",
    "Schedule",
    "StepDecay",
    "Table",
    "WarmUp",
    "clip_by_global_norm",
    "clip_by_value",
    "formula",
    "law",
    "make_rule",
    "ops_rule",
    "rate",
]

if not TYPE_CHECKING:  # checkers refuse by themselves what this refuses
    __getattr__ = _refuse_names(__name__, __all__)
