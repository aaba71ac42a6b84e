"""Time travel: the whole tape of a past step, rebuilt to the bit from the nearest keyframe at or before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ...base.arrays import Array
from ...base.errors import DgrrError, DomainError
from ...base.printed import facts, panel
from ...base.runs.keep import Mode
from ...base.runs.run import OnNonfinite
from ...base.system import FilePath
from ...runtime.optim.groups import Optimizer
from ...runtime.step.evaluate import Evaluation
from ...runtime.training.step_runner import StepMode
from ...screen.panels import folded
from ...tape import NUMERICS, AnyTensor, Tape
from ...tape.graph.backward import DenseGrads
from ...tape.values.tables import PlainTable, statistics
from ..v2.check.report import Finding
from ..v2.errors import NotRecordedError
from ..v2.format.constants import TensorRole
from ..v2.read.reader import TraceLike, TraceReader, reading
from ..v2.read.step_view import StepView
from ..v2.verdict import Verdict
from .continued import Continuation, Origin, continue_from
from .edited import UNEDITED, Edits
from .execution import Batches, LossFn
from .recomputed import Recomputed, RunMode, require_mode
from .reexecute import FailedError, Model
from .replay_state import Rules

_HEAD = ("id", "name", "op", "shape")
_STATISTICS = ("norm", "min", "max", "non-finite")
_COLUMNS = (*_HEAD, *(f"{what} {column}" for what in ("value", "gradient") for column in _STATISTICS))


class RebuildError(DgrrError):
    """A past step cannot be rebuilt, or is not the recorded one: `finding` has the verdict, the step and the tensor."""

    def __init__(self, finding: Finding, command: str = "trace.at") -> None:
        super().__init__(f"{command}: {finding}")
        self.finding = finding


@dataclass(frozen=True, eq=False, repr=False)
class PastStep:
    """A step of a recorded run as it was before its update; made by `at`.

    `passes` has one forward and backward pass for each micro-batch; `tape` and `grads` are those of the first.
    """

    path: str
    """Of the trace."""
    step: int
    keyframe: int
    """The step before which the state was recorded that this one was rebuilt from."""
    loss: np.floating[Any]
    """The mean over the micro-batches."""
    passes: Sequence[Evaluation]
    consumed: dict[str, Array]
    """The gradients by parameter as the optimizer consumed them: averaged over micro-batches, and clipped."""
    params: dict[str, Array]
    state: dict[str, Array]
    """Of the optimizer."""
    model_state: dict[str, Array]
    origin: Origin
    """The run that it is of, as another one needs it that goes on from here."""

    @property
    def tape(self) -> Tape[Any]:
        """Every node of the step, with its value; of several micro-batches the first."""
        return self.passes[0].tape

    @property
    def tapes(self) -> list[Tape[Any]]:
        """One for each micro-batch."""
        return [made.tape for made in self.passes]

    @property
    def grads(self) -> DenseGrads[AnyTensor]:
        """The gradient of every node of `tape`, as `backward_dense` gives it: neither averaged nor clipped."""
        return self.passes[0].dense

    def table(self, micro_batch: int = 0) -> PlainTable:
        """One row per node: id, name, op, shape, and the statistics of its value and of its gradient."""
        made = self.passes[micro_batch]
        rows = [
            {column: row[column] for column in _HEAD}
            | _figures("value", made.tape.value(row["id"]))
            | _figures("gradient", gradient)
            for row, gradient in zip(made.tape.summary(), made.dense, strict=True)
        ]
        return PlainTable(f"step {self.step}: values and gradients", _COLUMNS, rows)

    def continue_with(
        self,
        rule: Optimizer | None = None,
        *,
        steps: int,
        hyper: Mapping[str, float] | None = None,
        trace: FilePath | None = None,
        loss_fn: LossFn | None = None,
        batches: Batches | None = None,
        mode: StepMode = "replay",
        record: Mode = "grads",
        on_nonfinite: OnNonfinite = "stop",
        edits: Edits = UNEDITED,
    ) -> Continuation:
        """Train on from the state before this step, with another rule, loss function or batches.

        Anything you do not pass stays as in the run: the batches from this step on, accumulation, clipping and seed.
        With nothing changed, the steps are those of the run, to the bit. Random draws and schedules continue with the
        step number. A rule of the same law, such as one with another rate, keeps the optimizer's state; another law
        starts with a fresh one.

        Args:
            rule: the optimizer; None: the run's own, with all its groups and the hyperparameters of this step.
            steps: how many.
            hyper: new values for hyperparameters of the run's own rule, by their names in a step's `hyper`, such as
                `lr`, or `lr#1` of the second group.
            trace: a new path to record the steps to, where they count from 0. Header and an EVENT `continue` say which
                step of which trace they continue, and the notes are copied.
            loss_fn: None: that of the run, as it was given to `at`.
            batches: batches from this step on, iterated again when they end; None: those of the run.
            mode: how steps run, as for `Trainer`.
            record: what the trace keeps of each step, as for `Trainer`.
            on_nonfinite: as for `Trainer`.
            edits: new values of parameters, states, gradients and nodes of this step.

        Raises:
            DomainError: no step; too few batches; the run's own rule is not known; no such hyperparameter, or
                a rule besides.
            TraceWriteError: the trace cannot be written, or already exists.
            NonFiniteError: a loss or gradient is not finite, before it is applied or recorded.
            DgrrError: the rule, the loss function or a batch does not fit.

        >>> from tempfile import TemporaryDirectory
        >>> from dgrr.runtime import SGD, Trainer
        >>> def loss_fn(p, x):
        ...     return (p["w"] * x).sum()
        >>> batches = [np.array([1.0, 2.0])]
        >>> with TemporaryDirectory() as folder:
        ...     run = Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.5), trace=f"{folder}/run", record="digest")
        ...     _ = run.fit(batches, steps=4)
        ...     past = at(f"{folder}/run", 2, loss_fn, batches)
        >>> past.continue_with(steps=2).params["w"], run.params["w"]
        (array([-1., -3.]), array([-1., -3.]))
        >>> past.continue_with(SGD(0.25), steps=2).params["w"]
        array([-0.5, -2. ])
        >>> past.continue_with(hyper={"lr": 0.25}, steps=2).params["w"]
        array([-0.5, -2. ])
        >>> past.continue_with(steps=2, edits=Edits(values={"w": np.zeros(2)})).params["w"]
        array([-1., -2.])
        """
        before = {"params": self.params, "state": self.state, "model_state": self.model_state}
        more: Any = {"hyper": hyper, "loss_fn": loss_fn, "batches": batches, "mode": mode, "record": record}
        more |= {"on_nonfinite": on_nonfinite, "edits": edits, "tapes": self.tapes}
        return continue_from(self.origin, before, rule, steps=steps, trace=trace, **more)

    def _repr_html_(self) -> str:
        """Its loss, and every value and gradient of its first micro-batch, in a notebook."""
        found = {"loss": self.loss, "keyframe": self.keyframe, "micro-batches": len(self.passes)}
        return panel(f"step {self.step} of {self.path}", facts(found), folded("nodes", self.table().to_html()))

    def __repr__(self) -> str:
        together = f", {len(self.passes)} micro-batches" if len(self.passes) > 1 else ""
        return (
            f"<step {self.step} of {self.path} before its update: loss {self.loss}, {len(self.tape)} nodes{together}; "
            "look at .table(), .tape, .grads, .params, .state, .model_state>"
        )


def _figures(what: str, tensor: AnyTensor | None) -> dict[str, Any]:
    found = {} if tensor is None else statistics(tensor.numpy())
    return {f"{what} {column}": found.get(column) for column in _STATISTICS}


def at(
    trace: TraceLike,
    step: int,
    loss_fn: LossFn | None = None,
    batches: Batches | None = None,
    *,
    mode: RunMode = "replay",
    rules: Rules = (),
) -> PastStep:
    """The whole tape of a past step, with every value and every gradient, to the bit.

    It starts from the nearest keyframe at or before the step and recomputes the steps between, or applies the recorded
    gradients if there are any. Earlier batches are skipped; nothing is computed from them. Everything rebuilt is
    compared with the record: batches, losses, gradients and states.

    Args:
        trace: its path, or an open trace.
        step: its number; -1 is the last.
        loss_fn: the function the run was trained with.
        batches: the batches of the run, from its beginning; iterated again when they end, epoch after epoch.
        mode: how to recompute the steps between, as for `replay`; the step itself is computed op by op.
        rules: classes of rules that are not built in, as for `replay`.

    Raises:
        RebuildError: the step cannot be recomputed, or something rebuilt differs from the record.
        NotRecordedError: the trace holds no states to start from: its record mode is "bare".
        DomainError: no loss function or no batches are given; another mode; something among `rules` is no class of
            rules.
        IndexError: there is no such step.
        TraceFileError: the trace cannot be read.

    >>> from tempfile import TemporaryDirectory
    >>> from dgrr.runtime import SGD, Trainer
    >>> def loss_fn(p, x):
    ...     return (p["w"] * x).sum()
    >>> with TemporaryDirectory() as folder:
    ...     run = Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.5), trace=f"{folder}/run", record="digest")
    ...     _ = run.fit([np.array([1.0, 2.0])], steps=3)
    ...     past = at(f"{folder}/run", 2, loss_fn, [np.array([1.0, 2.0])])
    >>> past.params["w"], past.loss, past.grads["w"].numpy()
    (array([ 0., -1.]), np.float64(-2.0), array([1., 2.]))
    """
    if loss_fn is None or batches is None:
        missing = "loss_fn" if loss_fn is None else "batches"
        raise DomainError(
            f"trace.at: argument {missing!r}: a trace holds no tape, so the step is recomputed: pass the loss "
            "function of the run, and its batches from the beginning"
        )
    require_mode("trace.at", mode)
    with reading(trace) as opened:
        view = opened[step]
        require_state("trace.at", opened)
        try:
            return _rebuilt(opened, view, loss_fn, batches, rules, mode)
        except FailedError as failed:
            raise RebuildError(failed.finding) from failed.__cause__


def require_state(command: str, trace: TraceReader) -> None:
    """Raise NotRecordedError for a trace that holds no states."""
    if not trace.header.mode.has_keyframes:
        raise NotRecordedError(
            f"{command}: a trace of record mode 'bare' holds no states to start from; record the run with mode 'digest'"
        )


def require_numerics(trace: TraceReader, step: int) -> None:
    """Raise FailedError, about a step, for a trace whose steps this library computes to other bits."""
    if trace.header.numerics != NUMERICS:
        text = f"recorded under numerics version {trace.header.numerics}, this library has {NUMERICS}"
        raise FailedError(Verdict.NUMERICS, f"{text}: no step can be recomputed", step)


def _rebuilt(
    trace: TraceReader, view: StepView, loss_fn: LossFn, batches: Batches, rules: Rules, mode: RunMode
) -> PastStep:
    require_numerics(trace, view.step)
    keyframe, records = trace.last_keyframe(view.step), trace.header.mode.has_gradients
    text = f"the state rebuilt from the keyframe before step {keyframe} is another one"
    model = Model(trace, loss_fn, batches)
    way = {"applied" if records else "executed": view.step - keyframe}
    run = Recomputed(trace, model, rules, lambda past, name: text, mode=mode, **way)
    model.pass_over(view.step if records else keyframe)
    run.begin(keyframe)
    run.through(map(trace.__getitem__, range(keyframe, view.step)), by_model=not records)
    origin = Origin(trace, view, loss_fn, model.ahead(), rules)
    done, loss = run.execute(view, model.take(view)), cast(np.floating[Any], view.loss)
    roles = (TensorRole.PARAM, TensorRole.STATE, TensorRole.BUFFER)
    params, rest, buffers = (run.state.of_role(role) for role in roles)
    passes = done.computed.passes
    return PastStep(trace.path, view.step, keyframe, loss, passes, done.grads, params, rest, buffers, origin)
