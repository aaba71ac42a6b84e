"""The step that runs op by op."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, cast

import numpy as np

from ...base.arrays import Array, Arrays
from ...base.runs.completed_step import Order
from ...tape import AnyTensor
from ..optim import clip_by_global_norm, clip_by_value
from .accumulate import Accumulation, Means
from .evaluate import START, Evaluation, NonFiniteError, evaluations
from .loss_call import LossFn, RunPoint
from .recipe import Recipe
from .training_step import LastStep, TrainingStep


class EagerStep(TrainingStep):
    """A training step that runs on a fresh tape, op by op."""

    @classmethod
    def beside(cls, step: TrainingStep) -> Self:
        """A step that trains the very arrays of another one."""
        made = cls.__new__(cls)
        made.loss_fn, made.recipe, made.seed = step.loss_fn, step.recipe, step.seed
        made._arrays = step.arrays
        made.groups = step.groups
        return made

    def __call__(self, batch: Any) -> np.floating[Any]:
        """Train on one batch, op by op, and return its loss, taken before the update.

        Raises NonFiniteError, and changes nothing, if the loss or a gradient is infinite or NaN.
        """
        loss, grads, after, metrics = self._gradients(batch)
        self._last = LastStep(loss, metrics, *self._clipped(grads))
        self.groups.step(self.params, self.consumed, self.state)
        for name, array in self.model_state.items():
            array[...] = after[name]
        return cast(np.floating[Any], loss[()])

    def _gradients(self, batch: Any) -> "EagerGradients":
        return eager_gradients(self.loss_fn, self.params, batch, self.recipe, self.point)

    def _clipped(self, grads: dict[str, Array]) -> "Clipped":
        """The gradients as the rule is to consume them."""
        return clipped(grads, self.recipe)


class EagerGradients(NamedTuple):
    """What `eager_gradients` gives."""

    loss: Array
    grads: dict[str, Array]
    model_state: dict[str, Array]
    """After the step."""
    metrics: dict[str, float]


def eager_gradients(
    loss_fn: LossFn, params: Arrays, batch: Any, recipe: Recipe, point: RunPoint = START
) -> EagerGradients:
    """The loss and the gradients of the parameters, averaged over micro-batches, before clipping.

    Raises NonFiniteError if one of them is infinite or NaN, unless the recipe takes such values.
    """
    shown, stops = list[dict[str, float]](), recipe.on_nonfinite == "stop"
    micros, frozen = recipe.micro_batches(batch), recipe.frozen_of(params)

    def looked_at() -> Iterator[Evaluation]:
        for made in evaluations(loss_fn, params, micros, point, frozen, recipe.order):
            if stops:
                made.require_finite()
            shown.append(made.metrics)
            yield made

    loss, grads, state = averaged(looked_at(), params, recipe.order, recipe.accumulate)
    after = {**point.model_state, **state}
    if stops:
        _require_finite({"loss": loss, **grads}, after)
    return EagerGradients(loss, grads, after, mean_metrics(shown))


def _require_finite(means: Arrays, model_state: Arrays) -> None:
    for name, array in means.items():
        if not np.isfinite(array).all():
            raise NonFiniteError(f"the micro-batches are finite, but the mean of {name!r} over them is not")
    for name, array in model_state.items():
        if not np.isfinite(array).all():
            raise NonFiniteError(f"loss and gradients are finite, but the new state {name!r} of the model is not")


def averaged(passes: Iterable[Evaluation], names: Iterable[str], order: Order, count: int) -> Means[Array]:
    """The means over ``count`` micro-batches, which are taken one by one; of one, what it gives."""
    sums = Accumulation[AnyTensor](order, count)
    for made in passes:
        sums.put(AnyTensor(made.loss), tensors(made.grads), tensors(made.updated))
    loss, grads, state = sums.means(names)
    return Means(loss.array, *({name: t.array for name, t in each.items()} for each in (grads, state)))


def tensors(arrays: Arrays) -> dict[str, AnyTensor]:
    """Arrays as ops take them."""
    return {name: AnyTensor(array) for name, array in arrays.items()}


def mean_metrics(passes: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every metric over the micro-batches that have it, in float64 and in their order."""
    if len(passes) == 1:
        return dict(passes[0])
    names = dict.fromkeys(name for made in passes for name in made)
    found = {name: [made[name] for made in passes if name in made] for name in names}
    return {name: _sum(values) / len(values) for name, values in found.items()}


def _sum(values: Sequence[float]) -> float:
    """One after the other: Python's own `sum` compensates what is rounded, from 3.12 on."""
    total = 0.0
    for value in values:
        total += value
    return total


class Clipped(NamedTuple):
    """The gradients as a recipe clips them, their norm, and what clipping by norm multiplied them by."""

    grads: dict[str, Array]
    norm: float | None
    scale: float | None


def clipped(grads: dict[str, Array], recipe: Recipe) -> Clipped:
    """The gradients as the recipe clips them."""
    if recipe.clip_value is not None:
        grads = clip_by_value(grads, recipe.clip_value)
    if recipe.clip_norm is None:
        return Clipped(grads, None, None)
    result = clip_by_global_norm(grads, recipe.clip_norm)
    return Clipped(result.grads, result.norm, result.scale)
