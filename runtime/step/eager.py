"""What every training step has - parameters, state, a recipe - and the step that runs op by op."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, cast

import numpy as np

from ...base.arrays import Array, Arrays
from ...screen.panels import Described
from ...screen.showing import counted, size
from ...tape import AnyTensor, DgrrError
from ...tape.values.by_name import require_flat
from ...tape.values.dtypes import element_dtype
from ...tape.values.spec import Spec
from ...tape.values.unique import Unique
from ..optim import Rule, clip_by_global_norm, clip_by_value
from ..optim.groups import Optimizer
from .accumulate import Accumulation, Means
from .evaluate import START, Evaluation, NonFiniteError, evaluations
from .loss_call import LossFn, RunPoint, require_use
from .memory import packed
from .state_digest import state_digest
from .tree import Order
from .update import Recipe

StateDict = dict[str, dict[str, Array]]

_SHOWN = 6
"""How many names of a group are shown."""


class StateError(DgrrError, ValueError):
    """A state dict that does not belong to this step: other names, shapes or dtypes."""


class TrainingStep(Unique, Described):
    """A loss function with parameters, optimizer state and a state of the model of its own.

    Raises DomainError for a state of the model that ``loss_fn`` has no argument for, or patterns of the recipe that do
    not fit the parameters, DTypeError for what is no
    array of numbers.
    """

    instead = "make another and give it the state: other.load_state_dict(step.state_dict())"

    def __init__(
        self, loss_fn: LossFn, params: Arrays, recipe: Recipe, model_state: Arrays | None = None, seed: int = 0
    ) -> None:
        given = _arrays("params", params)
        self.loss_fn, self.recipe, self.seed = loss_fn, recipe.settled(given), seed
        self.groups = self.recipe.groups(given)
        self._arrays: StateDict = {}
        self._hold(given, _arrays("model_state", model_state or {}))
        require_use(loss_fn, self.model_state)

    def _hold(self, params: dict[str, Array], model_state: dict[str, Array]) -> None:
        """Make the arrays that training changes, from what it begins with."""
        own = packed(params)
        self._arrays = {"params": own, "state": packed(self.groups.init(own)), "model_state": packed(model_state)}

    @property
    def point(self) -> RunPoint:
        """Where in the run the step is."""
        return RunPoint(int(self.state["step"]), self.seed, self.model_state)

    def digest(self) -> str:
        """SHA-256 over parameters, optimizer state and the model's state."""
        return state_digest(self.params, self.state, self.model_state)

    def _title(self) -> str:
        return f"{type(self).__name__}: {self._elements()}, {counted(self.point.step, 'step')} done"

    def _elements(self) -> str:
        return counted(sum(array.size for array in self.params.values()), "parameter")

    def about(self) -> dict[str, object]:
        """What is to be said of it to people: parameters, optimizer, what is done to gradients."""
        recipe, groups = self.recipe, self.groups
        asked = {
            **{
                f"group {group.pattern}": _tensors(group.names)
                for group in groups.groups
                if isinstance(recipe.rule, Mapping)
            },
            "frozen": _tensors(groups.frozen) if groups.frozen else None,
            "accumulate": recipe.accumulate if recipe.accumulate > 1 else None,
            "clip value": recipe.clip_value,
            "clip norm": recipe.clip_norm,
            "averages": recipe.ema,
        }
        return {
            "parameters": f"{sum(a.size for a in self.params.values()):,} in {counted(len(self.params), 'tensor')}",
            "optimizer": _rules(recipe.rule),
            **{name: value for name, value in asked.items() if value is not None},
            "arrays": size(sum(a.nbytes for part in self.arrays.values() for a in part.values())),
        }

    @property
    def arrays(self) -> StateDict:
        """The arrays themselves of all that training changes, part by part."""
        return {"params": self.params, "state": self.state, "model_state": self.model_state}

    def settle(self) -> None:
        """Have in the arrays what training has made of them: it may have happened elsewhere."""

    @property
    def params(self) -> dict[str, Array]:
        """The parameters by name."""
        self.settle()
        return self._arrays["params"]

    @property
    def state(self) -> dict[str, Array]:
        """The optimizer's state by name."""
        self.settle()
        return self._arrays["state"]

    @property
    def model_state(self) -> dict[str, Array]:
        """What the model keeps from step to step, by name."""
        self.settle()
        return self._arrays["model_state"]

    def whole_arrays(self) -> StateDict:
        """The same, with all of the optimizer's state, of which a rank holds its share; all ranks call it."""
        return self.arrays

    def state_dict(self) -> StateDict:
        """A copy of everything that training changes: ``{"params": …, "state": …, "model_state": …}``."""
        return {part: {name: array.copy() for name, array in own.items()} for part, own in self.arrays.items()}

    def load_state_dict(self, given: Mapping[str, Arrays]) -> None:
        """Go back to a `state_dict`, to the bit. Raises StateError, and changes nothing, if it does not fit."""
        for part, own in self.arrays.items():
            check_fits(part, own, given.get(part, {}))
        for part, own in self.arrays.items():
            for name, array in own.items():
                array[...] = given[part][name]


