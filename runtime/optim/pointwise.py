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
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from ...base.arrays import Array
from ...tape import AnyVar
from ...tape.numerics.engine.intrinsics import word
from ...tape.numerics.engine.kernel import share, vector, vector_as
from ...tape.numerics.engine.numba_internals import fixed_tuple, formula
from ...tape.numerics.simd.operations import Number
from ...tape.numerics.simd.pointwise import kernel_of
from .fields import FieldRule
from .formulas import corrected
from .in_ops import in_ops
from .kernels import bias_corr
from .rates.kernels import HYPER
from .rule import CONSTANTS, Law, Rule
from .state_ops import FLOAT64, STATE_OPS, WORK, StateOp

Update: TypeAlias = Callable[..., tuple[Number, ...]]

FIRST = 2
"""The parameter and the gradient, which every formula takes before its buffers."""

# ------------------------------------------------------------------ loops, with a formula among their globals

TEXT: Any = None
"""The formula of a kernel."""

KNOWN: Any = None
"""What reads the numbers that it takes behind the places: `alone`, `counted` or `of_averages`."""

COUNT = 1
"""How many hyperparameters it takes."""

BEHIND = 0
"""How many places behind the hyperparameters their vector with the rate of the step stands: 0 if it is the same."""


@formula
def alone(table: Any, k: int, behind: int, count: int) -> Any:
    """The hyperparameters, from the ``k``-th array on."""
    rates, others = vector_as(table, 0.0, k + behind, 0, 1), vector_as(table, 0.0, k, 0, count)
    return (rates[0], *fixed_tuple(others, count)[1:])


@formula
def counted(table: Any, k: int, behind: int, count: int) -> Any:
    """The number of the step and the hyperparameters."""
    step = vector_as(table, np.int64(0), k, 0, 1)
    return (np.float64(step[0]), *alone(table, k + 1, behind, count))


@formula
def of_averages(table: Any, k: int, behind: int, count: int) -> Any:
    """What corrects the averages of the step, and the hyperparameters."""
    corrections = vector_as(table, 0.0, k, 0, 2)
    return (corrections[0], corrections[1], *alone(table, k + 1, behind, count))


