"""Arrays side by side along an axis: joined, stacked, and split again."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np

from ...errors import DTypeError, ShapeError, TapeError
from ...numerics.sizes import Sizes
from ...record.kinds import Kind, shown
from ...record.kinds.values import AxisOf
from ...record.lowering import Slot, call
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import D, like
from ...values.shape import normal_axis
from ...values.spec import Spec
from ...values.tensor import AnyTensor
from ...var.var import AnyVar, Gradual, Var
from . import kernels
from .reshape import reshape
from .slicing import narrow


def _appended(a: Spec, b: Spec, axis: int) -> Spec:
    at = normal_axis("append", axis, a.rank)
    before, n, after = a.shape[:at], a.shape[at], a.shape[at + 1 :]
    if b.rank != a.rank or (b.shape[:at], b.shape[at + 1 :]) != (before, after):
        wanted = ", ".join([*map(str, before), "n", *map(str, after)]) + ("," if a.rank == 1 else "")
        raise ShapeError(f"append: argument 'b': expected shape ({wanted}), got {b.shape}")
    return like(a, (*before, n + b.shape[at], *after))


def _lower_append(a: Slot, b: Slot, axis: int) -> Slot:
    at = normal_axis("append", axis, a.spec.rank)
    out = _appended(a.spec, b.spec, axis)
    return call(kernels.append, [a, b], out.shape, prod(a.shape[:at]), prod(a.shape[at:]), prod(b.shape[at:]))


def _appends(make: Make) -> list[Sample]:
    cases: tuple[tuple[Sizes, Sizes, int], ...] = (
        ((3,), (5,), 0), ((2, 3), (4, 3), 0), ((2, 3, 4), (2, 1, 4), 1), ((2, 3), (2, 70), -1), ((0, 3), (2, 3), 0),
        ((2, 3), (2, 0), 1), ((0,), (0,), 0),
    )  # fmt: skip
    plain = [Sample((make(*a), make(*b)), {"axis": axis}) for a, b, axis in cases]
    others = [Sample((np.arange(3), np.arange(2))), Sample((make.mask(2, 3), make.mask(2, 2)), {"axis": 1})]
    return [*plain, Sample((make(3, 4).T, make(3, 2).T)), *others]


@op(
    infer=_appended,
    lower=_lower_append,
    vjp=(
        lambda g, a_shape, axis: narrow(g, 0, a_shape[axis], axis),
        lambda g, a_shape, b_shape, axis: narrow(g, a_shape[axis], b_shape[axis], axis),
    ),
    jvp=lambda da, db, axis: append(da, db, axis),
    reference=lambda a, b, axis=0: np.concatenate([a, b], axis),
    samples=_appends,
    errors=(
        bad(ShapeError, "append: argument 'b': expected shape (n, 3), got (2, 4)", (2, 3), (2, 4)),
        bad(ShapeError, "append: argument 'b': expected shape (2, n), got (3,)", (2, 3), (3,), axis=1),
        bad(ShapeError, "append: argument 'b': expected shape (n,), got (2, 2)", (2,), (2, 2)),
    ),
    covers=("concat_vectors", "concat_dim0"),
    excused={"batch": "by default the batch grows"},
    kinds={"axis": AxisOf("a")},
)
def append(a: Gradual[D], b: Gradual[D], axis: int = 0) -> Gradual[D]:
    """``a`` and ``b`` one after the other along an axis. See concat for more than two.

    Source: numpy.concatenate of two.
    Shapes: a (*A, m, *B), b (*A, n, *B) -> (*A, m + n, *B); m and n are the sizes of ``axis``

    >>> from dgrr.tape import Tape, ops
    >>> ops.append(Tape().leaf([1.0]), [2.0, 3.0]).numpy()
    array([1., 2., 3.])
    """
    ...


def concat(xs: Sequence[Any], axis: int = 0) -> AnyVar:
    """Several arrays one after the other along an axis, by `append` of neighbours in rounds: log2 n copies of each.

    Arrays become constants.

    Source: numpy.concatenate.
    Shapes: xs (*A, n1, *B), (*A, n2, *B), ... -> (*A, n1 + n2 + ..., *B)
    Dtypes: the arrays and the result float32, float64, int64 or bool, all alike.
    Raises:
        ShapeError: there is no array, ``axis`` is none of theirs, or their other axes differ.
        DTypeError: the arrays have different dtypes, or ``axis`` is no whole number.
        TapeError: no Var or tensor is among them.

    >>> from dgrr.tape import Tape, ops
    >>> tape = Tape()
    >>> ops.concat([tape.leaf([1.0]), tape.leaf([2.0, 3.0]), [4.0]]).numpy()
    array([1., 2., 3., 4.])
    """
    parts: list[AnyVar] = _operands("concat", xs)
    axis = WHOLE("concat: argument 'axis'", axis)
    normal_axis("concat", axis, len(parts[0].shape))
    while len(parts) > 1:
        pairs = [append(a, b, axis) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def stack(xs: Sequence[Any], axis: int = 0) -> AnyVar:
    """Several arrays of one shape along a new axis.

    Source: numpy.stack.
    Shapes: n arrays xs (*A, *B) -> (*A, n, *B); A are the axes before ``axis``
    Dtypes: the arrays and the result float32, float64, int64 or bool, all alike.
    Raises:
        ShapeError: there is no array, shapes differ, or ``axis`` is none of the result's.
        DTypeError: the arrays have different dtypes, or ``axis`` is no whole number.
        TapeError: no Var or tensor is among them.

    >>> from dgrr.tape import Tape, ops
    >>> tape = Tape()
    >>> ops.stack([tape.leaf([1.0, 2.0]), [3.0, 4.0]], axis=1).numpy()
    array([[1., 3.],
           [2., 4.]])
    """
    parts = _operands("stack", xs)
    shape: Sizes = tuple(parts[0].shape)
    a = normal_axis("stack", WHOLE("stack: argument 'axis'", axis), len(shape) + 1)
    for i, part in enumerate(parts):
        if tuple(part.shape) != shape:
            raise ShapeError(f"stack: argument 'xs': expected shape {shape} as of the first, got {part.shape} at {i}")
    return concat([reshape(part, (*shape[:a], 1, *shape[a:])) for part in parts], a)


def _operands(name: str, xs: Any, argument: str = "xs") -> list[Any]:
    """The arrays as Vars and tensors."""
    if not isinstance(xs, list | tuple):
        raise DTypeError(f"{name}: argument 'xs': expected a list or a tuple of arrays, got {shown(xs)}")
    given = cast(Sequence[Any], xs)
    if not given:
        raise ShapeError(f"{name}: argument 'xs': expected at least one array, got none")
    if not any(isinstance(x, Var | AnyTensor) for x in given):
        raise TapeError(f"{name}: expected a Var among the arguments; put an array on a tape with tape.leaf")
    return [x if isinstance(x, Var | AnyTensor) else AnyTensor.leaf(x, f"{name}: argument {argument!r}") for x in given]


def split(x: Any, parts: int | Sequence[int], axis: int = 0) -> list[Any]:
    """``x`` cut along an axis into so many equal parts, or into parts of the sizes given; each is a `narrow`.

    Source: torch.split for sizes; numpy.split for a number of parts.
    Shapes: x (*A, n, *B) -> a list of (*A, part, *B); the parts add up to n
    Dtypes: x and the results float32, float64, int64 or bool, all alike.
    Raises:
        ShapeError: the parts do not make up the axis, or x has no such axis.
        DTypeError: ``parts`` or ``axis`` are no whole numbers.
        TapeError: x is no Var or tensor.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([1.0, 2.0, 3.0, 4.0])
    >>> [part.numpy().tolist() for part in ops.split(x, [1, 3])]
    [[1.0], [2.0, 3.0, 4.0]]
    """
    (x,) = _operands("split", [x], "x")
    axis, parts = WHOLE("split: argument 'axis'", axis), PARTS("split: argument 'parts'", parts)
    n = x.shape[normal_axis("split", axis, len(x.shape))]
    if isinstance(parts, int):
        if parts < 1 or n % parts:
            raise ShapeError(f"split: argument 'parts': expected a divisor of the {n} along axis {axis}, got {parts}")
        parts = [n // parts] * parts
    if sum(parts) != n or min(parts, default=0) < 0:
        raise ShapeError(f"split: argument 'parts': expected sizes that add up to {n}, got {tuple(parts)}")
    starts = [sum(parts[:i]) for i in range(len(parts))]
    return [narrow(x, start, size, axis) for start, size in zip(starts, parts, strict=True)]


WHOLE = Kind(int)
PARTS = Kind(int | tuple[int, ...])
