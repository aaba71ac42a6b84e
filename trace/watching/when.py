"""Watchpoints over a finished run: its steps in turn, until a condition holds."""

from ...base.errors import DomainError
from ..progress import showing
from ..replaying.execution import Batches, LossFn
from ..replaying.recomputed import RunMode, require_mode
from ..replaying.reexecute import FailedError
from ..replaying.replay_state import Rules, by_name
from ..replaying.travel import RebuildError
from ..v2.read.reader import TraceLike, TraceReader, reading
from .bound_condition import BoundCondition
from .condition import Condition
from .watched_steps import WatchedSteps
from .watchpoint import Watchpoint


def when(
    trace: TraceLike,
    condition: str,
    loss_fn: LossFn | None = None,
    batches: Batches | None = None,
    *,
    first: int = 0,
    last: int = -1,
    mode: RunMode = "replay",
    rules: Rules = (),
    progress: bool = False,
) -> Watchpoint:
    """The first step of a recorded run at which a condition holds.

    It goes through the run once. If the trace records everything that the condition names, it is read; else the steps
    are recomputed, from the recorded gradients or with the model, and compared with the record.

    Args:
        trace: its path, or an open trace.
        condition: such as ``absmax(h) > 50 and loss < 1``; docs/debugging.md has the language. Figures are made
            by numpy in float64: they are for people to read.
        loss_fn: the function the run was trained with.
        batches: the batches of the run, from its beginning; iterated again when they end, epoch after epoch.
        first, last: the first and last step to examine; -1 is the last one.
        mode: how to recompute steps, as for `replay`.
        rules: classes of rules that are not built in, as for `replay`.
        progress: whether a bar is shown on a terminal.

    Raises:
        ConditionError: the text is not a condition, or names something that does not exist; the error says where.
        DomainError: the condition needs a loss function or batches that are not given; another mode; something among
            `rules` is no class of rules.
        RebuildError: a step cannot be recomputed, or differs from the record.
        NotRecordedError: the trace holds no states to start from: its record mode is "bare".
        IndexError: there is no such step.
        TraceFileError: the trace cannot be read.

    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from dgrr.runtime import SGD, Trainer
    >>> def loss_fn(p, x):
    ...     h = p["w"] * x
    ...     return h.sum()
    >>> with TemporaryDirectory() as folder:
    ...     run = Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.5), trace=f"{folder}/run")
    ...     _ = run.fit([np.array([1.0, 2.0])], steps=9)
    ...     found = when(f"{folder}/run", "min(h) < -10", loss_fn, [np.array([1.0, 2.0])])
    >>> found.step, found.node.op, found.figures
    (7, 'mul', {'min(h)': -12.0})
    """
    require_mode("trace.when", mode)
    by_name(rules)
    read = Condition(condition)
    with reading(trace) as opened:
        steps = range(opened[first].step, opened[last].step + 1)
        if not steps:
            raise DomainError(f"trace.when: argument 'last': expected a step from {steps.start} on, got {last}")
        bound = BoundCondition(read, opened, opened[steps.start])
        try:
            walk = WatchedSteps(opened, bound, loss_fn, batches, rules, mode)
            return _watched(opened, steps, bound, walk, progress=progress)
        except FailedError as failed:
            raise RebuildError(failed.finding, "trace.when") from failed.__cause__


def _watched(
    trace: TraceReader, steps: range, bound: BoundCondition, walk: WatchedSteps, *, progress: bool
) -> Watchpoint:
    """Go through the steps until the condition holds."""
    condition, untried, tried = bound.condition, 0, False
    walk.begin(steps.start)
    for view in showing(map(trace.__getitem__, steps), "when", len(steps), wanted=progress):
        figures = bound.of_step(view)
        # What figures rule out is not looked at, but for the first: a fault of the condition is found there.
        looked = not tried or all(
            clause.holds(figures) for clause in bound.cheap if figures.keys() >= {*clause.references}
        )
        was = False
        for found, node in walk.step(view, looked=looked):
            values = figures | found
            if not values.keys() >= {*condition.references}:
                continue
            was = tried = True
            if condition.holds(values):
                shown = condition.figures(values)
                return Watchpoint(trace.path, condition.text, view.step, node, shown, steps.start, view.step, untried)
        untried += looked and not was
    return Watchpoint(trace.path, condition.text, None, None, {}, steps.start, steps.stop - 1, untried)
