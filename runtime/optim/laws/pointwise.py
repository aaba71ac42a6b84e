"""Rules that update each place of a parameter from that place alone: a formula becomes a kernel and its reference.

A formula is ``update(p, g, *buffers, [step | c1, c2], lr, *others)``, which gives a tuple of the new parameter and
buffers. The parameter, its gradient and buffers have the type of the parameter; the number of the step or what
corrects averages in it, and the hyperparameters, are float64. What follows from these is computed in float64 and
rounded once, by ``constant(p, …)``.
"""

# numba's functions carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined,call-arg"
# pyright: basic, reportCallIssue=false
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ....base.arrays import Array
from ....tape.errors import DomainError
from ....tape.numerics.basic.lines import share_lines
from ....tape.numerics.engine.intrinsics import word
from ....tape.numerics.engine.kernel import Kernel, vector
from ....tape.numerics.simd.operations import Number
from .known import CORRECTIONS, HYPER, NOTHING, STEP, kernel_again, known

Update: TypeAlias = Callable[..., tuple[Number, ...]]

CONSTANTS = "constants"
"""A law that has this among its scalars is given all hyperparameters there, and reads nothing but the rate from the
vector that follows, of which the kernel of schedules copies no more than it knows."""

FIRST = 2
"""The parameter and the gradient, which every formula takes before its buffers."""

# ------------------------------------------------------------------ loops, with a formula among their globals

TEXT: Any = None
"""The formula of a kernel."""

FROM = NOTHING
"""What stands before the hyperparameters."""

COUNT = 1
"""How many hyperparameters it takes."""

BEHIND = 0
"""How many places behind the hyperparameters their vector with the rate of the step stands: 0 if it is the same."""


def _no_buffer(table, ints, part, parts):
    start, n = share_lines(word(ints, 0), part, parts)
    p, g = vector(table, 0, start, n), vector(table, 1, start, n)
    numbers = known(table, 2, FROM, BEHIND, COUNT)
    for i in range(n):
        (p[i],) = TEXT(p[i], g[i], *numbers)
    return 0


def _one_buffer(table, ints, part, parts):
    start, n = share_lines(word(ints, 0), part, parts)
    p, a, g = vector(table, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n)
    numbers = known(table, 3, FROM, BEHIND, COUNT)
    for i in range(n):
        p[i], a[i] = TEXT(p[i], g[i], a[i], *numbers)
    return 0


def _two_buffers(table, ints, part, parts):
    start, n = share_lines(word(ints, 0), part, parts)
    p, g = vector(table, 0, start, n), vector(table, 3, start, n)
    a, b = vector(table, 1, start, n), vector(table, 2, start, n)
    numbers = known(table, 4, FROM, BEHIND, COUNT)
    for i in range(n):
        p[i], a[i], b[i] = TEXT(p[i], g[i], a[i], b[i], *numbers)
    return 0


def _three_buffers(table, ints, part, parts):
    start, n = share_lines(word(ints, 0), part, parts)
    p, g, a = vector(table, 0, start, n), vector(table, 4, start, n), vector(table, 1, start, n)
    b, c = vector(table, 2, start, n), vector(table, 3, start, n)
    numbers = known(table, 5, FROM, BEHIND, COUNT)
    for i in range(n):
        p[i], a[i], b[i], c[i] = TEXT(p[i], g[i], a[i], b[i], c[i], *numbers)
    return 0


LOOPS: tuple[Any, ...] = (_no_buffer, _one_buffer, _two_buffers, _three_buffers)
"""By the number of buffers."""


class Scalars(NamedTuple):
    """What a formula takes of the state besides buffers: the array, and its numbers in a kernel and in Python."""

    state: tuple[str, ...]
    first: int
    numbers: Callable[..., tuple[Any, ...]]


GIVEN: dict[tuple[str, ...], Scalars] = {
    ("step",): Scalars(("step",), STEP, lambda step: (np.float64(step),)),
    ("c1", "c2"): Scalars(("corrections",), CORRECTIONS, tuple),
    (): Scalars((), NOTHING, tuple),
}
"""By the names of the parameters for it, which stand before the hyperparameters."""


