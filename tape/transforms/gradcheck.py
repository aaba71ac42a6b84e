"""Checking gradients against central differences, element by element."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array
from ...base.printed import Printed
from ..errors import GradientError
from ..record.op import Op
from ..tape import Tape
from ..values.tables import PlainTable
from ..var.var import AnyVar, Var

STEPS = {np.dtype(np.float32): 2.0**-7, np.dtype(np.float64): 2.0**-20}
"""Half the distance between the two points of a difference: powers of two, near the cube root of an ULP."""

TOLERANCES = {np.dtype(np.float32): 2e-2, np.dtype(np.float64): 1e-6}
"""How far a derivative may be from its difference, relative to ``1 + |difference|``."""

CLOSER = 64
"""How much nearer a second look at a suspicious element is. At a kink the one-sided differences disagree as much."""

SUSPICIOUS = 0.1
"""Disagreement of the two one-sided differences, relative to ``1 + |difference|``, that calls for a second look."""


@dataclass(frozen=True)
class Element:
    """One derivative of ``op``: by element ``index`` of input ``input``.

    At a kink every value between the one-sided differences is right: ``bound`` includes half their distance.
    """

    op: str
    input: int
    index: tuple[int, ...]
    analytic: float
    numeric: float
    bound: float
    kink: bool

    @property
    def ok(self) -> bool:
        """Whether the two agree."""
        return abs(self.analytic - self.numeric) <= self.bound


@dataclass(frozen=True)
class GradcheckReport(Printed):
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

    @property
    def kinks(self) -> list[Element]:
        """The derivatives at kinks, right or wrong."""
        return [e for e in self.elements if e.kink]

    def table(self) -> PlainTable:
        """One row per derivative that does not agree."""
        columns = tuple(field.name for field in fields(Element))
        return PlainTable("gradcheck", columns, [asdict(e) for e in self.failures])

    def __str__(self) -> str:
        counts = f"{len(self.elements)} derivatives, {len(self.failures)} wrong, {len(self.kinks)} at kinks"
        return f"gradcheck: {counts}" if self.ok else f"gradcheck: {counts}\n{self.table()}"

    def __bool__(self) -> bool:
        return self.ok


def gradcheck(function: Callable[..., AnyVar], *inputs: npt.ArrayLike) -> GradcheckReport:
    """Compare the gradients of ``function(*vars)`` with central differences for every element of float inputs.

    A result that is no scalar is contracted with fixed weights. float64 is recommended: in float32 only gross
    faults show. An element whose one-sided differences disagree, however close one looks, is at a kink, where any
    value between the two is right. Raises GradientError if ``function`` does not return a Var.

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
    evaluate = _contracted(function, weights)
    middle = evaluate(arrays)
    elements = (
        _element(_name(function), _Line(evaluate, arrays, middle, i, index), float(gradient[index]))
        for i, leaf in enumerate(leaves)
        if arrays[i].dtype in STEPS
        for gradient in [_dense(grads[leaf], arrays[i])]
        for index in np.ndindex(arrays[i].shape)
    )
    return GradcheckReport(tuple(elements))


def _name(function: Callable[..., Any]) -> str:
    return function.name if isinstance(function, Op) else getattr(function, "__name__", type(function).__name__)


def _weights(value: Array) -> Array:
    """Weights between 1/2 and 3/2, all different, so that wrong parts of a gradient cannot cancel."""
    return (0.5 + np.arange(1, value.size + 1) / (value.size + 1)).astype(value.dtype).reshape(value.shape)


def _dense(gradient: Any, like: Array) -> Array:
    return np.zeros_like(like) if gradient is None else gradient.array


def _contracted(function: Callable[..., AnyVar], weights: Array) -> Callable[[list[Any]], float]:
    def evaluate(arrays: list[Any]) -> float:
        tape: Tape[Any] = Tape()
        out = function(*(tape.leaf(a) for a in arrays)).numpy()
        return float(np.sum(out.astype(np.float64) * weights))

    return evaluate


@dataclass(frozen=True)
class _Line:
    """The function along one element of one input."""

    evaluate: Callable[[list[Any]], float]
    arrays: list[Any]
    middle: float
    input: int
    index: tuple[int, ...]

    def slopes(self, closer: int = 1) -> tuple[float, float]:
        """The differences to the left and to the right, half the steps of a central difference."""
        array = self.arrays[self.input]
        size = max(1.0, abs(float(array[self.index])))
        h = STEPS[array.dtype] * 2.0 ** np.ceil(np.log2(size)) / closer
        return (self.middle - self._at(-h)) / h, (self._at(h) - self.middle) / h

    def _at(self, by: float) -> float:
        moved = [a.copy() if i == self.input else a for i, a in enumerate(self.arrays)]
        moved[self.input][self.index] += by
        return self.evaluate(moved)


def _element(op: str, line: _Line, analytic: float) -> Element:
    """Compare one derivative; where it or the function looks suspicious, look closer.

    Closer by, a curve is straighter and a kink as sharp as before; a kink between the two looks is out of sight.
    """
    tolerance = TOLERANCES[line.arrays[line.input].dtype]

    def judged(left: float, right: float, kink: bool = False) -> Element:
        numeric = (left + right) / 2
        bound = tolerance * (1 + abs(numeric)) + (abs(right - left) / 2 if kink else 0.0)
        return Element(op, line.input, line.index, analytic, numeric, bound, kink)

    left, right = line.slopes()
    first = judged(left, right)
    apart = abs(right - left)
    if first.ok and apart <= SUSPICIOUS * (1 + abs(first.numeric)):
        return first
    left, right = line.slopes(CLOSER)
    second = judged(left, right)
    if abs(right - left) > max(second.bound, apart / 8):
        return judged(left, right, kink=True)
    return second if second.ok else first
