"""What every training step has - parameters, state, a recipe - and the step that runs op by op."""

from collections.abc import Mapping
from typing import Any, Self, cast

import numpy as np

from ..tape import AnyTensor, DgrrError
from .digest import state_digest
from .evaluate import Array, Arrays, LossFn, NonFiniteError, evaluate
from .memory import packed
from .optim import clip_by_global_norm, clip_by_value
from .recipe import Recipe

State = dict[str, dict[str, Array]]


class StateError(DgrrError, ValueError):
    """A state dict that does not belong to this step: other names, shapes or dtypes."""


class Step:
    """A loss function with parameters and optimizer state of its own."""

    def __init__(self, loss_fn: LossFn, params: Arrays, recipe: Recipe) -> None:
        self.loss_fn, self.recipe = loss_fn, recipe
        self.params = packed({name: np.asarray(array) for name, array in params.items()})
        self.state = packed(recipe.rule.init(self.params))

    def digest(self) -> str:
        """SHA-256 over parameters and optimizer state."""
        return state_digest(self.params, self.state)

    def state_dict(self) -> State:
        """A copy of everything that training changes: ``{"params": …, "state": …}``."""
        return {"params": _copied(self.params), "state": _copied(self.state)}

    def load_state_dict(self, given: Mapping[str, Arrays]) -> None:
        """Go back to a `state_dict`, to the bit. Raises StateError, and changes nothing, if it does not fit."""
        for part, own in (("params", self.params), ("state", self.state)):
            _check(part, own, given.get(part, {}))
        for part, own in (("params", self.params), ("state", self.state)):
            for name, array in own.items():
                array[...] = given[part][name]


class EagerStep(Step):
    """A training step that runs on a fresh tape, op by op."""

    loss: Array
    """The loss of the last step."""
    consumed: dict[str, Array]
    """The gradients as the rule consumed them in the last step."""
    scale: float | None
    """What the gradients of the last step were multiplied by to clip their norm; None without ``clip_norm``."""

    @classmethod
    def beside(cls, step: Step) -> Self:
        """A step that trains the very arrays of another one."""
        made = cls.__new__(cls)
        made.loss_fn, made.recipe, made.params, made.state = step.loss_fn, step.recipe, step.params, step.state
        return made

    def __call__(self, batch: Any) -> np.floating[Any]:
        """Train on one batch and return its loss, taken before the update.

        Raises NonFiniteError, and changes nothing, if the loss or a gradient is infinite or NaN.
        """
        self.loss, grads = eager_gradients(self.loss_fn, self.params, batch, self.recipe)
        self.consumed, self.scale = clipped(grads, self.recipe)
        self.recipe.rule.step(self.params, self.consumed, self.state)
        return cast(np.floating[Any], self.loss[()])


def eager_gradients(loss_fn: LossFn, params: Arrays, batch: Any, recipe: Recipe) -> tuple[Array, dict[str, Array]]:
    """The loss and the gradients of the parameters, averaged over micro-batches, before clipping.

    Raises NonFiniteError if one of them is infinite or NaN.
    """
    passes = [evaluate(loss_fn, params, micro) for micro in recipe.micro_batches(batch)]
    for made in passes:
        made.require_finite()
    if len(passes) == 1:
        return passes[0].loss, passes[0].grads
    loss = recipe.mean([AnyTensor(made.loss) for made in passes]).array
    arrived = {n: [AnyTensor(made.grads[n]) for made in passes if n in made.grads] for n in params}
    grads = {n: recipe.mean(terms).array for n, terms in arrived.items() if terms}
    for name, array in {"loss": loss, **grads}.items():
        if not np.isfinite(array).all():
            raise NonFiniteError(f"the micro-batches are finite, but the mean of {name!r} over them is not")
    return loss, grads


def clipped(grads: dict[str, Array], recipe: Recipe) -> tuple[dict[str, Array], float | None]:
    """The gradients as the recipe clips them, and what clipping by norm multiplied them by."""
    if recipe.clip_value is not None:
        grads = clip_by_value(grads, recipe.clip_value)
    if recipe.clip_norm is None:
        return grads, None
    result = clip_by_global_norm(grads, recipe.clip_norm)
    return result.grads, result.scale


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
