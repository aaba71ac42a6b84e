"""What every training step has: parameters, states, a recipe, and what the last step has left."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import Array, Arrays
from ...base.runs.run import Run
from ...screen.panels import ShownAsPanel
from ...screen.showing import counted, size
from ...tape import NUMERICS, DgrrError
from ...tape.values.by_name import require_flat
from ...tape.values.dtypes import element_dtype
from ...tape.values.spec import Spec
from ...tape.values.unique import Unique
from ..optim import Rule
from ..optim.averages import averaged
from ..optim.clip import global_norm
from ..optim.groups import Optimizer
from .batch import batch_arrays
from .loss_call import LossFn, RunPoint, require_use
from .memory import packed
from .recipe import Recipe
from .state_digest import state_digest

StateDict = dict[str, dict[str, Array]]

_SHOWN = 6
"""How many names of a group are shown."""


class StateError(DgrrError, ValueError):
    """A state dict that does not belong to this step: other names, shapes or dtypes."""


class LastStep(NamedTuple):
    """What a step has left to be asked for."""

    loss: Array
    metrics: dict[str, float]
    consumed: dict[str, Array]
    norm: float | None
    scale: float | None


class SeveralSteps(NamedTuple):
    """What steps in turn have left, each in its place."""

    rows: int
    """Of the first array of each batch."""
    losses: Array | Sequence[np.floating[Any]]
    metrics: Sequence[Mapping[str, float]]
    norms: Sequence[float]
    """Of the gradients before they were clipped; none where they were not measured."""
    error: Exception | None = None
    """What ended the step behind them."""


class TrainingStep(Unique, ShownAsPanel):
    """A loss function with parameters, optimizer state and a state of the model of its own.

    Raises DomainError for a state of the model that ``loss_fn`` has no argument for, or patterns of the recipe that do
    not fit the parameters, DTypeError for what is no
    array of numbers.
    """

    instead = "make another and give it the state: other.load_state_dict(step.state_dict())"

    mirror: Any = None
    """What mirrors the arrays on the GPU that steps run on; None where they run here."""

    _last: LastStep

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
    def own(self) -> range | None:
        """Which micro-batches of each step this process computes; None for all, and not one of several ranks."""
        return None

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
        """A summary for people: parameters, optimizer, what is done to gradients."""
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
        self.settle()
        return self._arrays.copy()

    # ------------------------------------------------------------------ the step

    @abstractmethod
    def __call__(self, batch: Any) -> np.floating[Any]:
        """Train on one batch and return its loss, taken before the update.

        Raises NonFiniteError, and changes nothing, if the loss or a gradient is infinite or NaN and the recipe does not
        take such values.
        """

    def several(self, batches: Sequence[Any], number: int, recorder: Any = None) -> SeveralSteps | None:
        """Train on the first of several steps' batches at once, as many as can be; None where each has to run alone.

        ``number`` is that of the first; a ``LaunchRecorder`` records them.
        """
        return None

    def is_worth(self, batch: Any) -> bool:
        """Whether this step is to run the batch; else an eager one does, with the same bits."""
        return True

    def forget(self) -> None:
        """Drop what was captured: the next batch is recorded anew."""

    def require_same(self, when: str) -> None:
        """Raise CaptureError if ``loss_fn``, recorded once more, is not what was captured."""

    @property
    def loss(self) -> Array:
        """The loss of the last step."""
        return self._last.loss

    @property
    def consumed(self) -> dict[str, Array]:
        """The gradients as the rule consumed them in the last step; of a rank those of its shard."""
        return self._last.consumed

    @property
    def metrics(self) -> dict[str, float]:
        """What the loss function gave to be shown in the last step: the means over its micro-batches."""
        return self._last.metrics

    @property
    def norm(self) -> float | None:
        """The norm of the gradients of the last step before it was clipped; None without ``clip_norm``."""
        return self._last.norm

    @property
    def scale(self) -> float | None:
        """What the gradients of the last step were multiplied by to clip their norm; None without ``clip_norm``."""
        return self._last.scale

    @property
    def is_finite(self) -> bool:
        """Whether loss and gradients of the last step were finite, which all are that a step does not stop for."""
        if self.recipe.on_nonfinite == "stop":
            return True
        return all(np.isfinite(array).all() for array in (self.loss, *self.consumed.values()))

    @property
    def gradients_are_here(self) -> bool:
        """Whether all of ``consumed`` can be looked at without asking another rank or device for it."""
        return self.mirror is None

    # ------------------------------------------------------------------ the whole, for which all ranks are called

    def collected_gradients(self) -> dict[str, Array]:
        """The gradients as the rules consumed them in the last step; of ranks the first has them, the others none."""
        return self.consumed

    def collected_batch(self, batch: Any) -> tuple[Array, ...]:
        """The arrays of all micro-batches in their order; of ranks the first has them, the others none."""
        return tuple(batch_arrays(batch))

    def averages(self) -> dict[str, Array]:
        """The running averages of the parameters, and what is frozen. Raises DomainError without ``ema``."""
        return averaged(self.params, self.state)

    def gradient_norm(self) -> float:
        """The joint norm of the gradients of the last step, which clipping has measured, or else is measured now."""
        return global_norm(self.consumed) if self.norm is None else self.norm

    # ------------------------------------------------------------------ memory

    def settle(self) -> None:
        """Have in the arrays what training has made of them: it may have happened elsewhere."""
        if self.mirror is not None:
            self.mirror.show()

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

    def as_run(self) -> Run:
        """What a recorder is told of the run, as it is now; all ranks call it."""
        arrays = self.whole_arrays()
        return Run(
            arrays["params"],
            arrays["state"],
            self.groups.recorded(),
            numerics=NUMERICS,
            model_state=arrays["model_state"],
            clip_value=self.recipe.clip_value,
            seed=self.seed,
            on_nonfinite=self.recipe.on_nonfinite,
        )

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
