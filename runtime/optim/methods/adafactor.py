"""Adafactor: squared gradients kept as a row and a column for each matrix."""

from dataclasses import KW_ONLY, dataclass
from math import inf, nan
from typing import Any

from ....tape import AnyVar, ops
from ....tape.record.kinds.values import Values
from ....tape.values.spec import Spec
from ..kinds import FROM_1
from ..rates.schedules import Schedule
from ..rules.tape_rule import TapeRule, at_least, like, norm, shrunk, slope

NOT_POSITIVE = Values("a finite number of at most 0", lambda x: -inf < x <= 0, (0.5, inf, -inf, nan))


@dataclass(frozen=True)
class Adafactor(
    TapeRule, rule="adafactor@1", buffers=("row", "column"), kinds={"beta2_decay": NOT_POSITIVE, "d": FROM_1}
):
    """Steps divided by a root mean square that is kept as a row and a column, in little memory.

    One step on a parameter ``p`` with gradient ``g``; ``row`` and ``column`` are its buffers, ``t`` the step, from 1.
    Means run along one axis; ``rms`` is the root of the mean square of all elements::

        share = t ** beta2_decay
        row = row + share * (mean(g * g, -1) - row)
        column = column + share * (mean(g * g, -2) - column)
        square = row * column / max(mean(row, -2), eps1)
        u = g / sqrt(max(square, eps1 ** 2))
        u = u / max(1, rms(u) / d)
        p = (1 - lr * weight_decay) * p - max(eps2, rms(p)) * min(lr, 1 / sqrt(t)) * u

    A parameter of fewer than two axes has all of ``square`` in ``row``, and nothing in ``column``.

    Source: Shazeer and Stern (2018), arXiv:1804.04235; torch.optim.Adafactor.
    Shapes: parameters of any shape (..., M, N); ``row`` is (..., M, 1) and ``column`` (..., 1, N).

    Args:
        lr: the largest relative step size.
        beta2_decay: exponent of the share of a new gradient.
        eps1: the least value of the root mean square; as None in PyTorch is 2**-23 or 2**-52.
        eps2: the least size of a parameter.
        d: the largest root mean square of a step.
        weight_decay: how much of ``lr * p`` is taken away.

    >>> from dgrr.runtime.optim import Adafactor
    >>> import numpy as np
    >>> params, rule = {"w": np.ones(2)}, Adafactor(lr=0.5)
    >>> rule.step(params, {"w": np.array([1.0, -2.0])}, rule.init(params))
    >>> params["w"].round(4)
    array([0.5, 1.5])
    """

    lr: float | Schedule = 1e-2
    beta2_decay: float = -0.8
    eps1: float = 2.0**-23
    eps2: float = 1e-3
    d: float = 1.0
    weight_decay: float = 0.0
    _: KW_ONLY
    maximize: bool = False

    def kept(self, spec: Spec) -> list[Spec]:
        """Means along the last axis, and along the one before it."""
        if len(spec.shape) < 2:
            return [spec, Spec((0,), spec.dtype)]
        *outer, rows, columns = spec.shape
        return [Spec((*outer, rows, 1), spec.dtype), Spec((*outer, 1, columns), spec.dtype)]

    def update(self, p: AnyVar, g: AnyVar, *buffers: AnyVar, lr: AnyVar, step: AnyVar) -> Any:
        """The formula above."""
        size, g = max(1, p.value.size), slope(p, g, maximize=self.maximize)
        row, column, square = self._square(g * g, buffers[0], buffers[1], like(p, ops.power(step, self.beta2_decay)))
        u = g / ops.sqrt(at_least(square, self.eps1 * self.eps1))
        u = u / at_least(norm(u) / (size**0.5 * self.d), 1.0)
        largest = at_least(norm(p) / size**0.5, self.eps2)
        rate = like(p, ops.minimum(lr, 1.0 / ops.sqrt(step)))
        return shrunk(p, lr, self.weight_decay) - largest * rate * u, row, column

    def _square(self, square: AnyVar, row: AnyVar, column: AnyVar, share: AnyVar) -> tuple[AnyVar, AnyVar, AnyVar]:
        """The buffers after a gradient, and the mean square that they stand for."""
        if len(square.shape) < 2:
            row = row + share * (square - row)
            return row, column, row
        row = row + share * (ops.reduce_mean(square, -1, keepdims=True) - row)
        column = column + share * (ops.reduce_mean(square, -2, keepdims=True) - column)
        return row, column, row * column / at_least(ops.reduce_mean(row, -2, keepdims=True), self.eps1)
