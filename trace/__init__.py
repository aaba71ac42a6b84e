"""How a run is written down, checked, compared and shown."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..base.errors import NonFiniteError
    from ..base.runs.completed_step import CompletedStep, StepTape, TapeNode
    from ..base.runs.keep import Keep
    from ..base.runs.run import Parent, RuleGroup, Run
    from .auditing.audit import audit
    from .auditing.certificate import Audit
    from .auditing.check import check_certificate
    from .auditing.read_certificate import CertificateError
    from .auditing.subject import AuditError
    from .comparing.bisect_model import bisect_with_model
    from .comparing.compare import assert_same, compare
    from .comparing.ops import OpDifference
    from .comparing.policy import Policy
    from .comparing.result import Cause, Comparison
    from .comparing.several.spread import spread
    from .comparing.tensors import TensorDifference
    from .comparing.with_model import diff_with_model
    from .exporting.files import export
    from .file_version import TraceFileError
    from .frameworks.bisect_torch import bisect_torch
    from .frameworks.jax.steps import record_jax
    from .frameworks.pytorch import record_torch
    from .frameworks.recompute import recompute
    from .frameworks.torch_callbacks import lightning_callback, transformers_callback
    from .replaying.continued import Continuation
    from .replaying.edited import Edits
    from .replaying.replay import replay
    from .replaying.replay_state import UnknownRuleError, state_after
    from .replaying.travel import PastStep, RebuildError, at
    from .replaying.validate import validate
    from .report.diff.write import write_diff
    from .report.write import Written, write_report
    from .trace import Trace, open_trace
    from .v2.check.report import Finding, Report
    from .v2.errors import (
        InvalidTraceError,
        NonFiniteStepError,
        NotRecordedError,
        RepeatedStepWarning,
        TraceWriteError,
        UnsealedTraceWarning,
    )
    from .v2.format.limits import Limits
    from .v2.read.op_digests import OpDigests
    from .v2.read.step_view import StepView
    from .v2.repair.recover import Recovery, recover
    from .v2.verdict import Verdict
    from .v2.write.open_recorder import open_recorder, resume_recorder
    from .v2.write.recorder import TraceRecorder
    from .watching.expression import ConditionError
    from .watching.watchpoint import Watchpoint
    from .watching.when import when

_HOMES = {
    "Audit": ".auditing.certificate",
    "AuditError": ".auditing.subject",
    "Cause": ".comparing.result",
    "CertificateError": ".auditing.read_certificate",
    "Comparison": ".comparing.result",
    "CompletedStep": "..base.runs.completed_step",
    "ConditionError": ".watching.expression",
    "Continuation": ".replaying.continued",
    "Edits": ".replaying.edited",
    "Finding": ".v2.check.report",
    "InvalidTraceError": ".v2.errors",
    "Keep": "..base.runs.keep",
    "Limits": ".v2.format.limits",
    "NonFiniteError": "..base.errors",
    "NonFiniteStepError": ".v2.errors",
    "NotRecordedError": ".v2.errors",
    "OpDifference": ".comparing.ops",
    "OpDigests": ".v2.read.op_digests",
    "Parent": "..base.runs.run",
    "PastStep": ".replaying.travel",
    "Policy": ".comparing.policy",
    "RebuildError": ".replaying.travel",
    "TraceRecorder": ".v2.write.recorder",
    "Recovery": ".v2.repair.recover",
    "RepeatedStepWarning": ".v2.errors",
    "Report": ".v2.check.report",
    "RuleGroup": "..base.runs.run",
    "Run": "..base.runs.run",
    "StepTape": "..base.runs.completed_step",
    "StepView": ".v2.read.step_view",
    "TapeNode": "..base.runs.completed_step",
    "TensorDifference": ".comparing.tensors",
    "Trace": ".trace",
    "TraceFileError": ".file_version",
    "TraceWriteError": ".v2.errors",
    "UnknownRuleError": ".replaying.replay_state",
    "UnsealedTraceWarning": ".v2.errors",
    "Verdict": ".v2.verdict",
    "Watchpoint": ".watching.watchpoint",
    "Written": ".report.write",
    "assert_same": ".comparing.compare",
    "at": ".replaying.travel",
    "audit": ".auditing.audit",
    "bisect_torch": ".frameworks.bisect_torch",
    "bisect_with_model": ".comparing.bisect_model",
    "check_certificate": ".auditing.check",
    "compare": ".comparing.compare",
    "diff_with_model": ".comparing.with_model",
    "export": ".exporting.files",
    "lightning_callback": ".frameworks.torch_callbacks",
    "open_recorder": ".v2.write.open_recorder",
    "open_trace": ".trace",
    "recompute": ".frameworks.recompute",
    "record_jax": ".frameworks.jax.steps",
    "record_torch": ".frameworks.pytorch",
    "recover": ".v2.repair.recover",
    "replay": ".replaying.replay",
    "resume_recorder": ".v2.write.open_recorder",
    "spread": ".comparing.several.spread",
    "state_after": ".replaying.replay_state",
    "transformers_callback": ".frameworks.torch_callbacks",
    "validate": ".replaying.validate",
    "when": ".watching.when",
    "write_diff": ".report.diff.write",
    "write_report": ".report.write",
}
"""Where each name is. Its module is loaded when it is first asked for: so pytest loads the plugin that lives below this
package without numpy, and who reads a trace needs no compiler."""

__all__ = [
    "Audit",
    "AuditError",
    "Cause",
    "CertificateError",
    "Comparison",
    "CompletedStep",
    "ConditionError",
    "Continuation",
    "Edits",
    "Finding",
    "InvalidTraceError",
    "Keep",
    "Limits",
    "NonFiniteError",
    "NonFiniteStepError",
    "NotRecordedError",
    "OpDifference",
    "OpDigests",
    "Parent",
    "PastStep",
    "Policy",
    "RebuildError",
    "Recovery",
    "RepeatedStepWarning",
    "Report",
    "RuleGroup",
    "Run",
    "StepTape",
    "StepView",
    "TapeNode",
    "TensorDifference",
    "Trace",
    "TraceFileError",
    "TraceRecorder",
    "TraceWriteError",
    "UnknownRuleError",
    "UnsealedTraceWarning",
    "Verdict",
    "Watchpoint",
    "Written",
    "assert_same",
    "at",
    "audit",
    "bisect_torch",
    "bisect_with_model",
    "check_certificate",
    "compare",
    "diff_with_model",
    "export",
    "lightning_callback",
    "open_recorder",
    "open_trace",
    "recompute",
    "record_jax",
    "record_torch",
    "recover",
    "replay",
    "resume_recorder",
    "spread",
    "state_after",
    "transformers_callback",
    "validate",
    "when",
    "write_diff",
    "write_report",
]


if not TYPE_CHECKING:  # checkers refuse by themselves what this refuses

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            import_module("..base.pytorch_names", __name__).refuse_names(__name__, __all__)(name)
        found = globals()[name] = getattr(import_module(_HOMES[name], __name__), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
