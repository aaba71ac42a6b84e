"""Rows of ops that order, rearrange and pick elements, and of triangles and equations with them."""

from typing import Any

import numpy as np

from dgrr.tape import ops

from .row import Array, Arrays, Attrs, Draw, Row


def axis_of(draw: Draw, rank: int) -> int:
    return draw.integer(-rank, rank - 1)


def ordered(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    attrs = {"axis": axis_of(draw, len(shape)), "descending": draw.one_of(False, True)}
    return {"x": draw.distinct(*shape)}, attrs


def with_ties(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, attrs = ordered(draw)
    x = arrays["x"]
    assert x is not None
    return {"x": np.round(x) + 0.0}, attrs


def first_ones(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, attrs = ordered(draw)
    x, axis = arrays["x"], attrs["axis"]
    assert x is not None
    return arrays, {"k": draw.integer(0, x.shape[axis]), "axis": axis, "largest": attrs["descending"]}


def along(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    axis = axis_of(draw, len(shape))
    own = list(shape)
    own[axis] = draw.integer(0, 5)
    return {"x": draw.normal(*shape), "indices": draw.indices(0, shape[axis], *own)}, {"axis": axis}


def added_along(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    size = draw.integer(1, 4)
    arrays = {"values": draw.normal(*shape), "indices": draw.indices(0, size, *shape)}
    return arrays, {"size": size, "axis": axis_of(draw, len(shape))}


def scatter_add_along_axis(t: Any, values: Any, indices: Any, size: int, axis: int) -> Any:
    shape = list(values.shape)
    shape[axis] = size
    return t.zeros(shape, dtype=values.dtype).scatter_add(axis, indices, values)


def labelled(draw: Draw) -> tuple[Arrays, Attrs]:
    count = draw.integer(1, 5)
    return {"indices": draw.indices(0, count, *draw.shape((0, 3)))}, {"num_classes": count}


def rolled(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    axes = tuple(axis_of(draw, len(shape)) for _ in range(draw.integer(1, 3)))
    several = {"shift": draw.integers(len(axes), -6, 6), "axis": axes}
    one = {"shift": several["shift"][0], "axis": draw.one_of(None, axes[0])}
    return {"x": draw.normal(*shape)}, draw.one_of(one, several)


def roll(t: Any, x: Any, shift: Any, axis: Any) -> Any:
    return t.roll(x, shift) if axis is None else t.roll(x, shift, axis)


def flipped(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    return {"x": draw.normal(*shape)}, {"axis": draw.axes(len(shape))}


def flip(t: Any, x: Any, axis: Any) -> Any:
    return t.flip(x, tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,))


def repeated(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 4))
    axis = axis_of(draw, len(shape))
    counts = draw.integers(shape[axis], 0, 3)
    one = {"repeats": draw.integer(0, 3), "axis": draw.one_of(None, axis)}
    return {"x": draw.normal(*shape)}, draw.one_of(one, {"repeats": counts, "axis": axis})


def repeat(t: Any, x: Any, repeats: Any, axis: Any) -> Any:
    return t.repeat_interleave(x, t.tensor(repeats) if isinstance(repeats, tuple) else repeats, axis)


def tiled(draw: Draw) -> tuple[Arrays, Attrs]:
    return {"x": draw.normal(*draw.shape((0, 3)))}, {"reps": draw.integers(draw.integer(1, 4), 0, 3)}


def indexed(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((2, 4))
    sizes = draw.one_of(((2,), (2,)), ((3, 1), (2,)), ((1,), (3,)))
    places = sorted(draw.rng.permutation(len(shape))[:2])
    index: list[Any] = [draw.one_of(slice(None), slice(0, n, 2)) for n in shape]
    for place, own in zip(places, sizes, strict=True):
        index[place] = draw.indices(-shape[place], shape[place], *own)
    if draw.one_of(False, True):
        index[places[1]] = draw.mask(shape[places[1]])
        index[places[0]] = slice(None)
    return {"x": draw.normal(*shape)}, {"index": tuple(index)}


def index(t: Any, x: Any, index: Any) -> Any:
    return x[tuple(t.from_numpy(part) if isinstance(part, np.ndarray) else part for part in index)]


def windowed(draw: Draw) -> tuple[tuple[int, int], Attrs]:
    """The sizes of planes, and windows that fit into them."""
    kernel, dilation, padding = draw.integers(2, 1, 3), draw.integers(2, 1, 2), draw.integers(2, 0, 1)
    rows, columns = (d * (k - 1) + 1 + draw.integer(0, 3) for k, d in zip(kernel, dilation, strict=True))
    attrs = {"kernel_size": kernel, "dilation": dilation, "padding": padding, "stride": draw.integers(2, 1, 3)}
    return (rows, columns), attrs


def unfolded(draw: Draw) -> tuple[Arrays, Attrs]:
    sizes, attrs = windowed(draw)
    return {"x": draw.normal(*draw.integers(2, 1, 3), *sizes)}, attrs


def folded(draw: Draw) -> tuple[Arrays, Attrs]:
    sizes, attrs = windowed(draw)
    numbers = zip(sizes, *(attrs[name] for name in ("kernel_size", "dilation", "padding", "stride")), strict=True)
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in numbers]
    rows = draw.integer(1, 3) * int(np.prod(attrs["kernel_size"]))
    return {"x": draw.normal(draw.integer(1, 3), rows, int(np.prod(counts)))}, {"output_size": sizes, **attrs}


def triangular(draw: Draw) -> tuple[Arrays, Attrs]:
    return {"x": draw.normal(*draw.shape((2, 4), (0, 5)))}, {"diagonal": draw.integer(-5, 5)}


def planes(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((2, 4))
    axis1, axis2 = (int(axis) for axis in draw.rng.permutation(len(shape))[:2])
    return {"x": draw.normal(*shape)}, {"offset": draw.integer(-2, 2), "axis1": axis1 - len(shape), "axis2": axis2}


def diagonal(t: Any, x: Any, offset: int, axis1: int, axis2: int) -> Any:
    n, m = x.shape[axis1], x.shape[axis2]
    if not -n <= offset <= m:  # torch refuses a diagonal outside; ours is empty, as numpy's
        return t.diagonal(x, m, axis1, axis2) * 1
    return t.diagonal(x, offset, axis1, axis2)


def vectors(draw: Draw) -> tuple[Arrays, Attrs]:
    m, n = draw.integers(2, 0, 5)
    return {"a": draw.normal(m), "b": draw.normal(n)}, {}


def definite(draw: Draw) -> tuple[Arrays, Attrs]:
    n = draw.integer(1, 5)
    root: Array = draw.normal(*draw.shape((0, 2), (1, 3)), n, n)
    return {"a": root @ root.swapaxes(-1, -2) + n * np.eye(n)}, {}


def halved(a: Any) -> Any:
    """``(a + a.T) / 2``, through which gradients reach both triangles alike."""
    rank = len(a.shape)
    return (a + ops.swapaxes(a, rank - 1, rank - 2)) * 0.5


def systems(draw: Draw) -> tuple[Arrays, Attrs]:
    batch, (n, columns) = draw.shape((0, 2), (1, 3)), draw.integers(2, 1, 5)
    a = draw.normal(*batch, n, n) + 4 * np.eye(n)
    attrs = {name: draw.one_of(False, True) for name in ("upper", "transpose", "unitriangular")}
    return {"a": a, "b": draw.normal(*batch, n, columns)}, attrs


def solve_triangular(t: Any, a: Any, b: Any, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    given = a.mT if transpose else a
    return t.linalg.solve_triangular(given, b, upper=upper != transpose, unitriangular=unitriangular)


def equations(draw: Draw) -> tuple[Arrays, Attrs]:
    """Of matrices that are far from singular, whose pivots are not on the diagonal."""
    batch, (n, columns) = draw.shape((0, 2), (1, 3)), draw.integers(2, 1, 5)
    a = (draw.normal(*batch, n, n) + 4 * n * np.eye(n))[..., draw.rng.permutation(n), :]
    return {"a": a, "b": draw.normal(*batch, n, columns)}, {}


def factored(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, _ = equations(draw)
    a, b = arrays["a"], arrays["b"]
    assert a is not None and b is not None
    upper = draw.one_of(False, True)
    factor = draw.normal(*a.shape) + 4 * np.eye(a.shape[-1])
    return {"b": b, "factor": np.triu(factor) if upper else np.tril(factor)}, {"upper": upper}


def cholesky_solve(t: Any, b: Any, factor: Any, upper: bool) -> Any:
    """The peer's gradient is that of a matrix that is symmetric: here written out."""
    lower = factor.triu().mT if upper else factor.tril()
    half = t.linalg.solve_triangular(lower, b, upper=False)
    return t.linalg.solve_triangular(lower.mT, half, upper=True)


def of_full_rank(draw: Draw) -> tuple[Arrays, Attrs]:
    rows, columns = draw.integers(2, 1, 5)
    return {"a": draw.normal(*draw.shape((0, 2), (1, 3)), rows, columns) + 4 * np.eye(rows, columns)}, {}


def invariant(u: Any, s: Any, vh: Any) -> list[Any]:
    """What no signs of vectors change."""
    return [s, u * u, vh * vh]


ROWS = [
    Row("argsort", lambda t, x, axis, descending: t.argsort(x, dim=axis, descending=descending, stable=True), with_ties,
        "-0 < +0"),
    Row("sort", lambda t, x, axis, descending: t.sort(x, axis, descending).values, ordered),
    Row("topk", lambda t, x, k, axis, largest: t.topk(x, k, axis, largest).values, first_ones,
        "ties: the first", ours=lambda **call: ops.topk(**call)[0]),
    Row("take_along_axis", lambda t, x, indices, axis: t.take_along_dim(x, indices, axis), along),
    Row("scatter_add_along_axis", scatter_add_along_axis, added_along),
    Row("one_hot", lambda t, indices, num_classes: t.nn.functional.one_hot(indices, num_classes), labelled,
        "it is of floats", ours=lambda **call: ops.cast(ops.one_hot(**call), "int64")),
    Row("roll", roll, rolled),
    Row("flip", flip, flipped),
    Row("repeat", repeat, repeated),
    Row("tile", lambda t, x, reps: t.tile(x, reps), tiled),
    Row("index", index, indexed, "a number beside arrays is one of them, as in numpy"),
    Row("unfold", lambda t, x, **attrs: t.nn.functional.unfold(x, **attrs), unfolded),
    Row("fold", lambda t, x, **attrs: t.nn.functional.fold(x, **attrs), folded),
    Row("tril", lambda t, x, diagonal: t.tril(x, diagonal), triangular),
    Row("triu", lambda t, x, diagonal: t.triu(x, diagonal), triangular),
    Row("diagonal", diagonal, planes),
    Row("trace", lambda t, x, **attrs: diagonal(t, x, **attrs).sum(-1), planes),
    Row("outer", lambda t, a, b: t.outer(a, b), vectors),
    Row("cholesky", lambda t, a: t.linalg.cholesky((a + a.mT) / 2), definite,
        "the gradient is a lower triangle", ours=lambda a: ops.cholesky(halved(a))),
    Row("solve_triangular", solve_triangular, systems),
    Row("solve", lambda t, a, b: t.linalg.solve(a, b), equations),
    Row("inverse", lambda t, a: t.inverse(a), lambda draw: ({"a": equations(draw)[0]["a"]}, {})),
    Row("cholesky_solve", cholesky_solve, factored),
    Row("svd", lambda t, a: invariant(*t.linalg.svd(a, full_matrices=False)), of_full_rank,
        "vectors up to their signs", ours=lambda a: invariant(*ops.svd(a))),
    Row("qr", lambda t, a: list(t.linalg.qr(a)), of_full_rank, ours=lambda a: list(ops.qr(a))),
]  # fmt: skip