def _no_buffer(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    p, g = vector(table, 0, start, n), vector(table, 1, start, n)
    known = KNOWN(table, 2, BEHIND, COUNT)
    for i in range(n):
        (p[i],) = TEXT(p[i], g[i], *known)
    return 0


def _one_buffer(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    p, a, g = vector(table, 0, start, n), vector(table, 1, start, n), vector(table, 2, start, n)
    known = KNOWN(table, 3, BEHIND, COUNT)
    for i in range(n):
        p[i], a[i] = TEXT(p[i], g[i], a[i], *known)
    return 0


def _two_buffers(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    p, g = vector(table, 0, start, n), vector(table, 3, start, n)
    a, b = vector(table, 1, start, n), vector(table, 2, start, n)
    known = KNOWN(table, 4, BEHIND, COUNT)
    for i in range(n):
        p[i], a[i], b[i] = TEXT(p[i], g[i], a[i], b[i], *known)
    return 0


def _three_buffers(table, ints, part, parts):
    start, n = share(word(ints, 0), part, parts)
    p, g, a = vector(table, 0, start, n), vector(table, 4, start, n), vector(table, 1, start, n)
    b, c = vector(table, 2, start, n), vector(table, 3, start, n)
    known = KNOWN(table, 5, BEHIND, COUNT)
    for i in range(n):
        p[i], a[i], b[i], c[i] = TEXT(p[i], g[i], a[i], b[i], c[i], *known)
    return 0


LOOPS: tuple[Any, ...] = (_no_buffer, _one_buffer, _two_buffers, _three_buffers)
"""By the number of buffers."""


class Scalars(NamedTuple):
    """What a formula takes of the state besides buffers: the array, and what reads it in a kernel and in Python."""

    state: tuple[str, ...]
    known: Any
    numbers: Callable[[Array], tuple[Any, ...]]


NONE = Scalars((), alone, lambda array: ())
GIVEN: dict[tuple[str, ...], Scalars] = {
    ("step",): Scalars(("step",), counted, lambda step: (np.float64(step),)),
    ("c1", "c2"): Scalars(("corrections",), of_averages, tuple),
}
"""By the names of the parameters for it, which stand before the hyperparameters."""

# ------------------------------------------------------------------ laws


class PointLaw(NamedTuple):
    """A law by name, with the hyperparameters that its formula takes, in their order."""

    rule: str
    names: tuple[str, ...]
    law: Law
    formula: Update

    @property
    def about(self) -> dict[str, Any]:
        """What a rule has from its law: name, hyperparameters, the state of all parameters and what counts in it."""
        own: dict[str, Any] = {"rule": self.rule, "names": self.names, "scalars": Rule.scalars, "counters": ()}
        if "corrections" in self.law.scalars:
            own["scalars"] = {**Rule.scalars, "corrections": ((2,), FLOAT64)}
            own["counters"] = ((bias_corr, ("corrections", "step", "hyper")),)
        return own


def law(rule: str, *buffers: str) -> Callable[[Update], PointLaw]:
    """A decorator that makes the law of a rule of a formula, which is its kernel and, run by numpy, its reference.

    Args:
        rule: name and version, as traces record it.
        buffers: what the formula takes between gradient and numbers, and gives after the parameter.
    """

    def make(update: Update) -> PointLaw:
        names = tuple(inspect.signature(update).parameters)[FIRST + len(buffers) :]
        taken = next((taken for taken in GIVEN if names[: len(taken)] == taken), ())
        given, names = GIVEN.get(taken, NONE), names[len(taken) :]
        constants = (CONSTANTS,) if len(names) > HYPER else ()
        own = {"KNOWN": given.known, "BEHIND": len(constants), "COUNT": len(names)}
        kernel = kernel_of(LOOPS[len(buffers)], update, name=f"{update.__name__}_step", **own)
        found = Law(kernel, buffers, (*given.state, *constants), ())
        STATE_OPS[kernel.name] = _primitive(found, _reference(update, len(buffers), given, len(names)))
        return PointLaw(rule, names, found, update)

    return make


def _primitive(law: Law, reference: Callable[..., Sequence[Array]]) -> StateOp:
    kept = 1 + len(law.buffers)
    return StateOp(
        law.kernel, in_place=kept, work=WORK, inputs=kept + 1 + len(law.scalars) + 1, alike=kept + 1, elementwise=True,
        reference=reference,
    )  # fmt: skip


def _reference(update: Update, kept: int, given: Scalars, count: int) -> Callable[..., Sequence[Array]]:
    """The formula as numpy runs it, of what its kernel is given."""

    def reference(p: Array, *arrays: Array) -> list[Array]:
        buffers, g, behind = arrays[:kept], arrays[kept], arrays[kept + 1 :]
        scalars, constants = behind[: len(given.state)], behind[len(given.state)]
        with np.errstate(all="ignore"):
            made = update(p, g, *buffers, *given.numbers(*scalars), behind[-1][0], *constants[1:count])
        return [np.asarray(array) for array in made]

    return reference


class PointRule(FieldRule):
    """A rule whose law is a formula: ``class Lion(PointRule, law=lion)``; its fields are what the formula takes.

    A rule may have several laws, of which `chosen` is one: ``law=(sgd, sgd_momentum)``.
    """

    laws: ClassVar[tuple[PointLaw, ...]]

    def __init_subclass__(cls, law: PointLaw | tuple[PointLaw, ...] = (), **options: Any) -> None:
        super().__init_subclass__(**options)
        if law:
            cls.laws = (law,) if isinstance(law, PointLaw) else law
            for name, value in cls.laws[0].about.items():
                setattr(cls, name, value)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in self.chosen.about.items():
            if value != getattr(self, name):
                object.__setattr__(self, name, value)

    @property
    def chosen(self) -> PointLaw:
        """The law, of a rule that has several the one that its fields ask for."""
        return self.laws[0]

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
        rate, count = (p.tape.const(np.array(x, FLOAT64)) if not hasattr(x, "tape") else x for x in (lr, step))
        scalars: list[Any] = [count] if "step" in self.law.scalars else []
        if "corrections" in self.law.scalars:
            betas = [float(getattr(self, name)) for name in self.names[1:3]]
            scalars = [in_ops(corrected)(beta, count) for beta in betas]
        numbers = [float(getattr(self, name)) for name in self.names[1:]]
        made: tuple[AnyVar, ...] = in_ops(self.chosen.formula)(p, g, *buffers, *scalars, rate, *numbers)
        return made
