"""Checking gradients against central differences, element by element."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import GradientError
from .tables import Table
from .tape import Tape
from .var import AnyVar, Var

STEPS = {np.dtype(np.float32): 2.0**-7, np.dtype(np.float64): 2.0**-20}
"""Half the distance between the two points of a difference: powers of two, near the cube root of an ULP."""

TOLERANCES = {np.dtype(np.float32): 2e-2, np.dtype(np.float64): 1e-6}
"""How far a derivative may be from its difference, relative to ``1 + |difference|``."""

KINK = 0.1
"""Relative disagreement of the two one-sided differences beyond which there is no derivative to check."""


@dataclass(frozen=True)
class Element:
    """One derivative: by element ``index`` of input ``input``."""

    input: int
    index: tuple[int, ...]
    analytic: float
    numeric: float
    bound: float
    kink: bool

    @property
    def ok(self) -> bool:
        """Whether the two agree, or the function has a kink here."""
        return self.kink or abs(self.analytic - self.numeric) <= self.bound


@dataclass(frozen=True)
class GradcheckReport:
    """Every derivative that was compared."""

    elements: tuple[Element, ...]

    @property
    def ok(self) -> bool:
        """Whether every derivative agrees."""
        return all(e.ok for e in self.elements)

    @property
    def failures(self) -> list[Element]:
        """The derivatives that do not agree, worst first."""
        wrong = [e for e in self.elements if not e.ok]
        return sorted(wrong, key=lambda e: -abs(e.analytic - e.numeric) / e.bound)

    def table(self) -> Table:
        """One row per derivative that does not agree."""
        columns = ("input", "index", "analytic", "numeric", "bound")
        return Table("gradcheck", columns, [{c: getattr(e, c) for c in columns} for e in self.failures])

    def __str__(self) -> str:
        kinks = sum(e.kink for e in self.elements)
        head = f"gradcheck: {len(self.elements)} derivatives, {len(self.failures)} wrong, {kinks} at kinks"
        return head if self.ok else f"{head}\n{self.table()}"

    def __bool__(self) -> bool:
        return self.ok


def gradcheck(function: Callable[..., AnyVar], *inputs: npt.ArrayLike) -> GradcheckReport:
    """Compare the gradients of ``function(*vars)`` with central differences for every element of float inputs.

    A result that is no scalar is contracted with fixed weights. float64 is recommended: in float32 only gross
    faults show. Raises GradientError if ``function`` does not return a Var.

    >>> import numpy as np
    >>> from dgrr.tape import ops
    >>> print(gradcheck(lambda x: ops.tanh(x) * x, np.array([0.5, -1.0])))
    gradcheck: 2 derivatives, 0 wrong, 0 at kinks
    """
    arrays = [np.array(x) for x in inputs]
    tape: Tape[Any] = Tape()
    leaves = [tape.leaf(a) for a in arrays]
    out = function(*leaves)
    if not isinstance(out, Var):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GradientError(f"gradcheck: argument 'function': expected it to return a Var, got {type(out).__name__}")
    weights = _weights(out.numpy())
    grads = tape.backward_dense(out, seed=weights)
    elements = (
        element
        for i, leaf in enumerate(leaves)
        if arrays[i].dtype in STEPS
        for element in _elements(_contracted(function, weights), arrays, i, _dense(grads[leaf], arrays[i]))
    )
    return GradcheckReport(tuple(elements))


def _weights(value: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Weights between 1/2 and 3/2, all different, so that wrong parts of a gradient cannot cancel."""
    return (0.5 + np.arange(1, value.size + 1) / (value.size + 1)).astype(value.dtype).reshape(value.shape)


def _dense(gradient: Any, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.zeros_like(like) if gradient is None else gradient.array


def _contracted(function: Callable[..., AnyVar], weights: npt.NDArray[Any]) -> Callable[[list[Any]], float]:
    def evaluate(arrays: list[Any]) -> float:
        tape: Tape[Any] = Tape()
        out = function(*(tape.leaf(a) for a in arrays)).numpy()
        return float(np.sum(out.astype(np.float64) * weights))

    return evaluate


def _elements(
    evaluate: Callable[[list[Any]], float], arrays: list[Any], i: int, gradient: npt.NDArray[Any]
) -> Iterator[Element]:
    step, tolerance = STEPS[arrays[i].dtype], TOLERANCES[arrays[i].dtype]
    middle = evaluate(arrays)
    for index in np.ndindex(arrays[i].shape):
        size = max(1.0, abs(float(arrays[i][index])))
        h = step * 2.0 ** np.ceil(np.log2(size))
        up, down = (evaluate(_moved(arrays, i, index, d)) for d in (h, -h))
        right, left, numeric = (up - middle) / h, (middle - down) / h, (up - down) / (2 * h)
        kink = abs(right - left) > KINK * (1 + abs(numeric))
        yield Element(i, index, float(gradient[index]), numeric, tolerance * (1 + abs(numeric)), kink)


def _moved(arrays: list[Any], i: int, index: tuple[int, ...], by: float) -> list[Any]:
    moved = [a.copy() if k == i else a for k, a in enumerate(arrays)]
    moved[i][index] += by
    return moved