# ------------------------------------------------------------------ laws


class Law(NamedTuple):
    """The kernel that updates one parameter, and on what.

    Its arguments are the parameter, the buffers and the gradient of that parameter, the scalars of the
    state, and the vector of hyperparameters; its words are the number of elements and ``attributes``.
    """

    kernel: Kernel
    buffers: tuple[str, ...]
    scalars: tuple[str, ...]
    attributes: tuple[int, ...]


class PointLaw(NamedTuple):
    """A formula by the name that traces have for it, with its hyperparameters in their order, and its kernel."""

    rule: str
    names: tuple[str, ...]
    law: Law
    formula: Update
    given: Scalars

    def reference(self, p: Array, *arrays: Array) -> list[Array]:
        """The formula as numpy runs it, of what its kernel is given."""
        kept, state = len(self.law.buffers), len(self.given.state)
        buffers, g, behind = arrays[:kept], arrays[kept], arrays[kept + 1 :]
        numbers = [*self.given.numbers(*behind[:state]), behind[-1][0], *behind[state][1 : len(self.names)]]
        with np.errstate(all="ignore"):
            return [np.asarray(array) for array in self.formula(p, g, *buffers, *numbers)]


def law(rule: str, *buffers: str) -> Callable[[Update], PointLaw]:
    """A decorator that makes the law of a rule of a formula ``update(p, g, *buffers, [step | c1, c2], lr, *others)``.

    It gives a tuple of the new parameter and the new buffers, which begin as zeros. What it says of one place is the
    rule's kernel, its reference, which numpy runs, and its update in ops. It takes ``step``, the number of the update
    from 1, or ``c1, c2``, by which Adam corrects averages of the first two hyperparameters behind the rate,
    ``1 - beta ** step``; then the hyperparameters by the names that traces record. It is written in ``+ - * /``,
    ``abs``, comparisons, ``select``, ``sqrt``, ``constant`` and other formulas, without branches.

    Args:
        rule: name and version, as traces record it.
        buffers: what the formula takes between gradient and numbers; at most three.

    Raises:
        DomainError: a formula with other parameters, or too many buffers.

    >>> from dgrr.runtime.optim import law
    >>> from dgrr.tape.record import Number, constant
    >>> @law("plain@1")
    ... def plain(p: Number, g: Number, lr: float) -> tuple[Number, ...]:
    ...     return (p - constant(p, lr) * g,)
    >>> plain.rule, plain.names, plain.law.buffers
    ('plain@1', ('lr',), ())
    """

    def make(update: Update) -> PointLaw:
        names = _numbers(f"law: {rule!r}: {update.__name__}", update, buffers)
        taken = next(taken for taken in GIVEN if names[: len(taken)] == taken)
        given, names = GIVEN[taken], names[len(taken) :]
        constants = (CONSTANTS,) if len(names) > HYPER else ()
        own = {"FROM": given.first, "BEHIND": len(constants), "COUNT": len(names)}
        kernel = kernel_again(LOOPS[len(buffers)], update, f"{update.__name__}_step", **own)
        return PointLaw(rule, names, Law(kernel, buffers, (*given.state, *constants), ()), update, given)

    return make


def _numbers(where: str, update: Update, buffers: Sequence[str]) -> tuple[str, ...]:
    """The parameters of a formula behind its buffers. Raises DomainError for others than a law has."""
    names, kept = tuple(inspect.signature(update).parameters), FIRST + len(buffers)
    if len(buffers) >= len(LOOPS):
        raise DomainError(f"{where}: expected at most {len(LOOPS) - 1} buffers, got {len(buffers)}; use ops_rule")
    if len(names) <= kept:
        expected = f"expected (p, g, {''.join(f'{name}, ' for name in buffers)}[step | c1, c2], lr, *others)"
        raise DomainError(f"{where}: {expected}, got {inspect.signature(update)}")
    return names[kept:]
