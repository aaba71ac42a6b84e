"""What the property tests give to pools: inputs that every pool takes, and arguments that it refuses."""

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...numerics.sizes import Sizes
from ...record.samples import Bad, Make, Sample, bad
from ...values.spec import Spec
from .rules import Rules, adaptive_rules, pooled, sliding_rules

SLIDING: tuple[tuple[Sizes, dict[str, Any]], ...] = (
    ((2, 5), {"kernel_size": (2,)}),
    ((2, 3, 6, 5), {"kernel_size": (2, 2)}),
    ((2, 5, 6), {"kernel_size": (3, 2), "stride": 1, "padding": 1}),
    ((1, 9, 40), {"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1)}),
    ((2, 3, 4, 5), {"kernel_size": (2, 1, 3), "stride": (1, 3, 2), "padding": (1, 0, 1)}),
    ((0, 4, 4), {"kernel_size": (2, 2)}),
)
"""Shapes with the arguments of a kernel that slides: lines, planes, overlaps, vectors of lanes, volumes, no batch."""

ADAPTIVE: tuple[tuple[Sizes, Sizes], ...] = (((2, 7), (3,)), ((2, 4, 6), (2, 3)), ((2, 3, 5), (5, 2)), ((0, 3), (2,)))
"""Shapes with output sizes."""


def plain(make: Make) -> list[Sample]:
    """Random cells."""
    return [Sample((make(*shape),), given) for shape, given in SLIDING]


OVERHANGING: tuple[tuple[Sizes, dict[str, Any]], ...] = (
    ((2, 6), {"kernel_size": (3,), "stride": 2, "ceil_mode": True}),
    ((2, 4, 40), {"kernel_size": (2, 3), "stride": 2, "padding": (1, 1), "ceil_mode": True}),
    ((2, 3, 5), {"kernel_size": (2, 3), "stride": (1, 2), "padding": ((1, 0), (0, 1))}),
)
"""Shapes with the arguments of kernels whose borders differ, or whose last window hangs over the end."""


def overhanging(make: Make, of_op: str) -> list[Sample]:
    """Borders that differ and windows that hang over, also with the attribute that only this pool has."""
    own: dict[str, Any] = {of_op: 2 if of_op == "dilation" else False}
    given = {"kernel_size": (3,), "stride": 3, "padding": ((0, 1),), "ceil_mode": True, **own}
    return [*[Sample((make(*shape),), attrs) for shape, attrs in OVERHANGING], Sample((make(2, 8),), given)]


def special(make: Make) -> list[Sample]:
    """Windows of zeros of both signs, of equal cells, of infinities and of NaNs."""
    zeros = np.array([[-0.0, 0.0, -0.0, -0.0, 0.0, -0.0]], make.dtype)
    rows = np.array([[1, 2, 2, 1, np.nan, np.inf, np.nan, -np.inf, -np.inf, np.nan, 0, 1]], make.dtype)
    ties = make.indices(3, 2, 5, 6).astype(make.dtype)
    given = {"kernel_size": (2, 2), "stride": 1}
    row = {"kernel_size": (2,), "stride": 1}
    return [Sample((zeros,), row), Sample((-zeros,), row), Sample((rows,), row), Sample((ties,), given)]


def adaptives(make: Make) -> list[Sample]:
    """Windows that adapt: overlapping, apart, and more outputs than cells."""
    return [Sample((make(*shape),), {"output_size": size}) for shape, size in ADAPTIVE]


def ruled(make: Make) -> list[tuple[Sizes, Sizes, Rules]]:
    """The shapes of the input and of the result, and the rules, of the samples above, for ops that take rules."""
    slid = [(shape, sliding_rules("pool", **given)) for shape, given in SLIDING]
    return _with_results(make, slid + [(shape, adaptive_rules(size)) for shape, size in ADAPTIVE])


def ruled_overhanging(make: Make) -> list[tuple[Sizes, Sizes, Rules]]:
    """`ruled` of borders that differ and windows that hang over the end."""
    return _with_results(make, [(shape, sliding_rules("pool", **given)) for shape, given in OVERHANGING])


def _with_results(make: Make, found: list[tuple[Sizes, Rules]]) -> list[tuple[Sizes, Sizes, Rules]]:
    return [(shape, pooled("pool", Spec(shape, make.dtype), rules).shape, rules) for shape, rules in found]


def x_errors(op: str, name: str) -> tuple[Bad, ...]:
    """What every pool refuses of its input."""
    text = f"{op}: argument 'x': expected 2 spatial axes at the end, none of them empty, got shape "
    return (
        bad(ShapeError, f"{text}(4,)", (4,), **{name: (2, 2)}),
        bad(ShapeError, f"{text}(2, 0, 4)", (2, 0, 4), **{name: (2, 2)}),
    )


def sliding_errors(op: str) -> tuple[Bad, ...]:
    """What every sliding kernel refuses."""
    two, x = {"kernel_size": (2, 2)}, (2, 4, 4)
    padding = f"{op}: argument 'padding': expected "
    return (
        *x_errors(op, "kernel_size"),
        bad(
            ShapeError, f"{padding}at most half of what the kernel spans, (2, 2), got (0, 2)", x, **two, padding=(0, 2)
        ),
        bad(ShapeError, "that hold a cell of every window, got shape (2, 4, 4)", x, kernel_size=(5, 2)),
    )
