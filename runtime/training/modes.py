"""Three ways to run a training step, with the same bits: op by op, captured each time, captured and replayed."""

from typing import Any, Literal, get_args

import numpy as np

from ...arrays import Arrays
from ...completed_step import StepTape
from ...tape import DomainError
from ..captured.captured_step import CapturedStep
from ..captured.replayed_step import OnShapeChange
from ..ir.step_tape import eager_tape
from ..step.eager import EagerStep
from ..step.loss_call import LossFn
from ..step.update import Recipe

StepMode = Literal["eager", "capture", "replay"]


class StepRunner:
    """Runs each step in one mode, always on the same arrays of parameters and state.

    Args:
        mode: "eager" runs op by op; "capture" records, compiles and runs each step once; "replay" runs ``warmup``
            steps op by op, then captures once per signature of the batch, and replays.
        on_shape_change: of captured steps that are kept: capture a batch of another signature too, or refuse it.

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
    ) -> None:
        _require("mode", mode, StepMode)
        _require("on_shape_change", on_shape_change, OnShapeChange)
        if warmup != int(warmup) or warmup < 0:
            raise DomainError(f"Trainer: argument 'warmup': expected a whole number of at least 0, got {warmup!r}")
        self._captured = CapturedStep(
            loss_fn, params, recipe, model_state=model_state, seed=seed, on_shape_change=on_shape_change
        )
        self._eager = EagerStep.beside(self._captured)
        self.mode, self._warmup = mode, int(warmup)
        self.step: EagerStep | CapturedStep = self._captured
        """Parameters, state and recipe; after a step, its loss and gradients."""

    def __call__(self, batch: Any) -> np.floating[Any]:
        """Train on one batch and return its loss, taken before the update. Raises as `CapturedStep` does."""
        self.step = self._next()
        return self.step(batch)

    def tape(self, batch: Any) -> StepTape:
        """Every value of the next step on this batch and its gradient. Trains nothing."""
        if self.mode == "eager":
            return eager_tape(self._eager, batch)
        if self.mode == "capture":
            self._captured.forget()
        return self._captured.tape(batch)

    def require_same(self) -> None:
        """Raise CaptureError if ``loss_fn`` is no longer what the captured steps have run."""
        self._captured.require_same("after the last step")

    def _next(self) -> EagerStep | CapturedStep:
        if self.mode == "eager":
            return self._eager
        if self.mode == "capture":
            self._captured.forget()
        elif self._warmup > 0:
            self._warmup -= 1
            return self._eager
        return self._captured


def _require(name: str, value: object, allowed: Any) -> None:
    if value not in get_args(allowed):
        expected = ", ".join(repr(choice) for choice in get_args(allowed))
        raise DomainError(f"Trainer: argument {name!r}: expected one of {expected}, got {value!r}")
