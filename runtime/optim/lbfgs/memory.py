"""What L-BFGS remembers: how the gradient changed over the last steps, and the direction that follows."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ....base.arrays import Array
from ....tape.errors import DomainError
from ..arrays import check_like
from .vectors import dot

CURVED = 1e-10
"""The least product of a step and the change of the gradient over it, for both to be kept."""

FLOAT64, INT64 = np.dtype(np.float64), np.dtype(np.int64)


class Curvature(NamedTuple):
    """A step, the change of the gradient over it, and one by their product."""

    step: Array
    change: Array
    inverse: float


class Memory:
    """The state of a run, taken from its arrays and brought back to them when a step has ended well."""

    def __init__(self, state: Mapping[str, Array], size: int, most: int) -> None:
        self._most = most
        self.count = int(_of(state, "step", (), INT64))
        self.scale = float(_of(state, "scale", (), FLOAT64))
        self.gradient, self.move = [_of(state, key, (size,), FLOAT64) for key in ("gradient", "move")]
        kept = len(state.get("inverses", ()))
        rows = [_of(state, key, (kept, size), FLOAT64) for key in ("steps", "changes")]
        inverses = _of(state, "inverses", (kept,), FLOAT64).tolist()
        self.pairs = [Curvature(*each) for each in zip(*rows, inverses, strict=True)]

    @staticmethod
    def empty(size: int) -> dict[str, Array]:
        """The state before the first step: one that has no pairs, which `arrays` then adds row by row."""
        rows = {key: np.zeros((0, size)) for key in ("steps", "changes")}
        return {
            "step": np.zeros((), INT64),
            "evaluations": np.zeros((), INT64),
            "scale": np.ones(()),
            "gradient": np.zeros(size),
            "move": np.zeros(size),
            **rows,
            "inverses": np.zeros(0),
        }

    def arrays(self, evaluations: int) -> dict[str, Array]:
        """The state as arrays of its own."""
        size = self.gradient.size
        return {
            "step": np.array(self.count),
            "evaluations": np.array(evaluations),
            "scale": np.array(self.scale),
            "gradient": self.gradient.copy(),
            "move": self.move.copy(),
            "steps": np.array([pair.step for pair in self.pairs]).reshape(-1, size),
            "changes": np.array([pair.change for pair in self.pairs]).reshape(-1, size),
            "inverses": np.array([pair.inverse for pair in self.pairs], FLOAT64),
        }

    def direction(self, gradient: Array) -> Array:
        """Where to go from a place with this gradient, which is compared with the one before. Counts the step."""
        if self.count:
            self._compare(gradient)
        self.count += 1
        self.gradient = gradient
        return self._descent(gradient)

    def _compare(self, gradient: Array) -> None:
        """Keep the last step and its change of the gradient, if the loss was curved upwards along it."""
        change = gradient - self.gradient
        product = dot(change, self.move)
        if product > CURVED:
            self.pairs = [*self.pairs, Curvature(self.move, change, 1.0 / product)][-self._most :]
            self.scale = product / dot(change, change)

    def _descent(self, gradient: Array) -> Array:
        """The negated gradient times the approximate inverse of the Hessian, by recursion forth and back.

        Source: Nocedal and Wright (2006), algorithm 7.4.
        """
        d, shares = -gradient, list[float]()
        for pair in reversed(self.pairs):
            shares.append(dot(pair.step, d) * pair.inverse)
            d = d - shares[-1] * pair.change
        d = d * self.scale
        for pair, share in zip(self.pairs, reversed(shares), strict=True):
            d = d + (share - dot(pair.change, d) * pair.inverse) * pair.step
        return d


def _of(state: Mapping[str, Array], key: str, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """An entry of the state. Raises DomainError, ShapeError or DTypeError for one that is missing or does not fit."""
    if key not in state:
        raise DomainError(f"LBFGS.step: state: expected {key!r}, which is missing; use init(params)")
    return check_like(state[key], shape, dtype, "LBFGS.step: state {!r}", key)
