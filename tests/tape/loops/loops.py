"""Loops that tests run: each with its arguments, as scan takes them, and what it uses from around."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dgrr.tape import ops
from dgrr.tape.values.pytree import mapped

Body = Callable[[dict[str, Any]], Callable[[Any, Any], tuple[Any, Any]]]


@dataclass(frozen=True)
class Loop:
    """``body(p)`` is the body, given what is around it by name; ``last`` and ``every`` weigh results in the loss."""

    name: str
    body: Body
    carry: Any
    xs: Any
    around: dict[str, Any] = field(default_factory=dict)
    last: bool = True
    every: bool = True
    fixed: bool = False
    """Whether the first carry is a constant."""


def drawn(seed: int, *shape: int) -> np.ndarray:
    """Numbers between -1 and 1 that are no round ones, a few of them -0."""
    made = np.random.default_rng(seed).uniform(-1, 1, shape)
    return np.where(np.abs(made) < 0.1, -0.0, made)


def elman(p):
    def body(h, x):
        h = ops.tanh(ops.linear(h, p["w"]) + x)
        return h, h

    return body


def gru_like(p):
    def body(h, x):
        z = ops.sigmoid(h @ p["w"] + x)
        h = h + z * (ops.tanh(x) - h)
        return h, h

    return body


def lstm_like(p):
    def body(state, x):
        gates = ops.linear(state["h"], p["w"], p["b"]) + x
        i, f, g, o = ops.split(gates, 4, -1)
        c = ops.sigmoid(f) * state["c"] + ops.sigmoid(i) * ops.tanh(g)
        h = ops.sigmoid(o) * ops.tanh(c)
        return {"h": h, "c": c}, h

    return body


def twice(p):
    """The weight is used at two places, transposed within the body."""

    def body(h, x):
        return ops.tanh(h @ p["w"] + x @ p["w"].T), ops.relu(h * x)

    return body


def before(p):
    """Gives the state before the step."""
    return lambda h, x: (ops.tanh(h @ p["w"]) * x, h)


def both(p):
    def body(h, x):
        after = ops.sin(h * p["b"]) + x
        return after, (after, h * h)

    return body


def summed(p):
    """A running loss beside a state that does not see it."""

    def body(carry, x):
        h, loss = carry
        return (ops.tanh(h * p["b"] + x), loss + (h * x).sum()), None

    return body


def shifted(p):
    """The state before last is handed on."""

    def body(carry, x):
        a, b = carry
        return (b, ops.tanh(a * p["b"] + b * x) + b * b), a * b

    return body


def kept(p):
    """A part of the carry stays as it is."""

    def body(carry, x):
        h, w = carry
        return (ops.tanh(h * w + x * w), w), h

    return body


def swapped(p):
    def body(carry, x):
        a, b = carry
        return (b * x, a * p["b"]), None

    return body


def doubled(p):
    """One value is two parts of the carry."""

    def body(carry, x):
        a, b = carry
        h = ops.tanh(a * x + b * p["b"])
        return (h, h), (h, x)

    return body


def unrelated(p):
    """What is carried last depends on nothing that was carried."""
    return lambda h, x: (x * p["b"], h * x)


def product(p):
    """The state is a product with the state, which no kernel can write where it reads."""

    def body(h, x):
        y = h * x
        return ops.matmul(h, p["w"]), y

    return body


def signed_zeros(p):
    """Of one of both, all that flows to it is -0."""
    return lambda s, x: (s - (p["a"] * x).sum() + (p["b"] * x).sum(), None)


def closed(p):
    """Hands out what is around it."""
    return lambda h, x: (p["b"], h * x + p["b"])


def counted(p):
    def body(carry, x):
        t, h = carry
        kept_rows = ops.where(ops.broadcast_to(t % 2 == 0, (4,)), h, x)
        return (t + 1, ops.tanh(kept_rows * p["b"])), (t, h)

    return body


def dropping(p):
    """Every step has a key of its own."""

    def body(h, x):
        rows, key = x
        h = ops.dropout(ops.tanh(h * p["b"] + rows), key, p=0.4, seed=7)
        return h, h

    return body


def nested(p):
    def body(h, x):
        def inner(g, y):
            g = ops.tanh(g * p["b"] + y * h)
            return g, g * y

        g, ys = ops.scan(inner, h, x)
        return g + h * x[0], ys.sum(0)

    return body


def nested_apart(p):
    """The loop inside shares nothing with what it begins with."""

    def body(h, x):
        start = ops.sin(h)

        def inner(g, y):
            g = ops.tanh(g * p["b"] + y)
            return g, g * y

        g, ys = ops.scan(inner, start, x, reverse=True)
        return g * x[0], ys

    return body


def nothing_around(p):
    return lambda h, x: (h * x, x + 1.0)


def constant(p):
    """Uses numbers and arrays."""
    array = np.array([1.0, -2.0, 0.5, 3.0])

    def body(h, x):
        return h * 0.5 + x * array.astype(str(x.dtype)), (h * 2.0).exp()

    return body


def named(p):
    def body(h, x):
        return {"a": h["a"] * p["b"] + x["u"], "b": [h["b"][0] - x["v"] * h["a"]]}, {"y": h["b"][0]}

    return body


def loops(n: int) -> list[Loop]:
    """Every loop with n rows."""
    w, b = drawn(1, 4, 4), drawn(2, 4)
    x, h = drawn(3, n, 4), drawn(4, 4)
    keys = np.arange(n)
    gates = {"w": drawn(5, 16, 4), "b": drawn(6, 16)}
    batch = drawn(7, 3, 4)
    return [
        Loop("elman", elman, batch, drawn(8, n, 3, 4), {"w": w}),
        Loop("elman, ys alone", elman, batch, drawn(8, n, 3, 4), {"w": w}, last=False, fixed=True),
        Loop("elman, last alone", elman, batch, drawn(8, n, 3, 4), {"w": w}, every=False),
        Loop("gru", gru_like, batch, drawn(8, n, 3, 4), {"w": w}),
        Loop("gru, ys alone", gru_like, batch, drawn(8, n, 3, 4), {"w": w}, last=False),
        Loop("lstm", lstm_like, {"h": batch, "c": drawn(9, 3, 4)}, drawn(10, n, 3, 16), gates),
        Loop("lstm, ys alone", lstm_like, {"h": batch, "c": drawn(9, 3, 4)}, drawn(10, n, 3, 16), gates, last=False),
        Loop("lstm, last alone", lstm_like, {"h": batch, "c": batch}, drawn(10, n, 3, 16), gates, every=False),
        Loop("twice", twice, batch, drawn(8, n, 3, 4), {"w": w}),
        Loop("before", before, batch, drawn(8, n, 3, 4), {"w": w}),
        Loop("before, ys alone", before, batch, drawn(8, n, 3, 4), {"w": w}, last=False),
        Loop("both", both, h, x, {"b": b}),
        Loop("summed", summed, (h, np.array(0.25)), x, {"b": b}),
        Loop("shifted", shifted, (h, drawn(11, 4)), x, {"b": b}),
        Loop("shifted, last alone", shifted, (h, drawn(11, 4)), x, {"b": b}, every=False),
        Loop("kept", kept, (h, b), x),
        Loop("swapped", swapped, (h, b), x, {"b": drawn(12, 4)}),
        Loop("doubled", doubled, (h, b), x, {"b": drawn(12, 4)}),
        Loop("unrelated", unrelated, h, x, {"b": b}),
        Loop("unrelated, last alone", unrelated, h, x, {"b": b}, every=False),
        Loop("product", product, batch, drawn(8, n, 3, 4), {"w": w}),
        Loop("signed zeros", signed_zeros, np.array(0.25), np.zeros((n, 4)), {"a": b, "b": h}),
        Loop("closed", closed, h, x, {"b": b}),
        Loop("counted", counted, (np.array(3), h), x, {"b": b}),
        Loop("dropping", dropping, h, (x, keys), {"b": b}),
        Loop("nested", nested, h, drawn(13, n, 5, 4), {"b": b}),
        Loop("nested apart", nested_apart, h, drawn(13, n, 5, 4), {"b": b}),
        Loop("nothing around", nothing_around, h, x),
        Loop("constant", constant, h, x),
        Loop("named", named, {"a": h, "b": [b]}, {"u": x, "v": drawn(14, n, 4)}, {"b": drawn(15, 4)}),
    ]


NAMES = [loop.name for loop in loops(1)]


def written_out(body, carry, xs, *, reverse=False):
    """What scan means, in Python."""
    n = len(leaves_of(xs)[0].value)
    rows = [row_of(xs, t) for t in range(n)]
    found = {}
    for t in reversed(range(n)) if reverse else range(n):
        carry, found[t] = body(carry, rows[t])
    steps = [dict(paths(found[t])) for t in range(n)]
    return carry, mapped(lambda path, _: ops.stack([step[path] for step in steps]), found[0])


def row_of(xs, t):
    """Row t of each."""
    return mapped(lambda _, x: x[t], xs)


def paths(nest):
    """Values by their paths."""
    made = []
    mapped(lambda path, x: made.append((path, x)), nest)
    return made


def leaves_of(nest):
    """The values of a nest."""
    return [x for _, x in paths(nest)]


def given(loop: Loop, dtype: str) -> dict[str, np.ndarray]:
    """All arrays of a loop by name, floats of one type."""
    nests = {"around": loop.around, "carry": loop.carry, "xs": loop.xs}
    return {path: x.astype(dtype) if x.dtype.kind == "f" else x for path, x in paths(nests)}


def loss_of(loop: Loop, scan: Callable[..., Any], p: dict[str, Any], **options: Any) -> tuple[Any, list[Any]]:
    """A number that depends on the results of a loop, and these; ``p`` has `given` as Vars."""
    nests = mapped(lambda path, _: p[path], {"around": loop.around, "carry": loop.carry, "xs": loop.xs})
    carry, ys = scan(loop.body(nests["around"]), nests["carry"], nests["xs"], **options)
    wanted = [carry] * loop.last + [ys] * loop.every
    loss = None
    for i, x in enumerate(leaves_of(wanted)):
        if x.dtype.kind == "f":
            weights = drawn(100 + i, *tuple(x.shape)).astype(str(x.dtype))
            term = (x * weights).sum()
            loss = term if loss is None else loss + term
    return loss, leaves_of([carry, ys])
