"""By how much two arrays differ: counts, figures, a histogram of ULP, the worst elements."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from ...base.arrays import Array, is_float
from ...base.ulp import FARTHEST, exact, ulp_distances
from ..json_value import Plain
from ..v2.format.digest import canonical
from .policy import Tolerance

What: TypeAlias = Literal["loss", "grad", "before", "after"]
Side: TypeAlias = Literal["a", "b"]

WORST = 3
_BINS = 8
FAR = 1 << 20
"""Above so many ULP a relative difference says more than their number."""

_TITLES: dict[What, str] = {
    "loss": "loss",
    "grad": "gradient of '{}'",
    "before": "'{}' before step 0",
    "after": "'{}' after the step",
}


@dataclass(frozen=True, slots=True)
class DifferentElement(Plain):
    """One element: its index, both values, and how many ULP they are apart (None: no floats)."""

    index: tuple[int, ...]
    a: Any
    b: Any
    ulp: int | None

    @property
    def relative(self) -> float:
        """|a - b| / max(|a|, |b|); NaN where one of them is not finite."""
        with np.errstate(all="ignore"):
            a, b = np.float64(self.a), np.float64(self.b)
            return float(abs(a - b) / max(abs(a), abs(b)))

    @property
    def distance(self) -> str:
        """How far the two are apart, in words."""
        if self.ulp is None:
            return f"apart by {abs(int(self.a) - int(self.b))}"
        if self.ulp == FARTHEST:
            return "one is NaN"
        if self.ulp == 0:
            return "zeros of another sign"
        near = self.ulp <= FAR or not np.isfinite(self.relative)
        return f"{self.ulp} ULP" if near else f"{self.relative:.2g} relative"

    def lines(self) -> list[str]:
        """For a screen: both values in decimal, as hexadecimal floats and as bits, one below the other."""
        place = f"[{', '.join(map(str, self.index))}] " if self.index else ""
        distance = f", {self.distance}" if self.index else ""
        return [f"{place}a {exact(self.a)}", f"{' ' * len(place)}b {exact(self.b)}{distance}"]

    def _told(self) -> dict[str, object]:
        """Each value as text in decimal, hexadecimal and bits."""
        return {"index": self.index, "a": exact(self.a), "b": exact(self.b), "ulp": self.ulp}


@dataclass(frozen=True, slots=True)
class TensorDifference(Plain):
    """A tensor that differs, and by how much where both traces hold its values.

    Args:
        name: of the tensor; "loss" for the loss.
        what: "loss", "grad", or the tensor "before" step 0 or "after" a step.
        shape, dtype: of the tensor.
        only_in: the one trace that has it at all, "a" or "b"; None: both.
        differing: how many elements differ; None where no values are recorded, as for all that follows.
        max_abs, max_rel: greatest absolute difference, and greatest of |a - b| / max(|a|, |b|), over the elements that
            are finite in both; None if there are none.
        histogram: how many elements are 0 (zeros of another sign), 1, 2 to 3, 4 to 7, … ULP apart, by the first of
            these numbers; 2**64 - 1: one is NaN. Empty if no floats.
        apart: about how far the tensors are apart, ||a - b|| / ||a||, where sketches alone are recorded; else None.
        eps: the greatest absolute difference in eps of the dtype, relative to the largest element of `a`; None where
            there is none, and for what is no float.
        worst: at most three elements: those that are not finite in both, then by their absolute difference.

    >>> TensorDifference("w", "grad", (2,), "f32").lines(worst=3)
    ["gradient of 'w', f32 (2,): its digests differ, its values are not recorded"]
    """

    _keys: ClassVar = (
        *("name", "what", "shape", "dtype", "only_in", "recorded", "differing", "max_abs", "max_rel"),
        *("ulp_histogram", "worst", "apart", "eps"),
    )

    name: str
    what: What
    shape: tuple[int, ...]
    dtype: str
    only_in: Side | None = None
    differing: int | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    histogram: tuple[tuple[int, int], ...] = ()
    worst: tuple[DifferentElement, ...] = ()
    apart: float | None = None
    eps: float | None = None

    @property
    def recorded(self) -> bool:
        """Whether both traces hold the values."""
        return self.differing is not None

    @property
    def ulp_histogram(self) -> dict[int, int]:
        """The histogram, by the first number of each bin."""
        return dict(self.histogram)

    @property
    def title(self) -> str:
        """What it is, such as ``gradient of 'w'``."""
        return _TITLES[self.what].format(self.name)

    def figures(self) -> str:
        """How many elements differ and by how much at most, in a line."""
        if self.only_in is not None:
            return f"in {self.only_in} only"
        if self.apart is not None:
            return f"relatively about {self.apart:.2g} apart as a whole, by sketches"
        if self.differing is None:
            return "its digests differ, its values are not recorded"
        if not self.differing:
            return "equal values of different types"
        if not self.shape:
            far = "relative" in self.worst[0].distance  # which is said already
            return f"differs{self._by('by')}{'' if far else f', {self.worst[0].distance}'}"
        return f"{self.differing} of {int(np.prod(self.shape))} differ{self._by('by up to')}"

    def _by(self, how: str) -> str:
        if self.max_abs is None or self.max_rel is None:
            return ", not finite in both"
        return f" {how} {self.max_abs:.3g}, relatively {self.max_rel:.3g}"

    def lines(self, *, worst: int) -> list[str]:
        """For a screen, with so many of the worst elements."""
        shape = f" {self.shape}" if self.shape else ""
        lines = [f"{self.title}, {self.dtype}{shape}: {self.figures()}"]
        near = any(first < FAR for first, _ in self.histogram)  # else the relative difference has said it
        if near and self.shape:
            lines.append(f"  ULP {histogram_line(self.histogram)}")
        return lines + [f"  {line}" for element in self.worst[:worst] for line in element.lines()]


def tensor_difference(
    name: str, what: What, dtype: str, a: Array, b: Array, tolerance: Tolerance
) -> TensorDifference | None:
    """By how much two arrays of one dtype and shape differ; None if no element does by more than the tolerance."""
    a, b = canonical(a), canonical(b)
    differs = tolerance.differs(a, b)
    if not differs.any():
        return None
    places = np.flatnonzero(differs)
    x, y = a.reshape(-1)[places], b.reshape(-1)[places]
    ulps = ulp_distances(x, y) if is_float(a.dtype) else None
    absolute, relative = _apart(x, y)
    return TensorDifference(
        *(name, what, a.shape, dtype, None, len(places), _largest(absolute), _largest(relative)),
        histogram=() if ulps is None else ulp_histogram(ulps),
        worst=tuple(_worst(a.shape, places, x, y, absolute, ulps)),
        eps=_in_eps(a, _largest(absolute)),
    )


def _in_eps(a: Array, absolute: float | None) -> float | None:
    """A difference in eps of the largest element of an array."""
    largest = float(np.max(abs(a.astype(np.float64)), initial=0.0, where=np.isfinite(a)))
    if absolute is None or not largest or not is_float(a.dtype):
        return None
    eps = float(np.nextafter(a.dtype.type(1), a.dtype.type(2)) - a.dtype.type(1))
    return absolute / (largest * eps)


def _apart(x: Array, y: Array) -> tuple[Array, Array]:
    """Absolute and relative differences in float64; NaN where one value is not finite."""
    with np.errstate(all="ignore"):
        x, y = x.astype(np.float64), y.astype(np.float64)
        finite = np.isfinite(x) & np.isfinite(y)
        absolute = np.where(finite, abs(x - y), np.nan)
        scale = np.maximum(abs(x), abs(y))
        return absolute, np.where(scale == 0, absolute, absolute / scale)


def _largest(figures: Array) -> float | None:
    known = figures[~np.isnan(figures)]
    return float(known.max()) if known.size else None


def ulp_histogram(ulps: Array) -> tuple[tuple[int, int], ...]:
    """First number of each bin -> how many distances are in it, ascending."""
    counts: dict[int, int] = {}
    for distance, count in zip(*np.unique(ulps, return_counts=True), strict=True):
        n = int(distance)
        first = n if n in (0, FARTHEST) else 1 << n.bit_length() - 1
        counts[first] = counts.get(first, 0) + int(count)
    return tuple(counts.items())


def _worst(
    shape: tuple[int, ...], places: Array, x: Array, y: Array, absolute: Array, ulps: Array | None
) -> Iterator[DifferentElement]:
    """The elements with the greatest absolute difference, before them those that are not finite."""
    order = np.argsort(np.where(np.isnan(absolute), -np.inf, -absolute), kind="stable")[:WORST]
    for i in order.tolist():
        index = tuple(int(n) for n in np.unravel_index(int(places[i]), shape))
        yield DifferentElement(index, x[i], y[i], None if ulps is None else int(ulps[i]))


def histogram_line(histogram: Iterable[tuple[int, int]]) -> str:
    """A histogram in a line: bins of up to 2^20 ULP, wider ones if there are many; what is beyond in one."""
    histogram = tuple(histogram)
    for width in (1, 2, 4):
        counts: dict[str, int] = {}
        for first, count in histogram:
            label = _bin(first, width)
            counts[label] = counts.get(label, 0) + count
        if len(counts) <= _BINS:
            break
    return "   ".join(f"{label}: {count}" for label, count in counts.items())


def _bin(first: int, width: int) -> str:
    if first in (0, FARTHEST):
        return "zeros" if first == 0 else "NaN"
    power = (first.bit_length() - 1) // width * width
    if first >= FAR:
        return "2^20+"
    low, high = 1 << power, (1 << power + width) - 1
    if low == high:
        return str(low)
    return f"{low}-{high}" if high < 128 else f"2^{power}+"
