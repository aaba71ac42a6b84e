"""What every optimizer is: named hyperparameters, a flat state of arrays, and an in-place step."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import nan
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from ....base.arrays import Array, Arrays
from ....tape.errors import DomainError
from ....tape.numerics.engine.kernel import Kernel
from ....tape.numerics.engine.launch import Words, parts_for, run
from ....tape.values.spec import Spec
from ..arrays import (
    DType,
    check_float,
    check_in_place,
    check_like,
    check_names,
    contiguous,
    prepared_words,
)
from ..kernels import step_inc
from ..kinds import Hyperparameters, count
from ..laws.known import HYPER
from ..laws.ops_law import OpsLaw
from ..laws.pointwise import CONSTANTS, Law
from ..rates.schedules import RATE, Schedule, Vector
from ..state_ops import STATE_OPS, WORK

INT64 = np.dtype(np.int64)

PARAMETER, GRADIENT, STATE = "{}.step: parameter {!r}", "{}.step: gradient of {!r}", "{}.step: state {!r}"

ScalarTypes: TypeAlias = Mapping[str, tuple[tuple[int, ...], DType]]

_Call: TypeAlias = tuple[int, Words, tuple[Array, ...], int]
"""What `run` takes: kernel address, words, arrays, work."""

_Operands: TypeAlias = tuple[Array, list[Array], Array]
"""A parameter, its buffers, its gradient."""


class Rule(Hyperparameters, ABC, kinds={"lr": RATE}):
    """An optimizer as a frozen record of hyperparameters; the state is a dict of arrays that it is handed.

    Shapes: parameters of any shape; gradients and buffers have that of their parameter.
    Dtypes: parameters float32 or float64; gradients and buffers as their parameter; the state's ``step`` int64.
    """

    rule: ClassVar[str]
    """Name and version of the update law, as traces record it."""

    names: ClassVar[tuple[str, ...]]
    """The hyperparameters in the order in which kernels read them."""

    scalars: ClassVar[ScalarTypes] = {"step": ((), INT64)}
    """Shape and dtype of every state array that belongs to no parameter."""

    counters: ClassVar[tuple[tuple[Kernel, tuple[str, ...]], ...]] = ()
    """Kernels that follow the count of a step: each overwrites the first of the scalars named from the others,
    of which ``"hyper"`` is the vector of hyperparameters."""

    lr: float | Schedule
    """The learning rate, or the schedule that gives it: at update ``t``, from 1, ``schedule(t - 1)``."""

    @property
    @abstractmethod
    def law(self) -> Law | OpsLaw:
        """What updates a parameter, for `step` and for captured plans alike: a kernel, or a function of ops."""

    @property
    def elementwise(self) -> bool:
        """Whether each element is updated from those at its position: parts, updated apart, are what the whole is."""
        law = self.law
        return isinstance(law, Law) and law.kernel.name in STATE_OPS and STATE_OPS[law.kernel.name].elementwise

    @property
    def schedule(self) -> Schedule | None:
        """The schedule of ``lr``, None for a number."""
        return self.lr if isinstance(self.lr, Schedule) else None

    def hyperparameters(self, step: int | None = None) -> dict[str, float]:
        """Every hyperparameter by name, in the order of ``names``; flags as 0 or 1.

        Args:
            step: the number of an update, from 1, as the state array ``"step"`` has it after that update; a
                schedule has been called with ``step - 1``. A rule whose ``lr`` is a number needs none.

        Raises:
            DomainError: no step, where ``lr`` follows a schedule, or one below 1.
        """
        if step is None and self.schedule is not None:
            expected = "expected the number of an update, from 1, as lr follows a schedule"
            raise DomainError(f"{self._title}.hyperparameters: argument 'step': {expected}, got None")
        vector = self.hyper if step is None else self._hyper(self._number("hyperparameters", step))
        return dict(zip(self.names, vector.tolist(), strict=False))

    @classmethod
    @abstractmethod
    def from_hyperparameters(cls, hyper: Mapping[str, Any]) -> Self:
        """The rule whose `hyperparameters` are ``hyper``."""

    @cached_property
    def hyper(self) -> Vector:
        """The hyperparameters as the read-only float64 vector that kernels read; a scheduled ``lr`` is NaN here.

        It has at least as many elements as the kernel of schedules touches.
        """
        values = [getattr(self, name) for name in self.names]
        vector = np.zeros(max(len(values), HYPER))
        vector[: len(values)] = [nan if isinstance(value, Schedule) else float(value) for value in values]
        vector.flags.writeable = False
        return vector

    def hyper_at(self, step: int) -> Vector:
        """The vector that kernels read at update ``step``, from 1: `hyper` with the rate of that update.

        Raises DomainError for a step below 1.
        """
        return self._hyper(self._number("hyper_at", step))

    def _number(self, command: str, step: int) -> Array:
        """The checked number of an update as the state has it."""
        return np.array(count(f"{self._title}.{command}", "step", step), INT64)

    def _hyper(self, step: Array) -> Vector:
        return self.hyper if self.schedule is None else self.schedule.hyper(self.hyper, step)

    def init(self, params: Arrays) -> dict[str, Array]:
        """The state before the first step: fresh zeros, in a fixed order.

        Args:
            params: arrays of float32 or float64 by name.

        Returns:
            ``"step"`` (int64, shape ()), the rule's other scalars, then its buffers as ``"BUFFER/NAME"``,
            buffer by buffer, mostly with the shape and dtype of their parameter.

        Raises:
            DTypeError: a parameter is not an array of float32 or float64.
            DomainError, ShapeError, DTypeError: a rule of ops gives other results than it has to.
        """
        law, state = self.law, {key: np.zeros(shape, dtype) for key, (shape, dtype) in self.scalars.items()}
        for i, buffer in enumerate(law.buffers):
            for name, param in params.items():
                checked = check_float(param, "{}.init: parameter {!r}", self._title, name)
                spec = _kept(law, checked)[i]
                state[f"{buffer}/{name}"] = np.zeros(spec.shape, spec.dtype)
        if isinstance(law, OpsLaw):
            for spec in {Spec(array.shape, array.dtype): None for array in params.values()}:
                law.recorded(spec)
        return state

    def step(self, params: Arrays, grads: Arrays, state: Arrays) -> None:
        """Update parameters and state in place by one step.

        A parameter without a gradient is left alone, its buffers too. The result does not depend on the
        number of threads. On an error nothing has been changed.

        Args:
            params: C-contiguous, writeable arrays of float32 or float64 by name.
            grads: by the same names, with the parameter's shape and dtype; any strides.
            state: what `init` made for these parameters.

        Raises:
            ShapeError, DTypeError: an array does not fit its parameter.
            DomainError: an unknown or missing name, or an array that cannot be updated in place.
        """
        check_names(grads, params, "{}.step: grads", self._title)
        scalars = {key: self._in_state(state, key, *expected) for key, expected in self.scalars.items()}
        law = self.law
        operands = self._operands(params, grads, state, law)
        if isinstance(law, OpsLaw):
            self._step_by_ops(law, operands, scalars)
            return
        calls = _calls(law, operands, {**scalars, CONSTANTS: self.hyper})
        hyper = self.advance(scalars)
        for address, ints, arrays, work in calls:
            run(address, ints, (*arrays, hyper), parts_for(work))

    def _step_by_ops(self, law: OpsLaw, operands: Sequence[_Operands], scalars: Arrays) -> None:
        """Everything is computed before the first array is changed."""
        counted = {name: array.copy() for name, array in scalars.items()}
        hyper = self.advance(counted)
        made = [law.computed(p, g, kept, hyper, counted["step"]) for p, kept, g in operands]
        for (p, kept, _), results in zip(operands, made, strict=True):
            for array, result in zip((p, *kept), results, strict=True):
                array[...] = result
        for name, array in scalars.items():
            array[...] = counted[name]

    def advance(self, scalars: Arrays) -> Vector:
        """Count the step, in place; the vector of hyperparameters that its kernels read."""
        run(step_inc.address(INT64), prepared_words(), (scalars["step"],), 1)
        known = {**scalars, "hyper": self._hyper(scalars["step"])}
        for kernel, names in self.counters:
            arrays = tuple([known[name] for name in names])
            run(kernel.address(arrays[0].dtype), prepared_words(), arrays, 1)
        return known["hyper"]

    def _operands(self, params: Arrays, grads: Arrays, state: Arrays, law: Law | OpsLaw) -> list[_Operands]:
        """The checked arrays of one step, for each parameter that has a gradient."""
        found: list[_Operands] = []
        for name, param in params.items():
            if name not in grads:
                continue
            p = check_float(param, PARAMETER, self._title, name)
            check_in_place(p, PARAMETER, self._title, name)
            g = check_like(grads[name], p.shape, p.dtype, GRADIENT, self._title, name)
            kept = [
                self._in_state(state, f"{buffer}/{name}", spec.shape, spec.dtype)
                for buffer, spec in zip(law.buffers, _kept(law, p), strict=True)
            ]
            found.append((p, kept, g))
        return found

    def _in_state(self, state: Arrays, key: str, shape: tuple[int, ...], dtype: DType) -> Array:
        if key not in state:
            raise DomainError(f"{self._title}.step: state: expected {key!r}, which is missing; use init(params)")
        array = check_like(state[key], shape, dtype, STATE, self._title, key)
        return check_in_place(array, STATE, self._title, key)

    @property
    def _title(self) -> str:
        return type(self).__name__


def _kept(law: Law | OpsLaw, p: Array) -> Sequence[Spec]:
    """The specs of the buffers of a parameter."""
    spec = Spec(p.shape, p.dtype)
    return [spec] * len(law.buffers) if isinstance(law, Law) else law.kept(spec)


def _calls(law: Law, operands: Sequence[_Operands], scalars: Arrays) -> list[_Call]:
    """The launches of one step, a parameter each; the vector of hyperparameters is yet to follow."""
    last = [scalars[key] for key in law.scalars]
    calls: list[_Call] = []
    for p, kept, g in operands:
        ints = prepared_words(p.size, *law.attributes)
        calls.append((law.kernel.address(p.dtype), ints, (p, *kept, contiguous(g), *last), WORK * p.size))
    return calls
