"""Three ways to run a training step, with the same bits: op by op, captured each time, captured and replayed."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from ...base.arrays import Arrays
from ...base.runs.completed_step import StepTape
from ...tape import DomainError
from ..captured.captured_step import CapturedStep
from ..captured.kept import PLAN_BYTES
from ..captured.replayed_step import Device, OnShapeChange
from ..ir.step_tape import Choose, Chosen, eager_chosen, eager_tape
from ..ranks.exchange import Exchange
from ..ranks.ranked_step import RankedStep
from ..step.completed import LaunchRecorder
from ..step.eager import EagerStep
from ..step.loss_call import LossFn
from ..step.recipe import Recipe
from ..step.training_step import SeveralSteps, TrainingStep
from .witness import Witness

StepMode = Literal["eager", "capture", "replay"]


@dataclass(frozen=True)
class StepOptions:
    """How steps run, with the same bits.

    Args:
        mode: "eager" runs op by op; "capture" records, compiles and runs each step once; "replay" runs ``warmup``
            steps op by op, then captures once per signature of the batch, and replays.
        warmup: see mode.
        on_shape_change: of captured steps that are kept: capture a batch of another signature too, or refuse it.
        ranks: the other ranks, with which each step is done together.
        device: where captured steps run: "cpu" or "cuda".
        plan_bytes: how much memory the plans of captured steps may take; what is not worth one runs op by op.
        witness: the share of the steps of a GPU that the CPU recomputes; None for none.

    Raises:
        DomainError: an argument outside these.
    """

    mode: StepMode = "replay"
    _: KW_ONLY
    warmup: int = 0
    on_shape_change: OnShapeChange = "recapture"
    ranks: Exchange | None = None
    device: Device = "cpu"
    plan_bytes: int = PLAN_BYTES
    witness: float | None = None

    def __post_init__(self) -> None:
        for name, allowed in (("mode", StepMode), ("device", Device), ("on_shape_change", OnShapeChange)):
            if getattr(self, name) not in get_args(allowed):
                raise self._refused(name, f"one of {', '.join(map(repr, get_args(allowed)))}", getattr(self, name))
        if self.warmup != int(self.warmup) or self.warmup < 0:
            raise self._refused("warmup", "a whole number of at least 0", self.warmup)
        if self.witness is not None and not 0 < self.witness <= 1:
            raise self._refused("witness", "a share of the steps above 0 and up to 1, or None", self.witness)
        if self.device == "cpu":
            if self.witness is not None:
                raise self._refused(
                    "witness",
                    "None with the device 'cpu', which would vouch for itself: dgrr replay recomputes a trace",
                    self.witness,
                )
            return
        if self.mode != "replay" or self.warmup:
            given = f"mode={self.mode!r}" if self.mode != "replay" else f"warmup={self.warmup}"
            raise DomainError(
                f"Trainer: argument 'device': expected mode='replay' and warmup=0 with {self.device!r}, where steps "
                f"run only as they are captured, got {given}"
            )
        if self.ranks is not None and self.witness is not None:
            raise self._refused("witness", "None with ranks, each of which holds a part of a step", self.witness)

    def _refused(self, name: str, expected: str, given: object) -> DomainError:
        return DomainError(f"Trainer: argument {name!r}: expected {expected}, got {given!r}")


class StepRunner:
    """Runs each step as the options say, always on the same arrays of parameters and state."""

    def __init__(
        self,
        loss_fn: LossFn,
        params: Arrays,
        recipe: Recipe,
        options: StepOptions,
        *,
        model_state: Arrays | None = None,
        seed: int = 0,
    ) -> None:
        self.mode, self._warmup = options.mode, int(options.warmup)
        told: dict[str, Any] = {"model_state": model_state, "seed": seed}
        told |= {"on_shape_change": options.on_shape_change, "plan_bytes": options.plan_bytes}
        self._captured: TrainingStep
        self._eager: TrainingStep
        self._tape: Callable[[Any], StepTape]
        self.witness: Witness | None = None
        if options.ranks is None:
            self._captured = captured = CapturedStep(loss_fn, params, recipe, device=options.device, **told)
            self._eager = EagerStep.beside(captured)
            self._tape = partial(eager_tape, self._eager) if self.is_eager else captured.tape
            if options.witness is not None:
                self.witness = Witness(captured, options.witness)
        else:
            self._captured = ranked = RankedStep(loss_fn, params, recipe, options.ranks, device=options.device, **told)
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

    def witnessed(self, batch: Any, number: int) -> np.floating[Any]:
        """The same of the step of a number, which a witness may recompute. Raises WitnessError too."""
        return self(batch) if self.witness is None else self.witness(batch, number)

    def several(self, batches: Sequence[Any], number: int, recorder: LaunchRecorder | None) -> SeveralSteps | None:
        """Train on the first of several steps' batches at once, as many as can be; None where each has to run alone."""
        if len(batches) < 2 or self.mode != "replay" or self._warmup > 0:
            return None
        done = self._captured.several(batches, number, recorder)
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

    def chosen(self, batch: Any, choose: Choose) -> Chosen:
        """Some values and gradients of the next step on this batch. Trains nothing.

        Views that are valid until the next step.
        """
        step = self._next(batch)
        return step.chosen(batch, choose) if isinstance(step, CapturedStep) else eager_chosen(step, batch, choose)

    def finish(self) -> None:
        """Raise CaptureError if ``loss_fn`` is no longer what the captured steps have run; WitnessError."""
        if self.witness is not None:
            self.witness.settle()
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
