"""A training step bound to its own copy of the parameters: forward, loss, backward, optimizer.

Today a step runs op by op on a tape. Its results are a function of the bits of parameters, state and batch
alone, so a step compiled to a plan will have to give the same.
"""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from ..tape import DgrrError
from .digest import state_digest
from .evaluate import Array, Arrays, Evaluation, LossFn, evaluate
from .optim import Rule


class StateError(DgrrError, ValueError):
    """A state dict that does not belong to this step: other names, shapes or dtypes."""


class CapturedStep:
    """One training step. ``step(batch)`` updates ``step.params`` and ``step.state`` and returns the loss."""

    def __init__(self, loss_fn: LossFn, params: Arrays, optimizer: Rule) -> None:
        self.loss_fn, self.optimizer = loss_fn, optimizer
        self.params: dict[str, Array] = {n: np.array(a, order="C", copy=True) for n, a in params.items()}
        self.state: dict[str, Array] = optimizer.init(self.params)

    def __call__(self, batch: Any) -> np.floating[Any]:
        """Train on one batch and return its loss, taken before the update.

        Raises NonFiniteError, and changes nothing, if the loss or a gradient is infinite or NaN.
        """
        made = self.evaluate(batch)
        self.update(made.grads)
        return cast(np.floating[Any], made.loss[()])

    def evaluate(self, batch: Any) -> Evaluation:
        """Loss and gradients on a batch, without an update. Raises NonFiniteError."""
        made = evaluate(self.loss_fn, self.params, batch)
        made.require_finite()
        return made

    def update(self, grads: Arrays) -> None:
        """One step of the optimizer on given gradients; parameters without one stay."""
        self.optimizer.step(self.params, grads, self.state)

    def grads(self, batch: Any) -> dict[str, Array]:
        """The gradients on a batch, without an update."""
        return self.evaluate(batch).grads

    def digest(self) -> str:
        """SHA-256 over parameters and optimizer state."""
        return state_digest(self.params, self.state)

    def state_dict(self) -> dict[str, dict[str, Array]]:
        """A copy of everything that training changes: ``{"params": …, "state": …}``."""
        return {"params": _copied(self.params), "state": _copied(self.state)}

    def load_state_dict(self, given: Mapping[str, Arrays]) -> None:
        """Go back to a `state_dict`, to the bit. Raises StateError, and changes nothing, if it does not fit."""
        for part, own in (("params", self.params), ("state", self.state)):
            _check(part, own, given.get(part, {}))
        for part, own in (("params", self.params), ("state", self.state)):
            for name, array in own.items():
                array[...] = given[part][name]


def capture(loss_fn: LossFn, params: Arrays, optimizer: Rule, example_batch: Any) -> CapturedStep:
    """A training step on copies of ``params``; nothing is trained and the caller's arrays stay as they are.

    ``loss_fn`` is tried once on ``example_batch``, so that a model that does not fit its data fails here.
    Raises what the model raises.
    """
    step = CapturedStep(loss_fn, params, optimizer)
    step.evaluate(example_batch)
    return step


def _copied(arrays: Arrays) -> dict[str, Array]:
    return {name: array.copy() for name, array in arrays.items()}


def _check(part: str, own: Arrays, given: Arrays) -> None:
    if list(own) != list(given):
        raise StateError(f"load_state_dict: {part}: expected the names {list(own)}, got {list(given)}")
    for name, array in own.items():
        other = np.asarray(given[name])
        if (other.shape, other.dtype) != (array.shape, array.dtype):
            raise StateError(
                f"load_state_dict: {part} {name!r}: expected {array.dtype}{list(array.shape)}, "
                f"got {other.dtype}{list(other.shape)}"
            )
