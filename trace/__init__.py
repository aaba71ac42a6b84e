"""How a run is written down, checked, compared and shown."""

from importlib import import_module
from typing import TYPE_CHECKING

from ..completed_step import CompletedStep, StepTape, TapeNode
from .comparing.compare import assert_same, compare
from .comparing.ops import OpDifference
from .comparing.policy import Policy
from .comparing.result import Cause, Comparison
from .comparing.tensors import TensorDifference
from .replaying.validate import validate
from .v2.check.report import Finding, Report
from .v2.errors import InvalidTraceError, NonFiniteError, NotRecordedError, TraceWriteError, UnsealedTraceWarning
from .v2.format.limits import Limits
from .v2.read.reader import OpDigests, StepView, Trace, open_trace
from .v2.verdict import Verdict
from .v2.write.open_recorder import open_recorder, resume_recorder
from .v2.write.recorder import Recorder

if TYPE_CHECKING:
    from .frameworks.jax_steps import record_jax
    from .frameworks.pytorch import record_torch
    from .frameworks.recompute import recompute
    from .replaying.replay import replay
    from .replaying.replay_state import state_after

_COMPILED = {
    "recompute": "frameworks.recompute",
    "record_jax": "frameworks.jax_steps",
    "record_torch": "frameworks.pytorch",
    "replay": "replaying.replay",
    "state_after": "replaying.replay_state",
}
"""Names whose modules are loaded when they are first asked for: reading a trace needs no compiler."""

__all__ = [
    "Cause",
    "Comparison",
    "CompletedStep",
    "Finding",
    "InvalidTraceError",
    "Limits",
    "NonFiniteError",
    "NotRecordedError",
    "OpDifference",
    "OpDigests",
    "Policy",
    "Recorder",
    "Report",
    "StepTape",
    "StepView",
    "TapeNode",
    "TensorDifference",
    "Trace",
    "TraceWriteError",
    "UnsealedTraceWarning",
    "Verdict",
    "assert_same",
    "compare",
    "open_recorder",
    "open_trace",
    "recompute",
    "record_jax",
    "record_torch",
    "replay",
    "resume_recorder",
    "state_after",
    "validate",
]


def __getattr__(name: str) -> object:
    if name not in _COMPILED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_COMPILED[name]}", __name__), name)
