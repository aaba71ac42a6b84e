"""Functions with a choice that tests run: by ``choose``, which is `cond` or Python's own."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dgrr.tape import checkpoint, ops

from .loops import drawn

Choose = Callable[..., Any]


def if_of(truth: bool) -> Choose:
    """What cond means, where the truth is known."""
    return lambda pred, on_true, on_false, *args: (on_true if truth else on_false)(*args)


def plain(p, t, choose):
    return choose(t > 0.0, lambda x: ops.tanh(x @ p["w"]), lambda x: x * p["b"], p["x"])


def chained(p, t, choose):
    """What the sides use is used before and behind them, so the order of sums can be seen."""
    x = ops.sin(p["x"] @ p["w"]) * p["b"]
    y = choose(t > 0.0, lambda x: ops.tanh(x @ p["w"]) * p["b"] + x @ p["w"], lambda x: x * p["b"], x)
    return ops.cos(y @ p["w"]) * p["b"] + x


def several(p, t, choose):
    """Results are nested, and some are integers."""

    def on_true(x, more):
        return {"a": x.sum(), "n": [ops.argmax(x, 1)]}

    def on_false(x, more):
        return {"a": more["b"].sum() * x.mean(), "n": [ops.argmin(x, 1)]}

    made = choose(t > 0.0, on_true, on_false, p["x"], {"b": p["b"]})
    return made["a"] * ops.cast(made["n"][0], "float64").sum()


def handed_on(p, t, choose):
    return choose(t > 0.0, lambda x: p["b"], lambda x: x, p["x"][0])


def constant_side(p, t, choose):
    return choose(t > 0.0, lambda x: x * 2.0, lambda x: np.full(4, 3.0, str(x.dtype)), p["b"])


def twice(p, t, choose):
    """One value is two results."""

    def on_true(x):
        y = x * p["b"]
        return y, y

    a, b = choose(t > 0.0, on_true, lambda x: (x, x + 1.0), p["x"])
    return a * b


def inner_choice(p, t, choose):
    def on_true(x):
        return choose(x.sum() > -100.0, lambda x: x * p["b"], lambda x: x - p["b"], x)

    return choose(t > 0.0, on_true, lambda x: ops.exp(x), p["x"])


def around_scan(p, t, choose):
    def on_true(x):
        last, ys = ops.scan(lambda h, r: (ops.tanh(h * p["b"] + r), h * r), p["b"], x)
        return last + ys.sum(0)

    return choose(t > 0.0, on_true, lambda x: x[0] * p["b"], p["x"])


def checkpointed(p, t, choose):
    def on_true(x):
        return checkpoint(lambda x: ops.tanh(ops.sin(x @ p["w"])))(x)

    return choose(t > 0.0, on_true, lambda x: x, p["x"])


def dropping(p, t, choose):
    def on_true(x):
        return ops.dropout(x * p["b"], np.array(3), p=0.5, seed=1)

    return choose(t > 0.0, on_true, lambda x: x * 2.0, p["x"])


CHOICES = {
    f.__name__: f
    for f in (
        plain,
        chained,
        several,
        handed_on,
        constant_side,
        twice,
        inner_choice,
        around_scan,
        checkpointed,
        dropping,
    )
}


def parameters(dtype: str = "float64") -> dict[str, np.ndarray]:
    """What they take."""
    return {name: a.astype(dtype) for name, a in {"w": drawn(1, 4, 4), "b": drawn(2, 4), "x": drawn(3, 5, 4)}.items()}


def loss_of(f, p, t, choose):
    """A number that depends on all that a function gives."""
    y = f(p, t, choose)
    return (y * drawn(7, *tuple(y.shape))).sum() if tuple(y.shape) else y * 1.5
