"""Rows of reductions, contractions and losses."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dgrr.tape import ops

from .row import Array, Arrays, Attrs, Draw, Row


def reduced(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4), (2, 5))
    return {"x": draw.normal(*shape)}, {"axis": draw.axes(len(shape)), "keepdims": draw.one_of(False, True)}


def reduced_distinct(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, attrs = reduced(draw)
    assert arrays["x"] is not None
    return {"x": draw.distinct(*arrays["x"].shape)}, attrs


def located(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, attrs = reduced_distinct(draw)
    axis = attrs["axis"]
    return arrays, {**attrs, "axis": axis[0] if isinstance(axis, tuple) else axis}


def spread(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, attrs = reduced(draw)
    return arrays, {**attrs, "correction": draw.integer(0, 1)}


def along(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4), (1, 6))
    return {"x": draw.normal(*shape) * draw.one_of(1, 10)}, {"axis": draw.integer(-len(shape), len(shape) - 1)}


def all_axes(x: Any, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    return axis if isinstance(axis, tuple) else (axis,)


def prod(t: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    for a in sorted((a % x.ndim for a in all_axes(x, axis)), reverse=True):
        x = t.prod(x, a, keepdim=keepdims)
    return x


def matrices(draw: Draw) -> tuple[Arrays, Attrs]:
    batch = draw.shape((0, 2), (1, 3))
    m, k, n = draw.integers(3, 1, 6)
    repeated = [tuple([draw.one_of(1, size) for size in batch[draw.integer(0, len(batch)) :]]) for _ in "ab"]
    (left, right) = draw.one_of((batch, batch), (batch, ()), repeated)
    a, b = draw.normal(*left, m, k), draw.normal(*right, k, n)
    kind = draw.one_of("matrices", "matrices", "row", "column", "both")
    a, b = a if kind in ("matrices", "column") else draw.normal(k), b if kind in ("matrices", "row") else draw.normal(k)
    return {"a": a, "b": b}, {}


def layers(draw: Draw) -> tuple[Arrays, Attrs]:
    *batch, k, n = (*draw.shape((0, 3), (1, 4)), *draw.integers(2, 1, 6))
    b = draw.optional(draw.normal(n))
    return {"x": draw.normal(*batch, k), "w": draw.normal(n, k), "b": b}, {}


SUBSCRIPTS = (
    "ij,jk->ik",
    "bij,bjk->bik",
    "ij,ij->",
    "i,j->ij",
    "ii,i->i",
    "...ij,kj->...ik",
    "ij,jk->ki",
    "ijk,ijk->j",
)


def summed(draw: Draw) -> tuple[Arrays, Attrs]:
    subscripts = draw.one_of(*SUBSCRIPTS)
    sizes = {label: draw.integer(1, 4) for label in "bijk"}
    dots = draw.shape((0, 2), (1, 3))
    shapes = [
        [*(dots if term.startswith("...") else ()), *[sizes[label] for label in term.removeprefix("...")]]
        for term in subscripts.split("->")[0].split(",")
    ]
    return {name: draw.normal(*shape) for name, shape in zip("ab", shapes, strict=True)}, {"subscripts": subscripts}


def pair(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((0, 3))
    return {"a": draw.normal(*shape), "b": draw.normal(*shape)}, {}


def kinked(draw: Draw) -> tuple[Arrays, Attrs]:
    delta, shape = draw.real(0.3, 2.0), draw.shape((0, 3))
    b = draw.normal(*shape)
    return {"a": b + draw.away(shape, -delta, delta), "b": b}, {"delta": delta}


def chances(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((0, 3))
    return {"logits": 3 * draw.normal(*shape), "targets": draw.rng.random(shape)}, {}


def labelled(draw: Draw, smoothing: bool) -> tuple[Array, Array, Attrs]:
    """Scores, labels of which one at least counts, and the attributes of their losses."""
    rows, classes = draw.integers(2, 1, 6)
    ignored = draw.one_of(None, -100, draw.integer(0, classes - 1) if classes > 1 else None)
    labels = draw.indices(0, classes, rows)
    if ignored is not None:
        labels = np.where(draw.mask(rows), ignored, labels)
        labels[0] = next(c for c in range(classes) if c != ignored)
    attrs = {"label_smoothing": draw.one_of(0.0, 0.1, 1.0) if smoothing else 0.0, "ignore_index": ignored}
    return 3 * draw.normal(rows, classes), labels, attrs


def softly_classified(draw: Draw) -> tuple[Arrays, Attrs]:
    rows, classes = draw.integers(2, 1, 6)
    targets = draw.rng.dirichlet(np.ones(classes), rows)
    return {"logits": 3 * draw.normal(rows, classes), "targets": targets}, {"label_smoothing": draw.one_of(0.0, 0.3)}


def by_torch(name: str) -> Callable[..., Any]:
    """A reduction whose counterpart has this name."""
    return lambda t, x, axis, keepdims: getattr(t, name)(x, all_axes(x, axis), keepdim=keepdims)


ROWS = [
    Row("reduce_sum", by_torch("sum"), reduced),
    Row("reduce_mean", by_torch("mean"), reduced),
    Row("logsumexp", by_torch("logsumexp"), reduced),
    Row("reduce_max", by_torch("amax"), reduced_distinct, "ties: all to the first"),
    Row("reduce_min", by_torch("amin"), reduced_distinct, "ties: all to the first"),
    Row("argmax", lambda t, x, axis, keepdims: t.argmax(x, axis, keepdim=keepdims), located),
    Row("argmin", lambda t, x, axis, keepdims: t.argmin(x, axis, keepdim=keepdims), located),
    Row("prod", prod, reduced),
    Row("var", lambda t, x, axis, keepdims, correction: t.var(x, axis, correction=correction, keepdim=keepdims),
        spread),
    Row("cumsum", lambda t, x, axis: t.cumsum(x, axis), along),
    Row("softmax", lambda t, x, axis: t.softmax(x, axis), along),
    Row("log_softmax", lambda t, x, axis: t.log_softmax(x, axis), along),
    Row("matmul", lambda t, a, b: t.matmul(a, b), matrices),
    Row("linear", lambda t, x, w, b: t.nn.functional.linear(x, w, b), layers),
    Row("einsum", lambda t, a, b, subscripts: t.einsum(subscripts, a, b), summed,
        ours=lambda a, b, subscripts: ops.einsum(subscripts, a, b)),
    Row("mse_grad", lambda t, a, b: 2 * (a - b) / a.numel(), pair),
]  # fmt: skip
