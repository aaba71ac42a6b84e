"""How far to go along a direction: the strong conditions of Wolfe, by cubic interpolation between two ends."""

from collections.abc import Callable
from math import inf, isfinite, isnan, nan, sqrt
from typing import NamedTuple

from ....base.arrays import Array

ENOUGH = 1e-4
"""The share of the decrease that the slope promises which a step must have."""
FLATTER = 0.9
"""The share of the slope that may be left."""
CLOSE = 0.1
"""The share of the interval next to an end in which a point brings too little, twice."""


class Point(NamedTuple):
    """A point of the line: how far along it, the loss, its gradient, and its slope along the line."""

    t: float
    loss: float
    gradient: Array
    slope: float


Evaluate = Callable[[float], Point]


def strong_wolfe(evaluate: Evaluate, start: Point, t: float, reach: float, tolerance: float, most: int) -> Point:
    """A point where the loss has fallen enough and the slope is flat enough, else the best that was found.

    It is tried first at ``t``, then at most ``most`` times. ``reach`` is the largest element of the direction: the
    search also ends where no element differs by ``tolerance`` between the ends of the interval. A point whose loss or
    slope is not finite counts as too far.

    Source: Nocedal and Wright (2006), algorithms 3.5 and 3.6, with the safeguards of torch.optim.LBFGS.
    """
    search = Search(evaluate, start, t, most)
    while not search.is_done and search.left and search.width * reach >= tolerance:
        search.zoom()
    return search.low


class Search:
    """A search: outwards until a good point lies between two ends, then from zoom to zoom between them."""

    def __init__(self, evaluate: Evaluate, start: Point, t: float, most: int) -> None:
        self._evaluate, self._start, self.left = evaluate, start, max(most, 0)
        self._stalled = False
        one, other = self._bracket(t)
        self.is_done = one is other
        self.low, self.high = (other, one) if other.loss < one.loss else (one, other)

    @property
    def width(self) -> float:
        """The length of the interval."""
        return abs(self.high.t - self.low.t)

    def _bracket(self, t: float) -> tuple[Point, Point]:
        """Two ends with a good point between them, or a good point twice."""
        before, point, most = self._start, self._at(t), self.left
        while self.left:
            if self._is_too_high(point) or (most - self.left > 1 and point.loss >= before.loss):
                return before, point
            if self._is_flat(point):
                return point, point
            if point.slope >= 0:
                return before, point
            t = _cubic(before, point, point.t + 0.01 * (point.t - before.t), point.t * 10)
            before, point = point, self._at(t)
            self.left -= 1
        return self._start, point

    def zoom(self) -> None:
        """Let a point between the ends take the place of one of them."""
        point = self._at(self._between())
        self.left -= 1
        if self._is_too_high(point) or point.loss >= self.low.loss:
            self.low, self.high = (point, self.low) if point.loss < self.low.loss else (self.low, point)
            return
        self.is_done = self._is_flat(point)
        if not self.is_done and point.slope * (self.high.t - self.low.t) >= 0:
            self.high = self.low
        self.low = point

    def _between(self) -> float:
        """Where to look next: at the minimum of the cubic, but not twice running close to an end."""
        first, last = sorted((self.low.t, self.high.t))
        t, margin = _cubic(self.low, self.high, first, last), CLOSE * (last - first)
        is_close = min(last - t, t - first) < margin
        if is_close and (self._stalled or not first < t < last):
            self._stalled = False
            return last - margin if abs(t - last) < abs(t - first) else first + margin
        self._stalled = is_close
        return t

    def _at(self, t: float) -> Point:
        point = self._evaluate(t)
        is_finite = isfinite(point.loss) and isfinite(point.slope)
        return point if is_finite else point._replace(loss=inf, slope=nan)

    def _is_too_high(self, point: Point) -> bool:
        return point.loss > self._start.loss + ENOUGH * point.t * self._start.slope

    def _is_flat(self, point: Point) -> bool:
        return abs(point.slope) <= -FLATTER * self._start.slope


def _cubic(a: Point, b: Point, low: float, high: float) -> float:
    """The minimum of the cubic with the losses and slopes of two points, within bounds; their middle if it has none."""
    a, b = (a, b) if a.t <= b.t else (b, a)
    found = _minimum(a, b)
    return (low + high) / 2 if isnan(found) else min(max(found, low), high)


def _minimum(a: Point, b: Point) -> float:
    """The same without bounds, NaN for none. Source: Nocedal and Wright (2006), equation 3.59."""
    if a.t == b.t:
        return nan
    first = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = first * first - a.slope * b.slope
    if not square >= 0:
        return nan
    root = sqrt(square)
    below = b.slope - a.slope + 2 * root
    return b.t - (b.t - a.t) * ((b.slope + root - first) / below) if below else nan
