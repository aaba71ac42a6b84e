"""Rows of elementwise ops."""

from collections.abc import Callable
from typing import Any

from .row import Arguments, Arrays, Attrs, Draw, Row, drawn, sized


def away(*points: float, **attrs: Callable[[Draw], Any]) -> Arguments:
    """One array away from points."""
    return lambda draw: ({"x": draw.away(draw.shape(sizes=(0, 5)), *points)}, drawn(draw, attrs))


def positive(**attrs: Callable[[Draw], Any]) -> Arguments:
    """One array of positive values."""
    return lambda draw: ({"x": draw.positive(*draw.shape(sizes=(0, 5)))}, drawn(draw, attrs))


def clamped(draw: Draw) -> tuple[Arrays, Attrs]:
    low, high = sorted((draw.real(-1.0, 0.0), draw.real(0.2, 1.0)))
    return {"x": draw.away(draw.shape(), low, high)}, {"low": low, "high": high}


def apart(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape()
    a, b = draw.distinct(2, *shape)
    return {"a": a, "b": b}, {}


def few_values(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape()
    return {name: draw.indices(0, 3, *shape).astype(float) for name in "ab"}, {}


def quotient(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape(sizes=(0, 5))
    return {"a": draw.normal(*shape), "b": draw.away(shape, 0.0)}, {}


def selected(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape()
    return {"condition": draw.mask(*shape), "a": draw.normal(*shape), "b": draw.normal(*shape)}, {}


TIES = "ties: halves to both"
KINK = "the gradient at the kink"

UNARY = [
    Row(name, lambda t, x, name=name: getattr(t, name)(x), sized("x"))
    for name in ("neg", "exp", "tanh", "sigmoid", "square", "expm1", "sin", "cos", "erf")
]
POSITIVE = [
    Row(name, lambda t, x, name=name: getattr(t, name)(x), positive(), "the values at 0 and below")
    for name in ("sqrt", "log", "rsqrt", "log1p")
]
COMPARISONS = [
    Row(name, lambda t, a, b, name=name: getattr(t, name)(a, b), few_values)
    for name in ("less", "less_equal", "greater", "greater_equal", "not_equal")
]
ROWS = [
    *UNARY,
    *POSITIVE,
    *COMPARISONS,
    Row("equal", lambda t, a, b: t.eq(a, b), few_values),
    Row("inv", lambda t, x: 1 / x, away(0.0)),
    Row("safe_log", lambda t, x, eps: t.log(x + eps), positive(eps=lambda draw: draw.real(1e-6, 0.1))),
    Row("softplus", lambda t, x: t.nn.functional.softplus(x), sized("x"), "linear beyond 20, by a threshold"),
    Row("silu", lambda t, x: t.nn.functional.silu(x), sized("x")),
    Row("gelu", lambda t, x, approximate: t.nn.functional.gelu(x, approximate=approximate),
        sized("x", approximate=lambda draw: draw.one_of("none", "tanh"))),
    Row("relu", lambda t, x: t.relu(x), away(0.0)),
    Row("absolute", lambda t, x: t.abs(x), away(0.0)),
    Row("leaky_relu", lambda t, x, negative_slope: t.nn.functional.leaky_relu(x, negative_slope),
        away(0.0, negative_slope=lambda draw: draw.real(-0.5, 0.5)), KINK),
    Row("elu", lambda t, x, alpha: t.nn.functional.elu(x, alpha), away(0.0, alpha=lambda draw: draw.real(0.1, 2.0)),
        KINK),
    *(Row(name, lambda t, x, name=name: getattr(t.nn.functional, name)(x), sized("x"))
      for name in ("selu", "mish", "softsign", "logsigmoid")),
    Row("celu", lambda t, x, alpha: t.nn.functional.celu(x, alpha),
        away(0.0, alpha=lambda draw: draw.one_of(0.25, 0.5, 1.0, 2.0)), "alpha is a float64 in the gradient too"),
    Row("relu6", lambda t, x: t.nn.functional.relu6(x), away(0.0, 6.0)),
    Row("hardswish", lambda t, x: t.nn.functional.hardswish(x), away(-3.0, 3.0)),
    Row("clamp", lambda t, x, low, high: t.clamp(x, low, high), clamped, "no gradient at the bounds themselves"),
    Row("scale", lambda t, x, c: x * c, sized("x", c=lambda draw: draw.real(-2.0, 2.0))),
    Row("power", lambda t, x, exponent: t.pow(x, exponent),
        positive(exponent=lambda draw: draw.one_of(0, 1, 2, -3, 7, 0.5, draw.real(-3.0, 3.0)))),
    Row("add", lambda t, a, b: t.add(a, b), sized("a", "b")),
    Row("sub", lambda t, a, b: t.sub(a, b), sized("a", "b")),
    Row("mul", lambda t, a, b: t.mul(a, b), sized("a", "b")),
    Row("div", lambda t, a, b: t.div(a, b), quotient),
    Row("maximum", lambda t, a, b: t.maximum(a, b), apart, TIES),
    Row("minimum", lambda t, a, b: t.minimum(a, b), apart, TIES),
    Row("where", lambda t, condition, a, b: t.where(condition, a, b), selected),
    Row("cast", lambda t, x, dtype: x.to(getattr(t, dtype)),
        sized("x", dtype=lambda draw: draw.one_of("float32", "float64", "int64"))),
]  # fmt: skip
