"""Three ways to run a training step, with the same bits: op by op, captured each time, captured and replayed."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from ...base.arrays import Arrays
from ...base.completed_step import StepTape
from ...tape import DomainError
from ..captured.captured_step import CapturedStep
from ..captured.kept import PLAN_BYTES
from ..captured.replayed_step import Device, OnShapeChange
from ..ir.step_tape import eager_tape
from ..ranks.exchange import Exchange
from ..ranks.ranked_step import RankedStep
from ..step.eager import EagerStep
from ..step.loss_call import LossFn
from ..step.recipe import Recipe
from ..step.training_step import SeveralSteps, TrainingStep

StepMode = Literal["eager", "capture", "replay"]


class StepRunner:
    """Runs each step in one mode, always on the same arrays of parameters and state.

    Args:
        ranks: the other ranks, with which each step is done together.
        mode: "eager" runs op by op; "capture" records, compiles and runs each step once; "replay" runs ``warmup``
            steps op by op, then captures once per signature of the batch, and replays.
        on_shape_change: of captured steps that are kept: capture a batch of another signature too, or refuse it.
        device: where captured steps run: "cpu" or "cuda".
        plan_bytes: how much memory the plans of captured steps may take; what is not worth one runs op by op.

    Raises:
        DomainError: an argument outside these.
    """

    def __init__(
        self,
        loss_fn: LossFn,
        params: Arrays,
        recipe: Recipe,
        mode: StepMode,
        warmup: int,
        on_shape_change: OnShapeChange,
        model_state: Arrays | None = None,
        seed: int = 0,
        ranks: Exchange | None = None,
        device: Device = "cpu",
        plan_bytes: int = PLAN_BYTES,
    ) -> None:
        _require("mode", mode, StepMode)
        _require("device", device, Device)
        _require("on_shape_change", on_shape_change, OnShapeChange)
        if warmup != int(warmup) or warmup < 0:
            raise DomainError(f"Trainer: argument 'warmup': expected a whole number of at least 0, got {warmup!r}")
        if device != "cpu" and (mode != "replay" or warmup):
            given = f"mode={mode!r}" if mode != "replay" else f"warmup={warmup}"
            raise DomainError(
                f"Trainer: argument 'device': expected mode='replay' and warmup=0 with {device!r}, where steps run "
                f"only as they are captured, got {given}"
            )
        if device != "cpu" and ranks is not None:
            raise DomainError(f"Trainer: argument 'ranks': expected None with the device {device!r}, got {ranks!r}")
        self.mode, self._warmup = mode, int(warmup)
        state: dict[str, Any] = {"model_state": model_state, "seed": seed, "on_shape_change": on_shape_change}
        state["plan_bytes"] = plan_bytes
        self._captured: TrainingStep
        self._eager: TrainingStep
        self._tape: Callable[[Any], StepTape]
        if ranks is None:
            self._captured = captured = CapturedStep(loss_fn, params, recipe, device=device, **state)
            self._eager = EagerStep.beside(captured)
            self._tape = partial(eager_tape, self._eager) if mode == "eager" else captured.tape
        else:
            self._captured = ranked = RankedStep(loss_fn, params, recipe, ranks, **state)
            self._eager, self._tape = ranked.op_by_op(), _no_tape
        self.step: TrainingStep = self._captured
        """Parameters, state and recipe; after a step, its loss and gradients."""

    @property
    def is_eager(self) -> bool:
        """Whether no step is captured."""
        return self.mode == "eager"

    @property
    def own(self) -> range | None:
        """Which micro-batches of each step this process computes; None for all, and not one of several ranks."""
        return self._captured.own

    def __call__(self, batch: Any) -> np.floating[Any]:
        """Train on one batch and return its loss, taken before the update. Raises as `CapturedStep` does."""
        self.step = self._next(batch)
        return self.step(batch)

    def several(self, batches: Sequence[Any]) -> SeveralSteps | None:
        """Train on the first of several steps' batches at once, as many as can be; None where each has to run alone."""
        if len(batches) < 2 or self.mode != "replay" or self._warmup > 0:
            return None
        done = self._captured.several(batches)
        if done is not None:
            self.step = self._captured
        return done

    def tape(self, batch: Any) -> StepTape:
        """Every value of the next step on this batch and its gradient. Trains nothing.

        Raises DomainError with ranks.
        """
        if self.mode == "capture":
            self._captured.forget()
        return self._tape(batch)

    def require_same(self) -> None:
        """Raise CaptureError if ``loss_fn`` is no longer what the captured steps have run."""
        self._captured.require_same("after the last step")

    def _next(self, batch: Any) -> TrainingStep:
        if self.mode == "eager":
            return self._eager
        if self.mode == "capture":
            self._captured.forget()
        elif self._warmup > 0:
            self._warmup -= 1
            return self._eager
        elif not self._captured.is_worth(batch):
            return self._eager
        return self._captured


def _no_tape(batch: Any) -> StepTape:
    raise DomainError(
        "fit: argument 'trace': expected a recorder that wants no tapes with ranks, of which none has all values of a "
        "step; replay the trace in one process to see them"
    )


def _require(name: str, value: object, allowed: Any) -> None:
    if value not in get_args(allowed):
        expected = ", ".join(repr(choice) for choice in get_args(allowed))
        raise DomainError(f"Trainer: argument {name!r}: expected one of {expected}, got {value!r}")