def _rules(rule: Optimizer) -> str:
    return repr(rule) if isinstance(rule, Rule) else ", ".join(f"{pattern}: {each!r}" for pattern, each in rule.items())


def _tensors(names: Sequence[str]) -> str:
    """How many there are, and the first of them."""
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"{counted(len(names), 'tensor')}: {shown}"


def _arrays(part: str, given: Mapping[str, Any]) -> dict[str, Array]:
    """What was given as arrays; a copy of each is made of its bytes, which an array of objects has not."""
    require_flat(part, given)
    arrays = {name: np.asarray(value) for name, value in given.items()}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            element_dtype(f"{part} {name!r}", array.dtype)
    return arrays


class EagerStep(TrainingStep):
    """A training step that runs on a fresh tape, op by op."""

    loss: Array
    """The loss of the last step."""
    consumed: dict[str, Array]
    """The gradients as the rule consumed them in the last step."""
    metrics: dict[str, float]
    """What the loss function gave to be shown in the last step: the means over its micro-batches."""
    norm: float | None
    """The norm of the gradients of the last step before it was clipped; None without ``clip_norm``."""
    scale: float | None
    """What the gradients of the last step were multiplied by to clip their norm; None without ``clip_norm``."""

    @classmethod
    def beside(cls, step: TrainingStep) -> Self:
        """A step that trains the very arrays of another one."""
        made = cls.__new__(cls)
        made.loss_fn, made.recipe, made.seed = step.loss_fn, step.recipe, step.seed
        made._arrays = step.arrays
        made.groups = step.groups
        return made

    def __call__(self, batch: Any) -> np.floating[Any]:
        """Train on one batch and return its loss, taken before the update.

        Raises NonFiniteError, and changes nothing, if the loss or a gradient is infinite or NaN and the recipe does not
        take such values.
        """
        self.loss, grads, after, self.metrics = eager_gradients(
            self.loss_fn, self.params, batch, self.recipe, self.point
        )
        self.consumed, self.norm, self.scale = clipped(grads, self.recipe)
        self.groups.step(self.params, self.consumed, self.state)
        for name, array in self.model_state.items():
            array[...] = after[name]
        return cast(np.floating[Any], self.loss[()])


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
    return {name: sum(values) / len(values) for name, values in found.items()}


def clipped(grads: dict[str, Array], recipe: Recipe) -> tuple[dict[str, Array], float | None, float | None]:
    """The gradients as the recipe clips them, their norm, and what clipping by norm multiplied them by."""
    if recipe.clip_value is not None:
        grads = clip_by_value(grads, recipe.clip_value)
    if recipe.clip_norm is None:
        return grads, None, None
    result = clip_by_global_norm(grads, recipe.clip_norm)
    return result.grads, result.norm, result.scale


def check_fits(part: str, own: Mapping[str, Array | Spec], given: Arrays) -> None:
    """Raise StateError for arrays of a state dict of other names, shapes or dtypes."""
    if list(own) != list(given):
        raise StateError(f"load_state_dict: {part}: expected the names {list(own)}, got {list(given)}")
    for name, array in own.items():
        other = np.asarray(given[name])
        if (other.shape, other.dtype) != (tuple(array.shape), array.dtype):
            raise StateError(
                f"load_state_dict: {part} {name!r}: expected {array.dtype}{list(array.shape)}, "
                f"got {other.dtype}{list(other.shape)}"
            )
