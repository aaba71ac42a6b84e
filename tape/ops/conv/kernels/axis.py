"""Spatial axes of convolutions as kernels see them: a source, results, and which element a tap meets."""

from typing import NamedTuple


class PlanAxis(NamedTuple):
    """One spatial axis: elements of the source, results of each class, step, classes, (class, start) of each tap."""

    source: int
    results: int
    step: int
    classes: int
    taps: tuple[tuple[int, int], ...]


ONE = PlanAxis(1, 1, 1, 1, ((0, 0),))
"""An axis that changes nothing."""


def forward(source: int, results: int, kernel: int, stride: int, low: int, dilation: int) -> PlanAxis:
    """An axis of a convolution with ``low`` cells of padding before the source.

    >>> forward(source=5, results=5, kernel=3, stride=1, low=1, dilation=1).taps
    ((0, -1), (0, 0), (0, 1))
    """
    return PlanAxis(source, results, stride, 1, tuple((0, t * dilation - low) for t in range(kernel)))


def adjoint(source: int, size: int, kernel: int, stride: int, low: int, dilation: int) -> PlanAxis:
    """An axis of the adjoint that fills ``size`` elements.

    >>> adjoint(source=2, size=4, kernel=3, stride=2, low=1, dilation=1).taps
    ((1, 1), (0, 0), (1, 0))
    """
    meets = [t * dilation - low for t in range(kernel)]  # result 0 of the convolution
    return PlanAxis(source, -(-size // stride), 1, stride, tuple((i % stride, -(i // stride)) for i in meets))
