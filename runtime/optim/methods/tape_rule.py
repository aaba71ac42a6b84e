"""What the built-in rules that are written in ops share: their numbers, and the law that is made of an update."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....tape import AnyVar, ops
from ....tape.values.spec import Spec
from ..fields import FieldRule
from ..ops_law import OpsLaw


class TapeRule(FieldRule):
    """A rule whose `update` is written in ops. Its numbers are constants there: computed in float64, rounded once."""

    @property
    def buffers(self) -> tuple[str, ...]:
        """What is kept of each parameter, zeros at first."""
        return ()

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


def slope(p: AnyVar, g: AnyVar, *, maximize: bool, weight_decay: float = 0.0) -> AnyVar:
    """The gradient of what is made small, with an L2 penalty."""
    g = -g if maximize else g
    return g + weight_decay * p if weight_decay else g


def mixed(old: AnyVar, new: AnyVar, share: float) -> AnyVar:
    """A running average after a new value: ``share * old + (1 - share) * new``."""
    return share * old + (1.0 - share) * new


def correction(beta: float, step: AnyVar) -> AnyVar:
    """``1 - beta ** step`` in float64, as ``-expm1(step * log(beta))``."""
    return -ops.expm1(step * ops.log(step.tape.const(np.array(beta))))


def like(p: AnyVar, value: AnyVar) -> AnyVar:
    """A float64 scalar rounded once to the dtype of a parameter."""
    return ops.cast(value, p.dtype)


def shrunk(p: AnyVar, lr: AnyVar, weight_decay: float) -> AnyVar:
    """The parameter after decoupled weight decay: ``(1 - lr * weight_decay) * p``."""
    return like(p, 1.0 - lr * weight_decay) * p if weight_decay else p


def at_least(x: AnyVar, low: float) -> AnyVar:
    """Every element, or ``low`` where it is smaller."""
    bound: Any = low
    return ops.maximum(x, bound)


def norm(x: AnyVar) -> AnyVar:
    """The Euclidean norm of all elements."""
    return ops.sqrt(ops.reduce_sum(x * x))
