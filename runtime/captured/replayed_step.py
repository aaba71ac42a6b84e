"""A step that replays: recorded once for each signature of its batches, then run from fixed tables."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array, Arrays
from ...base.runs.completed_step import StepTape
from ...tape import AnyTensor, DomainError, ShapeError
from ...tape.graph.backward import DenseGrads
from ...tape.numerics.engine.kernel import Kernel
from ..ir.step_tape import Choose, Chosen
from ..lower.bind import Fault
from ..lower.compile import compile_graph, without
from ..optim.groups import Groups
from ..step.batch import BatchSignature, batch_arrays, batch_signature, row_count
from ..step.completed import LaunchRecorder, completed
from ..step.eager import eager_gradients
from ..step.evaluate import NonFiniteError
from ..step.loss_call import LossFn
from ..step.recipe import Recipe
from ..step.training_step import SeveralSteps, StateDict, TrainingStep
from .buffers import NOWHERE, Sources
from .kept import AT_ONCE, PLAN_BYTES, KeptPlans
from .plans import Executable, Kind, Plans, refused

if TYPE_CHECKING:
    from ..cuda.mirror import Mirror

OnShapeChange = Literal["recapture", "error"]

Device = Literal["cpu", "cuda"]

LAUNCH, LONG = 16, 1e-3
"""Replays of the first launch; and the seconds up to which the next launch has twice as many: between two launches
Python sees whether Ctrl-C came."""


class ReplayedStep(TrainingStep):
    """What a `CapturedStep` does: it records, binds, runs. What can be looked at and checked is added there."""

    def __init__(
        self,
        loss_fn: LossFn,
        params: Arrays,
        recipe: Recipe,
        *,
        model_state: Arrays | None = None,
        seed: int = 0,
        on_shape_change: OnShapeChange = "recapture",
        without_passes: Collection[str] = (),
        kernels: Mapping[Kernel, Kernel] | None = None,
        device: Device = "cpu",
        plan_bytes: int = PLAN_BYTES,
    ) -> None:
        super().__init__(loss_fn, params, recipe, model_state, seed)
        self.device: Device = device
        if device == "cuda":
            _require_counted(self.groups)
        self.mirror = mirror_of(self._arrays, device)
        self._on_shape_change: OnShapeChange = on_shape_change
        self._without, self._kernels = tuple(without_passes), dict(kernels or {})
        self._compile = partial(
            compile_graph, passes=without(without_passes), kernels=self._kernels, on_gpu=device == "cuda"
        )
        self._known = KeptPlans[Plans]("capture", plan_bytes)
        self._plans: Plans | None = None

    # ------------------------------------------------------------------ capture

    def record(self, batch: Any) -> Plans:
        """The plans for batches like this one; recorded at the first of its signature. Nothing runs."""
        key = batch_signature(batch)
        plans = self._known.get(key)
        if plans is None:
            if self._on_shape_change == "error" and (known := next(iter(self._known), None)) is not None:
                raise ShapeError(f"step: batch: expected {shown(known.signature)} as captured, got {shown(key)}")
            plans = Plans(self, batch, key, self._compile, self.mirror)
            self._known.put(key, plans)
        self._plans = plans
        return plans

    def is_worth(self, batch: Any) -> bool:
        """Whether a batch is to run as captured: of many shapes not each is worth a plan. On a GPU all are."""
        if self.mirror is not None or self._on_shape_change == "error" or len(self._known) < AT_ONCE:
            return True
        return self._known.is_worth(batch_signature(batch))

    def forget(self) -> None:
        """Drop every plan: the next batch is recorded anew."""
        self._known.clear()
        self._plans = None

    def bind(self, batch: Any) -> Plans:
        """Copy a batch into the input buffers of its plans; recorded at the first of its signature."""
        plans = self.record(batch)
        plans.feed(batch)
        return plans

    def require_same(self, when: str) -> None:
        """Raise CaptureError if ``loss_fn``, recorded once more, is not what the plans at hand have run."""
        if self._plans is not None and self._plans.looks.runs:
            self._plans.require_same(when)

    # ------------------------------------------------------------------ running

    def __call__(self, batch: Any) -> np.floating[Any]:
        """Train on one batch and return its loss, taken before the update.

        Raises NonFiniteError, and changes nothing, if the loss or a gradient is infinite or NaN; BoundsError for
        an index out of range; ShapeError for a batch of another shape where that was asked for; CaptureError if
        ``loss_fn`` has been found to do another thing than when it was captured.
        """
        loss: Any = self._run("step", batch).loss[()]
        return loss  # type: ignore[no-any-return]

    def replay(self, n: int = 1) -> npt.NDArray[np.floating[Any]]:
        """Train ``n`` times on the batch that is bound; the losses.

        Raises DomainError if no batch has been bound yet, NonFiniteError as a single step does.
        """
        losses = [np.empty(0, self.bound_plans("replay").step.loss.dtype)]
        left, launch = n, LAUNCH
        while left > 0:
            began, count = perf_counter(), min(launch, left)
            losses.append(self._losses(self._standing(self.bound_plans("replay"), count), NOWHERE, count))
            left -= count
            launch *= 2 if perf_counter() - began < LONG else 1
        return np.concatenate(losses)

    def steps(self, batches: Iterable[Any]) -> npt.NDArray[np.floating[Any]]:
        """Train on several batches of one signature in one launch, all of them bound at once; the losses.

        To the bit what single steps give. Raises as a single step does; the steps before the failing one stay.
        """
        every = list(batches)
        if not every:
            return np.empty(0)
        plans = self._standing(self.bind(every[0]), len(every))
        sources = plans.sources(every)
        if sources.steps < len(every):
            sources = plans.of_arrays([_converted(plans, i, batch) for i, batch in enumerate(every)])
        return self._losses(plans, sources, len(every))

    def several(
        self, batches: Sequence[Any], number: int, recorder: LaunchRecorder | None = None
    ) -> SeveralSteps | None:
        """Train on the first of several steps' batches in one launch: those that the plan at hand takes as they are.

        As many as come before the next look at the loss function. None where a step has to run alone: on a GPU, on a
        batch of another shape, to be looked at, to be recorded alone. ``number`` is that of the first.
        """
        plans = self._plans
        if plans is None or self.mirror is not None:
            return None
        sources = plans.sources(batches)
        n, behind = plans.looks.ahead(sources.steps), None
        if recorder is not None and n > 1:
            hyper = self.groups.hyperparameters_of(range(number + 1, number + n + 1))
            behind = recorder.rows(completed(self, number, plans.bound), hyper, plans.step.numbers)
            n = 0 if behind is None else behind.steps
        if n < 2 or not plans.looks.count(n):
            return None
        rows = None if behind is None else behind.rows
        done, fault = plans.step.several(sources.table, n, row_count(plans.bound), rows)
        if recorder is not None and len(done.losses):
            recorder.recorded(completed(self, number + len(done.losses) - 1, plans.bound), behind)
        return done if fault is None else done._replace(error=self._error(plans.step, fault, plans.bound))

    def grads(self, batch: Any) -> DenseGrads[AnyTensor]:
        """The gradient of every value that depends on a parameter, by name or id; no update.

        Views that are valid until the next call. Infinite and NaN gradients are returned as they are, to be looked
        at. Raises BoundsError for an index out of range.
        """
        self._run("dense", batch)
        return self.bound_plans("grads").dense_gradients

    def gradients(self, batch: Any) -> dict[str, Array]:
        """The gradients of the parameters alone, by name; no update and no check, as for `grads`.

        Views that are valid until the next call.
        """
        return self._run("gradients", batch).grads

    def tape(self, batch: Any) -> StepTape:
        """Every value of a step on this batch and its gradient, in the order of execution. Trains nothing.

        By a plan of its own that keeps them all. Views that are valid until the next call, but of leaves copies. Raises
        as `grads` does.
        """
        self._run("tape", batch)
        return self.bound_plans("tape").step_tape

    def chosen(self, batch: Any, choose: Choose) -> Chosen:
        """Some values and gradients of a step on this batch, by a plan of their own. Trains nothing.

        Views that are valid until the next step or call. Raises as `grads` does.
        """
        self._run(choose, batch)
        return self.bound_plans("chosen").chosen(choose)

    @property
    def loss(self) -> Array:
        """The loss of the last step: a view of the plan's own output."""
        return self.bound_plans("loss").step.loss

    @property
    def consumed(self) -> dict[str, Array]:
        """The gradients as the rule consumed them in the last step: views that are valid until the next call."""
        return self.bound_plans("consumed").step.grads

    @property
    def metrics(self) -> dict[str, float]:
        """What the loss function gave to be shown in the last step: the means over its micro-batches."""
        return self.bound_plans("metrics").step.metrics

    @property
    def norm(self) -> float | None:
        """The norm of the gradients of the last step before it was clipped; None without ``clip_norm``."""
        clip = self.bound_plans("norm").step.clip
        return None if clip is None else float(clip[0])

    @property
    def scale(self) -> float | None:
        """What the gradients of the last step were multiplied by to clip their norm; None without ``clip_norm``."""
        clip = self.bound_plans("scale").step.clip
        return None if clip is None else float(clip[1])

    def _run(self, kind: Kind | Choose, batch: Any) -> Executable:
        """Run one of the plans on a batch: the plan at hand if the batch fits it, else the one of its signature."""
        plans = self._plans
        flat = None if plans is None else plans.flat(batch)
        if plans is not None and flat is not None and plans.looks.count():
            executable = plans.ready.get(kind) or plans.executable(kind)
            try:
                if executable.bound.run_fed(plans.feeds, flat):
                    return executable
            except Fault as fault:
                raise self._error(executable, fault, batch) from None
        plans = self._standing(self.bind(batch))
        executable = plans.executable(kind)
        try:
            executable.bound.run()
        except Fault as fault:
            raise self._error(executable, fault, batch) from None
        return executable

    def _standing(self, plans: Plans, runs: int = 1) -> Plans:
        """The plans, about to run so often, or others in their place where the arrays that they read are others now."""
        while not plans.looks.count(runs):
            batch = plans.bound
            self._known.drop(plans.signature)
            plans = self.bind(batch)
        return plans

    def _losses(self, plans: Plans, sources: Sources, n: int) -> npt.NDArray[np.floating[Any]]:
        (losses,), fault = plans.step.run_many(sources.table, n, [plans.step.loss])
        if fault is not None:
            raise self._error(plans.step, fault, plans.bound)
        return losses

    def _error(self, executable: Executable, fault: Fault, batch: Any) -> Exception:
        """What went wrong, in the words of the eager step, which meets the same bits."""
        if fault.op.refusal or fault.inside is not None:
            return refused(executable.bound, fault, executable.tape)
        try:
            eager_gradients(self.loss_fn, self.params, batch, self.recipe, self.point)
        except NonFiniteError as error:
            return error
        return NonFiniteError("the loss or a gradient is not finite in the captured step, but is in the eager one")

    def bound_plans(self, what: str) -> Plans:
        """The plans whose batch is bound. Raises DomainError if there are none yet."""
        if self._plans is None:
            raise DomainError(f"{what}: expected a batch to be bound, got none; call step(batch) first")
        return self._plans


