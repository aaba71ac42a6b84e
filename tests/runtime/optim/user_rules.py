"""Rules as users write them: of ops, and by a kernel."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dgrr.runtime.optim import Law, Rule, Schedule, ops_rule
from dgrr.tape import ops
from dgrr.tape.record import kernel, real, sqrt, vector, vector_as, word


@ops_rule("plain_rmsprop@1")
def RMSprop(p: Any, g: Any, square: Any, *, lr: Any = 1e-2, alpha: Any = 0.99, eps: Any = 1e-8) -> Any:  # noqa: N802
    """Source: torch.optim.RMSprop."""
    square = alpha * square + (1 - alpha) * (g * g)
    return p - lr * (g / (ops.sqrt(square) + eps)), square


@ops_rule("plain@1")
def Plain(p: Any, g: Any, *, lr: Any) -> Any:  # noqa: N802
    """Gradient descent, as `SGD` does it in a kernel."""
    return p - lr * g


@ops_rule("waves@3")
def Waves(  # noqa: N802
    p: Any,
    g: Any,
    a: Any,
    b: Any,
    *,
    c5: Any = 0.5,
    c4: Any = 4.0,
    c3: Any = 3.0,
    c2: Any = 2.0,
    c1: Any = 1.0,
    lr: Any,
    step: Any,
) -> Any:
    """Two buffers that change places, the count, and more hyperparameters than a kernel has."""
    return p - lr * (c1 + c2 * c3 - c4 * c5) * (a + g) / step, b, g


@kernel
def unit_step(table: Any, ints: Any, part: Any, parts: Any) -> Any:
    """``p -= lr * g / |g|``; no element of it is like another's. Table: parameter, gradient, count, hyperparameters."""
    if part == 0:
        n = word(ints, 0)
        p, g = vector(table, 0, 0, n), vector(table, 1, 0, n)
        lr = real(table, vector_as(table, 0.0, 3, 0, 1)[0])
        total = real(table, 0.0)
        for i in range(n):
            total += g[i] * g[i]
        for i in range(n):
            p[i] = p[i] - lr * g[i] / sqrt(total)
    return 0


@dataclass(frozen=True)
class Unit(Rule):
    """Steps of length ``lr`` for every parameter."""

    rule = "unit@1"
    names = ("lr",)

    lr: float | Schedule = 0.125

    @property
    def law(self) -> Law:
        return Law(unit_step, (), ("step",), ())

    @classmethod
    def from_hyperparameters(cls, hyper: Mapping[str, Any]) -> "Unit":
        return cls(**hyper)
