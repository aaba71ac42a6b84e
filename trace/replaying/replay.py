"""Replay: every update of a trace recomputed from its gradients, and every gradient from the model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from ...base.arrays import Array
from ...base.system import FilePath
from ...tape import NUMERICS
from ..progress import showing
from ..v2.check.difference import first_difference
from ..v2.check.report import Finding, Report
from ..v2.errors import InvalidTraceError, NotRecordedError
from ..v2.format.constants import VERSION, RecordMode
from ..v2.format.digest import Batch
from ..v2.read.reader import StepView, Trace, open_trace
from ..v2.verdict import Verdict
from .execution import Batches, LossFn
from .expected import require_expected
from .expected_root import require_root
from .reexecute import FailedError, Made, Model, advance, compare_corrections
from .replay_state import ReplayState, Rules, by_name
from .rerun import Rerun
from .validate import validate

_READABLE = (Verdict.OK, Verdict.UNSEALED, Verdict.TORN_TAIL)
_BARE = "a trace of record mode 'bare' holds no state to begin with: compare it, or record mode 'digest'"
_CHECKS = (Verdict.UPDATE, Verdict.GRADIENT, Verdict.DATA)


def replay(
    path: FilePath,
    *,
    loss_fn: LossFn | None = None,
    batches: Batches | None = None,
    ulp_tol: int = 0,
    mode: Literal["replay", "eager"] = "replay",
    rules: Rules = (),
    seed: int | None = None,
    numerics: int | None = None,
    expect_root: str | None = None,
    steps: int | None = None,
    expect_start: str | None = None,
    expect_rules: Sequence[str] = (),
    progress: bool = False,
) -> Report:
    """Validate a trace, then recompute it; never raises for what is in the file, nor for what the model does.

    From KEYFRAME 0 every param and optimizer state of every step is recomputed from the recorded gradients by
    the same kernels; where a state was digested the digests must be equal to the bit. With the model and its
    batches (anything `Trainer.fit` takes, from its beginning), every batch, loss and gradient is checked too.

    Args:
        path: the trace.
        loss_fn: the function the run was trained with.
        batches: the batches of the run; iterated again when they end, epoch after epoch.
        ulp_tol: elementwise tolerance where values are recorded; digests have none.
        mode: how the model is executed, with the same bits: "replay" as captured steps, as `Trainer` does, and op by op
            from the first one that is not the recorded one; "eager" op by op, which a ``loss_fn`` with a state of its
            own needs, as only runs of that mode may have.
        rules: the classes of rules that the run was trained by and that are not built in, as `ops_rule` makes them.
        seed: the seed that the run is known to have; without it the one that the trace names is believed, and
            random numbers of the model are drawn from it. Another in the trace is a finding, `data`.
        numerics: the numerics version that the run is known to have; another in the trace is a finding, `numerics`.
        expect_root: the last digest that the trace is known to have, as for `validate`; nothing is recomputed of a
            trace that has another.
        steps, expect_start, expect_rules: how many steps, which beginning and which rules the run is known to have, as
            for `validate`; likewise.
        progress: whether a bar is shown on a terminal.

    Raises:
        ValueError: another mode; something among `rules` is no class of rules; one of `loss_fn` and `batches` without
            the other; a negative tolerance; no SHA-256 digest as root, or another expectation that is none; or a
            tolerance for a trace that records no state after its beginning.
    """
    if (loss_fn is None) != (batches is None):
        raise ValueError("replay: expected both loss_fn and batches or neither; re-execution needs both")
    if mode not in ("replay", "eager"):
        raise ValueError(f"replay: mode: expected 'replay' or 'eager', got {mode!r}")
    if ulp_tol < 0:
        raise ValueError(f"replay: ulp_tol: expected at least 0, got {ulp_tol}")
    by_name(rules)
    expected_root = None if expect_root is None else require_root("replay", expect_root)
    expected = require_expected("replay", steps, expect_start, expect_rules)
    report = validate(path, expect_root=expected_root)
    if report.verdict not in _READABLE:
        return report
    unexpected = replace(expected, seed=seed, numerics=numerics).findings(report)
    if unexpected or report.version != VERSION:
        report.findings = unexpected + report.findings
        return report
    rest, report.findings = report.findings, []
    try:
        with open_trace(report.path, mode="tolerate_tail") as trace:
            if not trace.header.mode.has_keyframes:
                report.findings += [Finding(Verdict.UNPROVEN, _BARE), *rest]
                return report
            if trace.has_keyframe(0):  # else it was cut before anything was recorded
                model = None if loss_fn is None or batches is None else Model(trace, loss_fn, batches)
                captured = None if mode == "eager" else loss_fn
                _Replay(trace, report, ulp_tol, model, rules, captured).run(progress=progress)
    except InvalidTraceError as error:
        report.findings.append(Finding(error.verdict, error.text))
    except MemoryError:
        report.findings.append(Finding(Verdict.UNPROVEN, "there is not enough memory to recompute the trace"))
    report.findings += rest
    return report


class _Replay:
    """One replay: the state that is carried along, and what the report can say at its end."""

    def __init__(
        self,
        trace: Trace,
        report: Report,
        ulp_tol: int,
        model: Model | None,
        rules: Rules,
        captured: LossFn | None,
    ) -> None:
        self.trace = trace
        self.report = report
        self.ulp_tol = ulp_tol
        self.model = model
        self.recorded = trace.header.mode.has_gradients
        self.executes = model is not None and trace.header.numerics == NUMERICS
        self.updates = self.recorded or self.executes
        self.checked = 0  # steps whose state is proven
        self.names = [t.name for t in trace.schema.tensors]
        if ulp_tol and trace.header.mode is not RecordMode.FULL and not trace.last_keyframe(len(trace)):
            raise ValueError(
                "replay: ulp_tol: this trace records digests of its states but no values after the "
                "beginning, and digests have no tolerance; use 0, or record with record='full'"
            )
        self.state = ReplayState(trace, trace.keyframe(0), rules)
        self.rerun: Rerun | None = None
        if captured is not None and self.executes and not ulp_tol:
            self.rerun = Rerun(trace, captured, self.state, rules)

    def run(self, *, progress: bool) -> None:
        """Replay all steps; say in the report what is proven, what failed, and what could not be checked."""
        report = self.report
        try:
            for view in showing(self.trace, "replay", len(self.trace), wanted=progress):
                if view.step == 0 and view.order == "tree":
                    report.notes.append(f"the {view.micro_batches} micro-batches of a step were added in a tree")
                self._step(view)
            self._final()
        except FailedError as failed:
            report.findings.append(failed.finding)
            if failed.finding.verdict in _CHECKS:
                setattr(report, failed.finding.verdict.value, "failed")
            return
        report.findings += self._unproven()
        report.update = "proven" if self.checked == len(self.trace) and self.updates else "not proven"
        if self.model is not None:
            report.data = "proven"
            report.notes += self.model.left_over(len(self.trace))
            report.gradient = "proven" if self.executes else "not proven"

    def _step(self, view: StepView) -> None:
        if self.model is None:
            self._op_by_op(view, None)
            return
        batch = self.model.take(view)
        if self.rerun is None:
            self._op_by_op(view, batch)
        elif self.rerun.agrees(view, batch):
            self.model.agreed = True
            self.checked = self.checked if view.root is None else view.step + 1
        else:
            again, self.rerun = self.rerun.back(), None
            for done in again:
                self._op_by_op(*done)

    def _op_by_op(self, view: StepView, batch: tuple[Batch, ...] | None) -> None:
        made: Made = ({}, {})
        if self.recorded:
            made = (view.gradients(), view.buffers())
        if self.model is not None and batch is not None:
            self.model.require_recorded(view, batch)
            if self.executes:
                executed = self.model.execute(view, self.state, batch, made, self.ulp_tol)
                made = made if self.recorded else (executed.grads, executed.buffers)
        if self.updates:
            self._update(view, *made)

    def _update(self, view: StepView, grads: Mapping[str, Array], buffers: Mapping[str, Array]) -> None:
        advance(self.state, view, grads, buffers)
        if self.ulp_tol:
            self._compare_values(view)
            return
        compare_corrections(self.state, view)
        if view.root is not None:
            self._compare_digests(view.step, view.record.state_in_order(self.trace.layout))

    def _compare_digests(self, step: int, recorded: Sequence[bytes]) -> None:
        name = self.state.first_other(recorded)
        if name is not None:
            raise FailedError(Verdict.UPDATE, self._update_text(step, name), step, name)
        self.checked = step + 1

    def _update_text(self, step: int, name: str) -> str:
        since = "" if self.checked == step else f" since step {self.checked}"
        text = f"the recorded state is not what {self._rules()} makes of the recorded gradients{since}"
        try:
            recorded = self.trace.tensor(name, step=step, what="after")
        except NotRecordedError:
            return f"{text}; element and values: not recorded"
        return f"{text}; {first_difference(recorded, self.state.values[name])}"

    def _rules(self) -> str:
        return ", ".join(group.rule for group in self.trace.schema.groups)

    def _compare_values(self, view: StepView) -> None:
        """Compare where the whole state is recorded, and go on from what is recorded."""
        step = view.step
        recorded = self.trace.keyframe(step + 1) if self.trace.has_keyframe(step + 1) else view.after()
        if len(recorded) < len(self.names):
            return
        for name in self.names:
            difference = first_difference(recorded[name], self.state.values[name], self.ulp_tol)
            if difference is not None:
                text = f"more than {self.ulp_tol} ULP from what {self._rules()} makes; {difference}"
                raise FailedError(Verdict.UPDATE, text, step, name)
        self.state.values.update(recorded)
        self.checked = step + 1

    def _final(self) -> None:
        """Hold the state after the last step against the SEAL."""
        seal, last = self.trace.seal, len(self.trace) - 1
        if seal is not None and seal.final and self.updates and last >= 0 and not self.ulp_tol:
            self._compare_digests(last, seal.final[:-1])

    def _unproven(self) -> list[Finding]:
        steps = len(self.trace)
        if self.model is not None and not self.executes:
            text = f"recorded under numerics version {self.trace.header.numerics}, this library has {NUMERICS}"
            return [Finding(Verdict.NUMERICS, f"{text}: gradients were not re-executed")]
        if not self.updates:
            text = "the trace records digests only: pass the model and its batches to prove the updates"
            return [Finding(Verdict.UNPROVEN, text)]
        if self.checked < steps:
            text = f"no state is recorded after steps {self.checked} to {steps - 1}: updates not proven"
            return [Finding(Verdict.UNPROVEN, text)]
        return []
