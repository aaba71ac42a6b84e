"""Replay: every update of a trace recomputed from its gradients, and every gradient from the model."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from ...base.errors import DomainError
from ...base.system import FilePath
from ...tape import NUMERICS
from ..progress import showing
from ..v2.check.difference import first_difference
from ..v2.check.report import Finding, Report
from ..v2.errors import InvalidTraceError, NotRecordedError
from ..v2.format.constants import VERSION, RecordMode
from ..v2.read.reader import TraceReader, open_reader
from ..v2.read.step_view import StepView
from ..v2.verdict import Verdict
from .execution import Batches, LossFn
from .expected import require_expected, require_root
from .recomputed import Recomputed, RunMode, require_mode
from .reexecute import FailedError, Model
from .replay_state import Rules, by_name
from .validate import validate

_READABLE = (Verdict.OK, Verdict.UNSEALED, Verdict.TORN_TAIL)
_BARE = "a trace of record mode 'bare' holds no states to start from: compare it, or record mode 'digest'"
_CHECKS = (Verdict.UPDATE, Verdict.GRADIENT, Verdict.DATA)


def replay(
    path: FilePath,
    *,
    loss_fn: LossFn | None = None,
    batches: Batches | None = None,
    ulp_tol: int = 0,
    mode: RunMode = "replay",
    rules: Rules = (),
    seed: int | None = None,
    numerics: int | None = None,
    expect_root: str | None = None,
    steps: int | None = None,
    expect_start: str | None = None,
    expect_rules: Sequence[str] = (),
    progress: bool = False,
) -> Report:
    """Validate a trace, then recompute it; neither the content of the file nor the model raises.

    From KEYFRAME 0 every param and optimizer state of every step is recomputed from the recorded gradients by
    the same kernels; where a state was digested the digests must be equal to the bit. With the model and its
    batches (anything `Trainer.fit` takes, from its beginning), every batch, loss and gradient is checked too.

    Args:
        path: the trace.
        loss_fn: the function the run was trained with.
        batches: the batches of the run; iterated again when they end, epoch after epoch.
        ulp_tol: elementwise tolerance where values are recorded; digests have none.
        mode: how to compute steps, with the same bits: "replay" captures them if there are many, as `Trainer` does, and
            goes op by op from the first one that differs; "eager" goes op by op, which a ``loss_fn`` that keeps its own
            state needs; only a run in mode "eager" may have one.
        rules: classes of the run's rules that are not built in, as `ops_rule` makes them.
        seed: the known seed of the run. Without it, the model draws random numbers from the seed that the trace names.
            A different one in the trace is a finding, `data`.
        numerics: the known numerics version of the run; a different one in the trace is a finding, `numerics`.
        expect_root: the known last digest of the trace, as for `validate`; if it differs, nothing is recomputed.
        steps, expect_start, expect_rules: the known number of steps, beginning and rules of the run, as for `validate`;
            if one differs, nothing is recomputed.
        progress: whether a bar is shown on a terminal.

    Raises:
        DomainError: another mode; something among `rules` is no class of rules; one of `loss_fn` and `batches` without
            the other; a negative tolerance; no SHA-256 digest as root, or another expectation that is none; or a
            tolerance for a trace that records no state after its beginning.
    """
    if (loss_fn is None) != (batches is None):
        raise DomainError("replay: expected both loss_fn and batches or neither; re-execution needs both")
    require_mode("replay", mode)
    if ulp_tol < 0:
        raise DomainError(f"replay: ulp_tol: expected at least 0, got {ulp_tol}")
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

    def begun(trace: TraceReader) -> _Replay:
        model = None if loss_fn is None or batches is None else Model(trace, loss_fn, batches)
        return _Replay(trace, report, model, rules, mode, ulp_tol)

    rest, report.findings = report.findings, []
    _recompute(report, begun, progress=progress)
    report.findings += rest
    return report


def _recompute(report: Report, begun: "Callable[[TraceReader], _Replay]", *, progress: bool) -> None:
    """Recompute a trace that was validated; what is found goes into its report."""
    try:
        with open_reader(report.path, mode="tolerate_tail") as trace:
            if not trace.header.mode.has_keyframes:
                report.findings.append(Finding(Verdict.UNPROVEN, _BARE))
            elif trace.has_keyframe(0):  # else it was cut before anything was recorded
                begun(trace).run(progress=progress)
    except InvalidTraceError as error:
        report.findings.append(Finding(error.verdict, error.text))
    except MemoryError:
        report.findings.append(Finding(Verdict.UNPROVEN, "there is not enough memory to recompute the trace"))


class _Replay:
    """One replay: the state that is carried along, and what the report can say at its end."""

    def __init__(
        self, trace: TraceReader, report: Report, model: Model | None, rules: Rules, mode: RunMode, ulp_tol: int
    ) -> None:
        self._trace, self._report, self._model, self._ulp_tol = trace, report, model, ulp_tol
        if ulp_tol and trace.header.mode is not RecordMode.FULL and not trace.last_keyframe(len(trace)):
            raise DomainError(
                "replay: ulp_tol: this trace records digests of its states but no values after the "
                "beginning, and digests have no tolerance; use 0, or record with record='full'"
            )
        steps = {"applied" if model is None else "executed": len(trace)}
        self._run = Recomputed(trace, model, rules, self._other, mode=mode, ulp_tol=ulp_tol, **steps)

    def run(self, *, progress: bool) -> None:
        """Replay all steps; say in the report what is proven, what failed, and what could not be checked."""
        report, trace, run = self._report, self._trace, self._run
        try:
            run.begin(0)
            views = trace if run.updates or self._model is not None else ()
            shown = showing(self._noted(views), "replay", len(trace), wanted=progress)
            run.through(shown, by_model=self._model is not None)
        except FailedError as failed:
            report.findings.append(failed.finding)
            if failed.finding.verdict in _CHECKS:
                setattr(report, failed.finding.verdict.value, "failed")
            return
        report.findings += self._unproven()
        report.update = "proven" if run.checked == len(trace) and run.updates else "not proven"
        if self._model is not None:
            report.data = "proven"
            report.notes += self._model.left_over(len(trace))
            report.gradient = "proven" if run.executes else "not proven"

    def _noted(self, views: Iterable[StepView]) -> Iterator[StepView]:
        for view in views:
            if view.step == 0 and view.order == "tree":
                self._report.notes.append(f"the {view.micro_batches} micro-batches of a step were added in a tree")
            yield view

    def _other(self, view: StepView, name: str) -> str:
        """What to say of a state that is not the recorded one."""
        step, checked = view.step, self._run.checked
        since = "" if checked == step else f" since step {checked}"
        rules = ", ".join(group.rule for group in self._trace.schema.groups)
        text = f"the recorded state is not what {rules} makes of the recorded gradients{since}"
        try:
            recorded = self._trace.tensor(name, step=step, what="after")
        except NotRecordedError:
            return f"{text}; element and values: not recorded"
        return f"{text}; {first_difference(recorded, self._run.state.values[name])}"

    def _unproven(self) -> list[Finding]:
        steps, checked = len(self._trace), self._run.checked
        if self._model is not None and not self._run.executes:
            text = f"recorded under numerics version {self._trace.header.numerics}, this library has {NUMERICS}"
            return [Finding(Verdict.NUMERICS, f"{text}: gradients were not re-executed")]
        if not self._run.updates:
            text = "the trace records digests only: pass the model and its batches to prove the updates"
            return [Finding(Verdict.UNPROVEN, text)]
        if checked < steps:
            text = f"no state is recorded after steps {checked} to {steps - 1}: updates not proven"
            return [Finding(Verdict.UNPROVEN, text)]
        return []
