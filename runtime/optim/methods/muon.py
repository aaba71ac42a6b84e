"""Muon: steps along the nearest orthogonal matrix of the momentum."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from ....base.arrays import Array, Arrays
from ....tape import AnyVar, ShapeError
from ....tape.record.kinds.values import FINITE
from ..kinds import SHARE
from ..rates.schedules import Schedule
from ..rules.tape_rule import TapeRule, at_least, like, mixed, norm, shrunk, slope


@dataclass(frozen=True)
class Muon(TapeRule, rule="muon@1", buffers=("m",), kinds={"momentum": SHARE, "a": FINITE, "b": FINITE, "c": FINITE}):
    """Steps along a matrix that is nearly the orthogonal one nearest to the momentum. For parameters of two axes.

    One step on a parameter ``p`` with gradient ``g``; ``m`` is its buffer, ``X`` has no more rows than columns (it is
    transposed and turned back where it has)::

        m = momentum * m + (1 - momentum) * g
        X = momentum * m + (1 - momentum) * g if nesterov else m
        X = X / max(|X|, eps)
        repeat ns_steps times: S = X @ X.T;  X = a * X + (b * S + c * (S @ S)) @ X
        size = 0.2 * sqrt(max(rows, columns)) if match_rms else sqrt(max(1, rows / columns))
        p = (1 - lr * weight_decay) * p - lr * size * X

    Products are computed in the dtype of the parameter, by `ops.matmul`; PyTorch computes them in bfloat16. Other
    parameters get another rule: ``{"*.weight": Muon(), "*": AdamW()}``.

    Source: Jordan and others (2024), https://kellerjordan.github.io/posts/muon/; torch.optim.Muon.
    Shapes: parameters (rows, columns); gradients and buffers have that of their parameter.

    Args:
        weight_decay: how much of ``lr * p`` is taken away.
        momentum: decay of the running mean.
        nesterov: look ahead along the momentum.
        a, b, c: coefficients of the iteration (``ns_coefficients`` in PyTorch).
        eps: the least norm.
        ns_steps: how often it is repeated.
        match_rms: whether steps are about as large as those of AdamW (``adjust_lr_fn="match_rms_adamw"``).

    Raises:
        ShapeError: a parameter has not two axes.

    >>> from dgrr.runtime.optim import Muon
    >>> import numpy as np
    >>> params, rule = {"w": np.ones((1, 2))}, Muon(lr=0.5)
    >>> rule.step(params, {"w": np.array([[1.0, -2.0]])}, rule.init(params))
    >>> params["w"].round(4)
    array([[0.7943, 1.2615]])
    """

    lr: float | Schedule = 1e-3
    weight_decay: float = 0.1
    momentum: float = 0.95
    _: KW_ONLY
    nesterov: bool = True
    a: float = 3.4445
    b: float = -4.775
    c: float = 2.0315
    eps: float = 1e-7
    ns_steps: int = 5
    match_rms: bool = False
    maximize: bool = False

    def init(self, params: Arrays) -> dict[str, Array]:
        """As `Rule.init`. Raises ShapeError for a parameter that has not two axes."""
        for name, array in params.items():
            if array.ndim != 2:
                raise ShapeError(
                    f"Muon.init: parameter {name!r}: expected two axes, got shape {array.shape}; give it another rule: "
                    '{"*.weight": Muon(), "*": AdamW()}'
                )
        return super().init(params)

    def update(self, p: AnyVar, g: AnyVar, *buffers: AnyVar, lr: AnyVar, step: AnyVar) -> Any:
        """The formula above."""
        g = slope(p, g, maximize=self.maximize)
        m = mixed(buffers[0], g, self.momentum)
        ahead = mixed(m, g, self.momentum) if self.nesterov else m
        rows, columns = p.value.sizes
        x = self._orthogonal(ahead.T).T if rows > columns else self._orthogonal(ahead)
        size = 0.2 * max(rows, columns) ** 0.5 if self.match_rms else max(1.0, rows / max(columns, 1)) ** 0.5
        return shrunk(p, lr, self.weight_decay) - like(p, lr * size) * x, m

    def _orthogonal(self, x: AnyVar) -> AnyVar:
        """Newton and Schulz's iteration for the orthogonal factor, in their odd polynomial of degree five."""
        x = x / at_least(norm(x), self.eps)
        for _ in range(self.ns_steps):
            s = x @ x.T
            x = self.a * x + (self.b * s + self.c * (s @ s)) @ x
        return x
