"""What the built-in rules that are written in ops share: their numbers, and the law that is made of an update."""

from abc import abstractmethod
from collections.abc import Sequence
from inspect import get_annotations
from typing import Any, ClassVar

from ....tape import AnyVar, ops
from ....tape.values.spec import Spec
from ..laws import formulas
from ..laws.in_ops import in_ops
from ..laws.ops_law import OpsLaw
from .field_rule import FieldRule
from .registry import enter


class TapeRule(FieldRule):
    """A rule whose `update` is written in ops: ``class LAMB(TapeRule, rule="lamb@1", buffers=("m", "v"))``.

    Its numbers are constants there: computed in float64, rounded once.
    """

    buffers: ClassVar[tuple[str, ...]]
    """What is kept of each parameter, zeros at first."""

    def __init_subclass__(cls, rule: str = "", buffers: tuple[str, ...] = (), **options: Any) -> None:
        """Keep the name, and take the hyperparameters from the fields."""
        super().__init_subclass__(**options)
        own = [("beta1", "beta2") if name == "betas" else (name,) for name in get_annotations(cls) if name != "_"]
        cls.rule, cls.buffers, cls.names = rule, buffers, tuple([name for names in own for name in names])
        enter(cls, rule, cls.names)

    def kept(self, spec: Spec) -> Sequence[Spec]:
        """The shapes and dtypes of the buffers of a parameter."""
        return [spec] * len(self.buffers)

    @abstractmethod
    def update(self, p: AnyVar, g: AnyVar, *buffers: AnyVar, lr: AnyVar, step: AnyVar) -> Any:
        """The parameter after the update, or a tuple of it and the buffers; rate and number are float64 scalars."""

    @property
    def law(self) -> OpsLaw:
        """The update in ops."""
        return OpsLaw(self._title, self.update, self.buffers, ("lr",), counts=True, precise=True, shapes=self.kept)


mixed, correction = in_ops(formulas.mixed), in_ops(formulas.correction)
"""The formulas of averages, in ops."""


def slope(p: AnyVar, g: AnyVar, *, maximize: bool, weight_decay: float = 0.0) -> AnyVar:
    """The gradient of what is made small, with an L2 penalty: `formulas.slope`, without the nodes not selected."""
    g = -g if maximize else g
    return g + weight_decay * p if weight_decay else g


def shrunk(p: AnyVar, lr: AnyVar, weight_decay: float) -> AnyVar:
    """The parameter after decoupled weight decay: `formulas.shrunk`, likewise."""
    return like(p, 1.0 - lr * weight_decay) * p if weight_decay else p


def like(p: AnyVar, value: AnyVar) -> AnyVar:
    """A float64 scalar rounded once to the dtype of a parameter."""
    return ops.cast(value, p.dtype)


def at_least(x: AnyVar, low: float) -> AnyVar:
    """Every element, or ``low`` where it is smaller."""
    bound: Any = low
    return ops.maximum(x, bound)


def norm(x: AnyVar) -> AnyVar:
    """The Euclidean norm of all elements."""
    return ops.sqrt(ops.reduce_sum(x * x))
