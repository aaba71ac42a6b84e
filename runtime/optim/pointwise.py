"""Rules that update each place of a parameter from that place alone: a formula becomes a kernel and its reference.

A formula is ``update(p, g, *buffers, step, lr, *others)``, which gives a tuple of the new parameter and buffers. The
parameter, its gradient and buffers have the type of the parameter; the number of the step and the hyperparameters are
float64. What follows from these is computed in float64 and rounded once, by ``constant(p, …)``.
"""

# numba's functions carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined,call-arg"
# pyright: basic, reportCallIssue=false
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...base.arrays import Array
from ...tape import AnyVar
from ...tape.numerics.engine.intrinsics import word
from ...tape.numerics.engine.kernel import share, vector, vector_as
from ...tape.numerics.engine.numba_internals import fixed_tuple, formula
from ...tape.numerics.math.elementary import expm1, log
from ...tape.numerics.simd.operations import Number, constant, select, sqrt
from ...tape.numerics.simd.pointwise import kernel_of
from .fields import FieldRule
from .in_ops import in_ops
from .rule import CONSTANTS, Law
from .state_ops import STATE_OPS, WORK, StateOp

Update = Callable[..., tuple[Number, ...]]

FIRST = 2
"""The parameter and the gradient, which every formula takes before its buffers."""

# ------------------------------------------------------------------ loops, with a formula among their globals

TEXT: Any = None
"""The formula of a kernel."""

COUNT = 1
"""How many hyperparameters it takes."""


@formula
def numbers(table: Any, k: int, count: int) -> Any:
    """The number of the step and the hyperparameters, from the three arrays that begin at the ``k``-th."""
    step, rates = vector_as(table, np.int64(0), k, 0, 1), vector_as(table, 0.0, k + 2, 0, 1)
    return (np.float64(step[0]), rates[0], *fixed_tuple(vector_as(table, 0.0, k + 1, 0, count), count)[1:])


def _no_buffer(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    p, g = vector(table, 0, start, n), vector(table, 1, start, n)
    known = numbers(table, 2, COUNT)
    for i in range(n):
        (p[i],) = TEXT(p[i], g[i], *known)
    return 0


def _one_buffer(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    p, a, g = vector(table, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n)
    known = numbers(table, 3, COUNT)
    for i in range(n):
        p[i], a[i] = TEXT(p[i], g[i], a[i], *known)
    return 0


def _two_buffers(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    p, g = vector(table, 0, start, n), vector(table, 3, start, n)
    a, b = vector(table, 1, start, n), vector(table, 2, start, n)
    known = numbers(table, 4, COUNT)
    for i in range(n):
        p[i], a[i], b[i] = TEXT(p[i], g[i], a[i], b[i], *known)
    return 0


def _three_buffers(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    p, g, a = vector(table, 0, start, n), vector(table, 4, start, n), vector(table, 1, start, n)
    b, c = vector(table, 2, start, n), vector(table, 3, start, n)
    known = numbers(table, 5, COUNT)
    for i in range(n):
        p[i], a[i], b[i], c[i] = TEXT(p[i], g[i], a[i], b[i], c[i], *known)
    return 0


LOOPS: tuple[Any, ...] = (_no_buffer, _one_buffer, _two_buffers, _three_buffers)
"""By the number of buffers."""


# ------------------------------------------------------------------ laws


class PointLaw(NamedTuple):
    """A law by name, with the hyperparameters that its formula takes, in their order."""

    rule: str
    names: tuple[str, ...]
    law: Law
    formula: Update


def law(rule: str, *buffers: str) -> Callable[[Update], PointLaw]:
    """A decorator that makes the law of a rule of a formula, which is its kernel and, run by numpy, its reference.

    Args:
        rule: name and version, as traces record it.
        buffers: what the formula takes between gradient and number of the step, and gives after the parameter.
    """

    def make(update: Update) -> PointLaw:
        kept = len(buffers)
        names = tuple(inspect.signature(update).parameters)[FIRST + kept + 1 :]
        kernel = kernel_of(LOOPS[kept], update, name=f"{update.__name__}_step", COUNT=len(names))

        def reference(p: Array, *given: Array) -> list[Array]:
            *operands, step, constants, rates = given
            before, g = operands[:kept], operands[kept]
            with np.errstate(all="ignore"):
                made = update(p, g, *before, np.float64(step), rates[0], *constants[1 : len(names)])
            return [np.asarray(array) for array in made]

        STATE_OPS[kernel.name] = StateOp(
            kernel, in_place=1 + kept, work=WORK, inputs=kept + 5, alike=kept + FIRST, elementwise=True,
            reference=reference,
        )  # fmt: skip
        return PointLaw(rule, names, Law(kernel, buffers, ("step", CONSTANTS), ()), update)

    return make


class PointRule(FieldRule):
    """A rule whose law is a formula: ``class Lion(PointRule, law=lion)``; its fields are what the formula takes."""

    _law: ClassVar[PointLaw]

    def __init_subclass__(cls, law: PointLaw | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if law is not None:
            cls.rule, cls.names, cls._law = law.rule, law.names, law

    @property
    def chosen(self) -> PointLaw:
        """The law, of a rule that has several the one that its fields ask for."""
        return self._law

    @property
    def law(self) -> Law:
        """The kernel of the formula."""
        return self.chosen.law

    def update(self, p: AnyVar, g: AnyVar, *buffers: AnyVar, lr: Any, step: Any) -> tuple[AnyVar, ...]:
        """The same update in ops, which can be differentiated: the new parameter and buffers, to the bit.

        Args:
            p: the parameter.
            g: its gradient.
            buffers: those of ``law.buffers``.
            lr: the rate, a number or a float64 scalar on the tape.
            step: the number of the step, from 1, likewise.
        """
        numbers = [float(getattr(self, name)) for name in self.names[1:]]
        made: tuple[AnyVar, ...] = in_ops(self.chosen.formula)(p, g, *buffers, step, lr, *numbers)
        return made


# ------------------------------------------------------------------ what formulas share


@formula
def slope(p: Number, g: Number, maximize: float, weight_decay: float) -> Number:
    """The gradient of what is made small, with an L2 penalty."""
    g = select(maximize != 0.0, -g, g)
    return select(weight_decay != 0.0, g + constant(p, weight_decay) * p, g)


@formula
def mixed(old: Number, new: Number, share: float) -> Number:
    """A running average after a new value."""
    return constant(old, share) * old + constant(old, 1.0 - share) * new


@formula
def shrunk(p: Number, lr: float, weight_decay: float) -> Number:
    """The parameter after decoupled weight decay."""
    return select(weight_decay != 0.0, constant(p, 1.0 - lr * weight_decay) * p, p)


@formula
def root(x: Number) -> Number:
    """The square root as `ops.sqrt` has it: +0 of what is not above 0, as a variance that was rounded may be."""
    zero = constant(x, 0.0)
    return sqrt(select(x <= zero, zero, x))


@formula
def one_if(condition: Any) -> Any:
    """1 where something holds, else 0, in float64."""
    one: Any = 1.0
    zero: Any = 0.0
    return select(condition, one, zero)


@formula
def correction(beta: Any, step: Any) -> Any:
    """``1 - beta ** step`` in float64, as ``-expm1(step * log(beta))``."""
    return -expm1(step * log(beta))
