"""How a step becomes a run: optimizers, data, the trainer."""

from typing import TYPE_CHECKING

from ..base.diagnosis import Remark
from ..base.pytorch_names import refuse_names as _refuse_names
from ..base.runs.keep import Keep
from ..base.runs.run import Run
from . import data
from .captured.captured_function import CapturedFunction, capture_function
from .captured.captured_step import CapturedStep, capture
from .captured.kept import ManyShapesWarning
from .captured.purity import CaptureError
from .cuda.driver import CudaError
from .data import Batch, Batches, Dataset, Stream
from .generating import Generator
from .library.export import Library, export_library
from .library.source import LibraryError
from .optim import SGD, Adam, AdamW, clip_by_global_norm, clip_by_value, make_rule
from .step.completed import completed
from .step.eager import EagerStep
from .step.ensemble import ensemble, joined, parted
from .step.evaluate import Evaluation, NonFiniteError, evaluate, gradients
from .step.state_digest import state_digest
from .step.training_step import StateError
from .training.callbacks.best_checkpoint import BestCheckpoint
from .training.callbacks.callback import Callback
from .training.callbacks.early_stopping import EarlyStopping
from .training.callbacks.reduce_lr_on_plateau import ReduceLROnPlateau
from .training.history import History
from .training.recorder_protocol import Recorder, RecorderError, RecorderFactory
from .training.result import Result
from .training.saving.checkpoint import CheckpointError
from .training.trainer import Trainer
from .training.witness import WitnessError

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Batch",
    "Batches",
    "BestCheckpoint",
    "Callback",
    "CaptureError",
    "CapturedFunction",
    "CapturedStep",
    "CheckpointError",
    "CudaError",
    "Dataset",
    "EagerStep",
    "EarlyStopping",
    "Evaluation",
    "Generator",
    "History",
    "Keep",
    "Library",
    "LibraryError",
    "ManyShapesWarning",
    "NonFiniteError",
    "Recorder",
    "RecorderError",
    "RecorderFactory",
    "ReduceLROnPlateau",
    "Remark",
    "Result",
    "Run",
    "StateError",
    "Stream",
    "Trainer",
    "WitnessError",
    "capture",
    "capture_function",
    "clip_by_global_norm",
    "clip_by_value",
    "completed",
    "data",
    "ensemble",
    "evaluate",
    "export_library",
    "gradients",
    "joined",
    "make_rule",
    "parted",
    "state_digest",
]

if not TYPE_CHECKING:  # checkers refuse by themselves what this refuses
    __getattr__ = _refuse_names(__name__, __all__)
