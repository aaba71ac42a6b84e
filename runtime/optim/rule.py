"""What every optimizer is: named hyperparameters, a flat state of arrays, and an in-place step."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from math import inf
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ...tape.errors import DomainError
from ...tape.numerics.kernel import Kernel
from ...tape.numerics.launch import Words, run
from .arrays import (
    Array,
    Arrays,
    DType,
    check_float,
    check_in_place,
    check_like,
    check_names,
    contiguous,
    prepared_words,
)
from .kernels import step_inc

INT64 = np.dtype(np.int64)

PARAMETER, GRADIENT, STATE = "{}.step: parameter {!r}", "{}.step: gradient of {!r}", "{}.step: state {!r}"

WORK = 4
"""Arithmetic operations that take as long as the update of one element, which memory bounds."""

ScalarTypes: TypeAlias = Mapping[str, tuple[tuple[int, ...], DType]]

_Call: TypeAlias = tuple[int, Words, tuple[Array, ...], int]
"""What `run` takes: kernel address, words, arrays, work."""


class Law(NamedTuple):
    """The kernel that updates one parameter, and on what.

    Its arguments are the parameter, the buffers and the gradient of that parameter, the scalars of the
    state, and the vector of hyperparameters; its words are the number of elements and ``attributes``.
    """

    kernel: Kernel
    buffers: tuple[str, ...]
    scalars: tuple[str, ...]
    attributes: tuple[int, ...]


class Rule(ABC):
    """An optimizer as a frozen record of hyperparameters; the state is a dict of arrays that it is handed."""

    rule: ClassVar[str]
    """Name and version of the update law, as traces record it."""

    names: ClassVar[tuple[str, ...]]
    """The hyperparameters in the order in which kernels read them."""

    scalars: ClassVar[ScalarTypes] = {"step": ((), INT64)}
    """Shape and dtype of every state array that belongs to no parameter."""

    @property
    @abstractmethod
    def law(self) -> Law:
        """The kernel of the update, for `step` and for captured plans alike."""

    def hyperparameters(self) -> dict[str, float]:
        """Every hyperparameter by name, in the order of ``names``; flags as 0 or 1."""
        return {name: float(getattr(self, name)) for name in self.names}

    @classmethod
    @abstractmethod
    def from_hyperparameters(cls, hyper: Mapping[str, Any]) -> Self:
        """The rule whose `hyperparameters` are ``hyper``."""

    @cached_property
    def hyper(self) -> npt.NDArray[np.float64]:
        """The hyperparameters as the read-only float64 vector that kernels read."""
        vector = np.array(list(self.hyperparameters().values()))
        vector.flags.writeable = False
        return vector

    def init(self, params: Arrays) -> dict[str, Array]:
        """The state before the first step: fresh zeros, in a fixed order.

        Args:
            params: arrays of float32 or float64 by name.

        Returns:
            ``"step"`` (int64, shape ()), the rule's other scalars, then its buffers as ``"BUFFER/NAME"``,
            buffer by buffer, each with the shape and dtype of its parameter.

        Raises:
            DTypeError: a parameter is not an array of float32 or float64.
        """
        state: dict[str, Array] = {key: np.zeros(shape, dtype) for key, (shape, dtype) in self.scalars.items()}
        for buffer in self.law.buffers:
            for name, param in params.items():
                checked = check_float(param, "{}.init: parameter {!r}", self._title, name)
                state[f"{buffer}/{name}"] = np.zeros(checked.shape, checked.dtype)
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
        calls = self._calls(params, grads, state, scalars)
        self.advance(scalars)
        for address, ints, arrays, work in calls:
            run(address, ints, arrays, work)

    def advance(self, scalars: Arrays) -> None:
        """Count the step, in place."""
        run(step_inc.address(INT64), prepared_words(), (scalars["step"],), 0)

    def _calls(self, params: Arrays, grads: Arrays, state: Arrays, scalars: Arrays) -> list[_Call]:
        """The checked launches of one step, a parameter each."""
        kernel, buffers, needed, attributes = self.law
        last = (*(scalars[key] for key in needed), self.hyper)
        calls: list[_Call] = []
        for name, param in params.items():
            if name not in grads:
                continue
            p = check_float(param, PARAMETER, self._title, name)
            check_in_place(p, PARAMETER, self._title, name)
            g = check_like(grads[name], p.shape, p.dtype, GRADIENT, self._title, name)
            kept = [self._in_state(state, f"{buffer}/{name}", p.shape, p.dtype) for buffer in buffers]
            ints = prepared_words(p.size, *attributes)
            calls.append((kernel.address(p.dtype), ints, (p, *kept, contiguous(g), *last), WORK * p.size))
        return calls

    def _in_state(self, state: Arrays, key: str, shape: tuple[int, ...], dtype: DType) -> Array:
        if key not in state:
            raise DomainError(f"{self._title}.step: state: expected {key!r}, which is missing; use init(params)")
        array = check_like(state[key], shape, dtype, STATE, self._title, key)
        return check_in_place(array, STATE, self._title, key)

    @property
    def _title(self) -> str:
        return type(self).__name__


def number(where: str, value: object, low: float = 0.0, below: float = inf) -> float:
    """``value`` as a float in ``[low, below)``, else DomainError."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise DomainError(f"{where}: expected a number, got {value!r}")
    result = float(value)
    if not low <= result < below:
        bounds = f"of at least {low:g}" if below == inf else f"in [{low:g}, {below:g})"
        raise DomainError(f"{where}: expected a finite number {bounds}, got {result!r}")
    return result
