"""What a comparison with another library needs: one row for an op, and what draws its arguments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

Array = npt.NDArray[Any]
Arrays = dict[str, Array | None]
Attrs = dict[str, Any]


class Draw:
    """Shapes and attributes drawn by hypothesis, and float64 arrays from a generator whose seed it draws."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw
        self.rng = np.random.default_rng(self.integer(0, 2**32 - 1))

    def integer(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        drawn: int = self._draw(st.integers(low, high))
        return drawn

    def integers(self, count: int, low: int, high: int) -> tuple[int, ...]:
        """Several of them."""
        return tuple([self.integer(low, high) for _ in range(count)])

    def one_of(self, *values: Any) -> Any:
        """One of the values."""
        return self._draw(st.sampled_from(values))

    def real(self, low: float, high: float) -> float:
        """A number between two."""
        return float(self.rng.uniform(low, high))

    def shape(self, ranks: tuple[int, int] = (0, 4), sizes: tuple[int, int] = (1, 5)) -> tuple[int, ...]:
        """Sizes for a number of axes."""
        return self.integers(self.integer(*ranks), *sizes)

    def axes(self, rank: int) -> Any:
        """All axes, one or several, counted from either end."""
        some = self._draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))
        signed = tuple([axis - rank if self.one_of(False, True) else axis for axis in some])
        return self.one_of(None, signed, signed[0])

    def optional(self, array: Array) -> Array | None:
        """An argument that may be left out."""
        return self.one_of(array, None) if self.one_of(True, False) else None

    def normal(self, *shape: int) -> Array:
        """Standard normal values."""
        return np.asarray(self.rng.standard_normal(shape))

    def positive(self, *shape: int) -> Array:
        """Values from 0.2 to 3."""
        return np.asarray(self.rng.uniform(0.2, 3.0, shape))

    def away(self, shape: Sequence[int], *points: float) -> Array:
        """Normal values at least 0.05 from each of the points, which are no nearer to each other than that."""
        x = self.normal(*shape)
        for point in points:
            near = np.abs(x - point) < 0.1
            x = np.where(near, point + 0.1 * np.where(x < point, -1.0, 1.0), x)
        return np.asarray(x)

    def distinct(self, *shape: int) -> Array:
        """Values from -2 to 2, no two of them equal or nearly so."""
        n = int(np.prod(shape))
        return np.asarray(4 * (self.rng.permutation(n) + self.rng.uniform(0.2, 0.8, n)) / max(n, 1) - 2).reshape(shape)

    def indices(self, low: int, high: int, *shape: int) -> Array:
        """Whole numbers from ``low`` to ``high - 1``."""
        return np.asarray(self.rng.integers(low, high, shape))

    def mask(self, *shape: int) -> Array:
        """Coin flips."""
        return np.asarray(self.rng.random(shape) < 0.5)


Arguments = Callable[[Draw], tuple[Arrays, Attrs]]
"""What draws the arrays of a call, by name, and its attributes."""


@dataclass(frozen=True)
class Row:
    """One op and its counterpart, ``peer(torch, **arrays, **attributes)``.

    ``ours`` is the op under another name of its arguments, where it takes a sequence; ``decided`` says where we
    decide otherwise than the peer, and so what the arguments stay away from.
    """

    op: str
    peer: Callable[..., Any]
    arguments: Arguments
    decided: str = ""
    ours: Callable[..., Any] | None = None

    @property
    def calls(self) -> st.SearchStrategy[tuple[Arrays, Attrs]]:
        """The calls to compare."""
        return st.composite(lambda draw: self.arguments(Draw(draw)))()


def sized(*names: str, **attrs: Callable[[Draw], Any]) -> Arguments:
    """Normal arrays of one shape, and attributes."""

    def arguments(draw: Draw) -> tuple[Arrays, Attrs]:
        shape = draw.shape(sizes=(0, 5))
        return {name: draw.normal(*shape) for name in names}, drawn(draw, attrs)

    return arguments


def drawn(draw: Draw, attrs: Mapping[str, Callable[[Draw], Any]]) -> Attrs:
    """The values of attributes."""
    return {name: value(draw) for name, value in attrs.items()}
