"""How a step becomes a run: optimizers, data, the trainer."""

from . import data
from .callbacks import Callback
from .capture import CapturedStep, capture
from .checkpoint import CheckpointError
from .data import Batches, Dataset
from .digest import state_digest
from .evaluate import Evaluation, NonFiniteError, evaluate, gradients
from .optim import SGD, Adam, AdamW, clip_by_global_norm, clip_by_value, make_rule
from .recording import Recorder, RecorderError
from .steps import EagerStep, StateError
from .trainer import Result, Trainer

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Batches",
    "Callback",
    "CapturedStep",
    "CheckpointError",
    "Dataset",
    "EagerStep",
    "Evaluation",
    "NonFiniteError",
    "Recorder",
    "RecorderError",
    "Result",
    "StateError",
    "Trainer",
    "capture",
    "clip_by_global_norm",
    "clip_by_value",
    "data",
    "evaluate",
    "gradients",
    "make_rule",
    "state_digest",
]
