"""Unpooling: the largest cells of windows put back where they stood."""

from math import prod
from typing import Any

import numpy as np

from ....base.arrays import Array
from ...errors import BoundsError, ShapeError
from ...numerics.sizes import Sizes
from ...record.composed import composed, fitted
from ...record.derivative import NO_GRAD
from ...record.kinds.values import PerAxis, each
from ...record.lowering import Slot, call
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import F, like
from ...values.dtypes import i64
from ...values.per_axis import PerAxis as Numbers
from ...values.spec import Spec
from ...var.var import Gradual
from ..indices.take_or_zero import take_or_zero
from ..shape.reshape import reshape
from .kernels import unpool as kernels
from .reference import pools as reference
from .rules import KERNEL, SIZES, sizes_for


def _sources(indices: Spec, size: Sizes) -> Spec:
    return like(indices, (*indices.shape[: indices.rank - len(size)], *size))


def _lower_sources(indices: Slot, size: Sizes) -> Slot:
    out = _sources(indices.spec, size)
    planes, n = prod(out.shape[: len(out.shape) - len(size)]), prod(indices.shape[indices.spec.rank - len(size) :])
    refusal = f"max_unpool: argument 'indices': expected 0 to {prod(size) - 1}, got {{value}} at position {{position}}"
    return call(kernels.last_sources, [indices], out.shape, planes, n, prod(size), refusal=refusal)


@op(
    infer=_sources,
    lower=_lower_sources,
    along=NO_GRAD,
    reference=reference.unpool_sources,
    samples=lambda make: [
        Sample((np.array([[0, 3, 3], [5, 1, 0]]),), {"size": (6,)}),
        Sample((np.array([[[[0, 3], [9, 9]]]]),), {"size": (4, 3)}),
        Sample((np.zeros((0, 2), np.int64),), {"size": (3,)}),
    ],
    excused={"batch": "a source is counted over the whole batch"},
    private=True,
)
def unpool_sources(indices: Gradual[i64], size: Sizes) -> Gradual[i64]:
    """For each cell of planes of ``size`` the flat number of the last index that names it, or -1."""
    ...


def _unpooled(x: Sizes, kernel_size: Sizes, stride: Numbers | None, padding: Numbers, size: Sizes | None) -> Sizes:
    """The spatial sizes of the result. Raises ShapeError."""
    name, kernel = "max_unpool", kernel_size
    rank = len(kernel)
    strides, paddings = each(kernel if stride is None else stride, rank), each(padding, rank)
    if len(x) < rank:
        raise ShapeError(f"{name}: argument 'x': expected {rank} spatial axes at the end, got shape {x}")
    rules = zip(x[len(x) - rank :], kernel, strides, paddings, strict=True)
    usual = tuple((n - 1) * s - 2 * p + k for n, k, s, p in rules)
    found = usual if size is None else size
    if len(found) != rank or any(abs(n - u) >= s for n, u, s in zip(found, usual, strides, strict=True)):
        raise ShapeError(
            f"{name}: argument 'output_size': expected sizes less than a stride {strides} from {usual}, got {size}"
        )
    return sizes_for(name, "output_size", found)


def _reference(x: Array, indices: Array, **attrs: Any) -> Array:
    options: dict[str, Any] = {"stride": None, "padding": 0, "output_size": None, **attrs}
    size = _unpooled(x.shape, options["kernel_size"], options["stride"], options["padding"], options["output_size"])
    return reference.max_unpool(x, indices, size)


def _samples(make: Make) -> list[Sample]:
    apart = np.array([[[0, 3, 5], [12, 8, 10]], [[7, 2, 4], [6, 9, 11]]])
    return [
        Sample((make(2, 3), np.array([[0, 3, 5], [1, 2, 4]])), {"kernel_size": (2,)}),
        Sample((make(2, 2, 3), apart), {"kernel_size": (2, 2), "stride": (1, 2), "padding": (0, 1),
                                        "output_size": (3, 5)}),
        Sample((make(1, 3), np.array([[1, 1, 4]])), {"kernel_size": (3,), "stride": 1}),
        Sample((make(0, 2), np.zeros((0, 2), np.int64)), {"kernel_size": (2,)}),
    ]  # fmt: skip


TWO = np.zeros((1, 2), np.int64)


@composed(
    reference=_reference,
    samples=_samples,
    errors=(
        bad(
            BoundsError,
            "max_unpool: argument 'indices': expected 0 to 3, got 4 at position 1",
            (1, 2),
            np.array([[0, 4]]),
            kernel_size=(2,),
        ),
        bad(BoundsError, "expected 0 to 3, got -1 at position 0", (1, 2), np.array([[-1, 0]]), kernel_size=(2,)),
        bad(ShapeError, "max_unpool: argument 'indices': expected shape (1, 3), got (1, 2)", (1, 3), TWO,
            kernel_size=(2,)),
        bad(ShapeError, "max_unpool: argument 'x': expected 3 spatial axes at the end, got shape (1, 2)", (1, 2), TWO,
            kernel_size=(2, 2, 2)),
        bad(ShapeError, "argument 'output_size': expected sizes less than a stride (2,) from (4,), got (6,)", (1, 2),
            TWO, kernel_size=(2,), output_size=(6,)),
    ),
    batch_axis={"x": 0, "indices": 0},
    kinds=KERNEL | {"padding": PerAxis(0, lambda given: len(given["kernel_size"])), "output_size": SIZES},
)  # fmt: skip
def max_unpool(
    x: Gradual[F],
    indices: Gradual[i64],
    kernel_size: tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    output_size: tuple[int, ...] | None = None,
) -> Gradual[F]:
    """Zeros with each element of x at the cell of its plane that ``indices`` names, those of `max_pool_indices`.

    Of elements that name one cell the last in row-major order stands there, and it alone has a gradient. Without
    ``output_size`` the spatial sizes are ``(size - 1) stride - 2 padding + kernel``; it may differ by less than a
    stride.

    Source: torch.nn.functional.max_unpool1d, max_unpool2d and max_unpool3d.
    Shapes: x (*Bs, *windows), indices like x -> (*Bs, *output_size)

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([1.0, 3.0, 2.0, 0.0])
    >>> ops.max_unpool(ops.max_pool(x, (2,)), ops.max_pool_indices(x, (2,)), (2,)).numpy()
    array([0., 3., 2., 0.])
    """
    x, indices = fitted("max_unpool", x, indices)
    if tuple(indices.shape) != tuple(x.shape):
        raise ShapeError(f"max_unpool: argument 'indices': expected shape {tuple(x.shape)}, got {tuple(indices.shape)}")
    sources = unpool_sources(indices, _unpooled(tuple(x.shape), kernel_size, stride, padding, output_size))
    return take_or_zero(reshape(x, (prod(x.shape),)), sources)
