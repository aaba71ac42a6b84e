"""Further functions of each element, whole numbers, masks, iteration, and what runs along an axis."""

from typing import Any, assert_type

import numpy as np
from given import Batch, Given, In

from dgrr.tape import Var, boolean, f32, f64, i64, ops


def functions_keep_the_shape(g: Given) -> None:
    assert_type(ops.round(ops.floor(ops.ceil(ops.trunc(ops.sign(g.x))))), Var[f32, Batch, In])
    assert_type(ops.atan(ops.sinh(ops.asinh(ops.tan(g.x * 0.0)))), Var[f32, Batch, In])
    assert_type(ops.atan2(g.x, ops.cosh(g.x)), Var[f32, Batch, In])


def powers_of_any_operand(g: Given) -> None:
    assert_type(g.x**g.x, Var[f32, Batch, In])
    assert_type(2**g.x, Var[f32, Batch, In])
    assert_type(g.x**2.5, Var[f32, Batch, In])
    assert_type(g.x ** np.ones(4, np.float32), Var[f32, Batch, In])
    assert_type(ops.pow(g.x, g.x), Var[f32, Batch, In])


def whole_numbers_are_operands(g: Given) -> None:
    assert_type(g.labels + g.labels * 2 - 1, Var[i64, Batch])
    assert_type(g.labels // 2 % 3, Var[i64, Batch])
    assert_type(-g.labels, Var[i64, Batch])
    assert_type(ops.remainder(g.labels, ops.floor_divide(g.labels, g.labels)), Var[i64, Batch])


def masks_are_operands(g: Given) -> None:
    assert_type(g.mask & (g.x > 0.0) | ~g.mask, Var[boolean, Batch, In])
    assert_type(g.mask ^ True, Var[boolean, Batch, In])
    assert_type(ops.logical_not(ops.logical_or(g.mask, g.mask)), Var[boolean, Batch, In])


def conversions_as_a_method(g: Given) -> None:
    assert_type(g.x.astype(f64), Var[f64, Batch, In])
    assert_type(g.mask.astype(i64), Var[i64, Batch, In])
    assert_type(g.x.astype("float64"), Var[Any, Batch, In])


def iteration_drops_the_first_axis(g: Given) -> None:
    for row in g.x:
        assert_type(row, Var[f32, In])


def numbers_of_scalars(g: Given) -> None:
    assert_type(f"{g.s:.3f}", str)
    assert_type(int(g.s), int)
    assert_type(g.x.ndim, int)
    np.asarray(g.x)


def what_runs_along_an_axis(g: Given) -> None:
    assert_type(ops.cumprod(ops.cummax(ops.cummin(g.x, 0), -1), 0), Var[f32, Batch, In])
    assert_type(ops.cumargmax(g.x, 0), Var[i64, Batch, In])


def deviations_and_norms(g: Given) -> None:
    assert_type(ops.std(g.x, -1, correction=1), Var[f32, Batch])
    assert_type(ops.std(g.x), Var[f32])
    assert_type(ops.norm(g.x), Var[f32])
    assert_type(ops.norm(g.x, 1), Var[f32])
    assert_type(ops.norm(g.x, axis=-1), Var[f32, Batch])
    assert_type(ops.norm(g.x, 1, axis=0), Var[f32, In])
    assert_type(ops.norm(g.x, 2, (0, 1)), Var[f32, *tuple[Any, ...]])
    assert_type(ops.norm(g.g, axis=-1), Var[f32, *tuple[Any, ...]])