def _require_counted(groups: Groups) -> None:
    """Raise DomainError for a rate that is set between steps: a GPU would not see it."""
    for schedule in (group.rule.schedule for group in groups.groups):
        if schedule is not None and schedule.is_set:
            raise DomainError(
                f"device: expected rates that follow the count of steps on 'cuda', got {schedule!r}, which is set "
                "between steps; use device='cpu'"
            )


def mirror_of(arrays: StateDict, device: str, number: int = 0) -> "Mirror | None":
    """The mirror of what is trained on a device of this machine; None for the CPU. Raises DomainError, CudaError."""
    if device not in get_args(Device):
        raise DomainError(f"device: expected 'cpu' or 'cuda', got {device!r}")
    if device == "cpu":
        return None
    from ..cuda.driver import gpu  # most programs have no GPU to ask for
    from ..cuda.mirror import Mirror

    mirror = Mirror(gpu(number))
    mirror.train(array for part in arrays.values() for array in part.values())
    return mirror


def _converted(plans: Plans, i: int, batch: Any) -> list[Array]:
    """The arrays of one of several batches as the plans take them. Raises ShapeError for one of another signature."""
    signature = batch_signature(batch)
    if signature != plans.signature:
        raise ShapeError(f"steps: batch {i}: expected {shown(plans.signature)}, got {shown(signature)}")
    return [np.array(a, b.dtype, order="C") for a, b in zip(batch_arrays(batch), plans.inputs, strict=True)]


def shown(key: BatchSignature) -> str:
    """A signature in words."""
    return ", ".join(f"{where} {dtype}{list(shape)}" for where, shape, dtype in key)
