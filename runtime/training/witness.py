"""The CPU as the witness of a GPU: steps drawn at random are recomputed here, while the GPU goes on."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from ...base.arrays import Array
from ...tape.errors import DgrrError
from ...tape.numerics.math.random import uniform
from ..captured.captured_step import CapturedStep
from ..captured.plans import Executable
from ..captured.verification.bits import difference
from ..lower.bind import Fault

Left = Mapping[str, Mapping[str, Array]]
"""What a step leaves: arrays by name, of each kind, in the order in which it makes them."""


class WitnessError(DgrrError):
    """A step of which the CPU has made other bits than the GPU."""


class Witness:
    """Runs the steps of a GPU, and has a twin of them on the CPU recompute some.

    A step is drawn by seed and number alone. The one before is waited for, so at most one is under way.

    Args:
        step: that on the GPU.
        share: of the steps, from 0 to 1.
    """

    def __init__(self, step: CapturedStep, share: float) -> None:
        self._step, self._share = step, share
        self._twin: CapturedStep | None = None
        self._worker = ThreadPoolExecutor(1, "witness")
        self._under_way: Future[str | None] | None = None
        self._number = 0
        self.steps: list[int] = []
        """The numbers of those that were found to have the CPU's bits."""

    def draws(self, number: int) -> bool:
        """Whether a step is recomputed."""
        return float(uniform((1,), np.float64, seed=self._step.seed, step=number, ordinal=2**32 - 1)[0]) < self._share

    def __call__(self, batch: Any, number: int) -> np.floating[Any]:
        """Train on one batch, as ``step`` does; its loss. Raises WitnessError for an earlier step, as `settle` does."""
        drawn = self.draws(number)
        if drawn or (self._under_way is not None and self._under_way.done()):
            self.settle()
        twin = self._begun(batch) if drawn else None
        try:
            loss = self._step(batch)
        except DgrrError:
            self.settle()  # what a wrong step has led to is no news
            raise
        if twin is not None:
            self._number, left = number, left_by(self._step)
            self._under_way = self._worker.submit(_other_bits, twin, left)
        return loss

    def settle(self) -> None:
        """Wait for the step that is recomputed. Raises WitnessError, with the first tensor that has other bits."""
        if self._under_way is None:
            return
        found, self._under_way = self._under_way.result(), None
        if found is not None:
            raise WitnessError(
                f"fit: step {self._number}: expected the CPU's bits on 'cuda', got others: {found}; go on from a "
                "checkpoint before this step, on another GPU or with device='cpu'"
            )
        self.steps.append(self._number)

    def _begun(self, batch: Any) -> CapturedStep:
        """The twin in the state before the step, with its batch."""
        if self._twin is None:
            self._step.bind(batch)
            self._twin = self._step.on("cpu")
        else:
            self._twin.load_state_dict(self._step.arrays)
        _ = self._twin.bind(batch).step  # compiled here, where the loss function runs too
        return self._twin


def left_by(step: CapturedStep) -> Left:
    """Copies of all that a step has left."""
    made = {"": {"loss": step.loss}, "gradient ": step.consumed, **step.arrays}
    return {kind: {name: array.copy() for name, array in arrays.items()} for kind, arrays in made.items()}


def _other_bits(twin: CapturedStep, found: Left) -> str | None:
    """Run the twin; the first tensor that a GPU has made otherwise, if there is one."""
    executable: Executable = twin.bound_plans("witness").step
    try:
        executable.bound.run()
    except Fault as fault:
        return f"the CPU refuses it: {fault}"
    for kind, arrays in left_by(twin).items():
        for name, array in arrays.items():
            wrong = difference(_canonical(array), _canonical(found[kind][name]))
            if wrong is not None:
                return f"{NAMES.get(kind, kind)}{name!r}: {wrong}"
    return None


NAMES = {"params": "parameter ", "state": "state ", "model_state": "model state "}
"""How the arrays of a step are spoken of."""


def _canonical(array: Array) -> Array:
    """The same with every NaN as one: a GPU's may have another sign or payload."""
    return np.where(np.isnan(array), array.dtype.type(np.nan), array) if array.dtype.kind == "f" else array
