"""What one more pool takes: what a window gives and how a gradient passes it. Windows, shapes and refusals follow."""

import inspect

import numpy as np
import pytest

from dgrr.tape import ShapeError, Tape, ops
from dgrr.tape.numerics.engine.intrinsics import real
from dgrr.tape.numerics.engine.kernel import KERNELS, kernel
from dgrr.tape.numerics.simd.lanes import inlined
from dgrr.tape.numerics.simd.minmax import smaller
from dgrr.tape.ops.pooling.kernels.fold import room, visit_share
from dgrr.tape.ops.pooling.kernels.sums import _fold_line
from dgrr.tape.ops.pooling.max_pool import max_pool_grad, max_pool_pick
from dgrr.tape.ops.pooling.pool_op import pool_op
from dgrr.tape.ops.pooling.reference import pools as reference
from dgrr.tape.ops.pooling.rules import axes_of, pooled, through
from dgrr.tape.record import F
from dgrr.tape.var.op_table import OPS
from dgrr.tape.var.var import Gradual

from ..test_ops import PROPERTIES


@inlined
def _smaller(least, x, _, __, ___):  # type: ignore[no-untyped-def]
    return smaller(least, x)


@inlined
def _minima(table, ints, line, number):  # type: ignore[no-untyped-def]
    _fold_line(_smaller, real(table, np.inf), table, ints, line, number)


@kernel
def window_minima(table, ints, part, parts):  # type: ignore[no-untyped-def]
    """The smallest cell of each window."""
    return visit_share(_minima, table, ints, part, parts, room(table))


@pool_op(
    lambda x, rules: through(window_minima, [x], pooled("min_pool", x.spec, rules).shape, axes_of(x.shape, rules)),
    lambda x, rules: -reference.max_pool(-x, rules),
    vjp=lambda g, x, rules: max_pool_grad(g, ops.neg(x), rules),
    jvp=lambda dx, x, rules: max_pool_pick(dx, ops.neg(x), rules),
)
def min_pool(
    x: Gradual[F],
    kernel_size: tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] | tuple[tuple[int, int], ...] = 0,
) -> Gradual[F]:
    """The smallest cell of windows.

    Source: these tests.
    Shapes: x (*Bs, *spatial) -> (*Bs, *windows)

    >>> min_pool(Tape().leaf([1.0, 3.0, 2.0, 0.0]), (2,)).numpy()
    array([1., 0.])
    """


MIN_POOL = OPS.pop("min_pool")
del KERNELS["window_minima"]


@pytest.mark.parametrize("name", PROPERTIES)
def test_it_has_every_property(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPS, "min_pool", MIN_POOL)
    PROPERTIES[name](MIN_POOL)


def test_it_takes_few_lines_beside_formula_and_docs() -> None:
    text = inspect.getsource(inspect.getmodule(window_minima.body) or inspect)
    record = text[text.index("@pool_op") : text.index("def min_pool(")]
    assert record.count("\n") <= 6


def test_what_follows() -> None:
    x = Tape().leaf([[1.0, 3.0], [2.0, 0.0]])
    assert min_pool(x, (2, 1)).numpy().tolist() == [[1.0, 0.0]]
    assert min_pool(x, (1, 2), padding=(0, 1)).numpy().tolist() == [[1.0, 3.0], [2.0, 0.0]]
    assert (MIN_POOL.batch_axis, list(MIN_POOL.kinds)) == ({"x": 0}, ["kernel_size", "stride", "padding"])
    with pytest.raises(ShapeError, match=r"^min_pool: argument 'stride': expected a whole number of at least 1, or 2"):
        min_pool(x, (2, 2), stride=0)
    with pytest.raises(ShapeError, match=r"^min_pool: argument 'x': expected spatial sizes that hold a cell of every"):
        min_pool(x, (3, 1))
