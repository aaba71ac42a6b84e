"""Rows of further functions of each element, of whole numbers and masks, and of what runs along an axis."""

from typing import Any

import numpy as np

from .row import Arrays, Attrs, Draw, Row, sized


def rounded(draw: Draw) -> tuple[Arrays, Attrs]:
    """Numbers away from where they jump, and halves."""
    shape = draw.shape(sizes=(0, 5))
    whole = draw.indices(-4, 5, *shape)
    return {"x": whole + draw.rng.choice([-0.25, 0.25, 0.4], shape)}, {}


def halves(draw: Draw) -> tuple[Arrays, Attrs]:
    return {"x": draw.indices(-9, 10, *draw.shape()) / 2}, {}


def inside(draw: Draw) -> tuple[Arrays, Attrs]:
    return {"x": draw.rng.uniform(-0.95, 0.95, draw.shape(sizes=(0, 5)))}, {}


def above_one(draw: Draw) -> tuple[Arrays, Attrs]:
    return {"x": 1.1 + draw.positive(*draw.shape(sizes=(0, 5)))}, {}


def small(draw: Draw) -> tuple[Arrays, Attrs]:
    return {"x": draw.rng.uniform(-1.3, 1.3, draw.shape(sizes=(0, 5)))}, {}


def point(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape()
    return {"a": draw.away(shape, 0.0), "b": draw.away(shape, 0.0)}, {}


def base_and_exponent(draw: Draw) -> tuple[Arrays, Attrs]:
    """Positive bases under any exponent; zeros under exponents above 1, and ones under zeros."""
    shape = draw.shape(sizes=(0, 5))
    x, exponent = draw.positive(*shape), draw.normal(*shape) * 2
    zero = draw.mask(*shape)
    return {"x": np.where(zero, 0.0, x), "exponent": np.where(zero, 1.5 + np.abs(exponent), exponent)}, {}


def whole_pair(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape(sizes=(0, 5))
    b = draw.indices(1, 9, *shape) * draw.rng.choice([-1, 1], shape)
    return {"a": draw.indices(-50, 50, *shape), "b": b}, {}


def mask_pair(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape(sizes=(0, 5))
    return {"a": draw.mask(*shape), "b": draw.mask(*shape)}, {}


def running(draw: Draw) -> tuple[Arrays, Attrs]:
    """Normal values, some of them 0."""
    shape = draw.shape((1, 4), (1, 6))
    x = np.where(draw.rng.random(shape) < 0.2, 0.0, draw.normal(*shape))
    return {"x": x}, {"axis": draw.integer(-len(shape), len(shape) - 1)}


def running_distinct(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4), (1, 6))
    return {"x": draw.distinct(*shape)}, {"axis": draw.integer(-len(shape), len(shape) - 1)}


def spread(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4), (2, 5))
    attrs = {"axis": draw.axes(len(shape)), "keepdims": draw.one_of(False, True), "correction": draw.integer(0, 1)}
    return {"x": draw.normal(*shape)}, attrs


def measured(draw: Draw) -> tuple[Arrays, Attrs]:
    """No two values alike, so that one of them is the largest."""
    shape = draw.shape((1, 3), (2, 4))
    p = draw.one_of(1.0, 2.0, 3.0, 2.5, np.inf)
    x = draw.distinct(*shape)
    return {"x": x}, {"p": p, "axis": draw.axes(len(shape)), "keepdims": draw.one_of(False, True)}


def all_axes(x: Any, axis: Any) -> Any:
    return tuple(range(x.ndim)) if axis is None else axis


def unary(name: str, arguments: Any, decided: str = "") -> Row:
    return Row(name, lambda t, x: getattr(t, name)(x), arguments, decided)


def pair(name: str, arguments: Any) -> Row:
    return Row(name, lambda t, a, b: getattr(t, name)(a, b), arguments)


def along(name: str, arguments: Any) -> Row:
    return Row(name, lambda t, x, axis: getattr(t, name)(x, axis), arguments)


def _std(t: Any, x: Any, axis: Any, keepdims: bool, correction: int) -> Any:
    return t.std(x, axis, correction=correction, keepdim=keepdims)


def _norm(t: Any, x: Any, p: float, axis: Any, keepdims: bool) -> Any:
    return t.linalg.vector_norm(x, p, all_axes(x, axis), keepdim=keepdims)


def extreme(name: str, what: int) -> Any:
    """The values (0) or the indices (1) of a running extreme of torch."""
    return lambda t, x, axis: getattr(t, name)(x, axis)[what]


ROWS = [
    unary("round", halves),
    unary("sign", rounded, "the sign of NaN"),
    *[unary(name, rounded) for name in ("floor", "ceil", "trunc")],
    *[unary(name, sized("x")) for name in ("atan", "sinh", "cosh", "asinh")],
    *[unary(name, inside) for name in ("asin", "acos", "atanh")],
    unary("acosh", above_one),
    unary("tan", small),
    pair("atan2", point),
    Row("pow", lambda t, x, exponent: t.pow(x, exponent), base_and_exponent),
    *[pair(name, whole_pair) for name in ("floor_divide", "remainder")],
    *[pair(name, mask_pair) for name in ("logical_and", "logical_or", "logical_xor")],
    Row("logical_not", lambda t, x: t.logical_not(x), lambda draw: ({"x": draw.mask(*draw.shape())}, {})),
    along("cumprod", running),
    *[Row(name, extreme(name, 0), running_distinct) for name in ("cummax", "cummin")],
    Row("cumargmax", extreme("cummax", 1), running),
    Row("cumargmin", extreme("cummin", 1), running),
    Row("std", _std, spread),
    Row("norm", _norm, measured, "ties for p = inf: all to the first"),
]
