"""The kernels of norms against the reference, where vectors, blocks, runs, columns and shares begin and end."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.ops.norm import reference
from dgrr.tape.ops.norm.form import Form
from dgrr.tape.ops.norm.kernels import columns as kernels_columns, grad as kernels_grad, rows as kernels

from ..reduce.test_rows import FLOATS, LONG, PARTS, ROWS, filled, numbers, same

EPS = 1e-3
LAYER = Form(EPS)
CHANNELS = (
    (2, 3, 5),
    (3, 2, 1),
    (1, 3, 70),
    (5, 1, 33),
    (90, 2, 49),
    (3, 2, 2000),
    (2, 2, 4096),
    (4, 3, 1025),
    (3, 5, 16),
    (5, 6, 2064),
    (7, 20, 3),
)
"""Samples, channels, positions: runs shorter than a vector, and blocks that begin in the middle of one."""
GROUPED = (((2, 6, 7), 3), ((3, 4, 1), 2), ((2, 4, 1500), 1), ((1, 3, 64), 3), ((9, 2, 16), 1), ((3, 6, 32), 3))
COLUMNS = ((7, 1), (5, 10), (3, 16), (4, 33), (5, 100), (255, 1), (256, 2), (257, 3), (520, 1), (1, 70), (0, 4))


def words(form: Form, shape: tuple[int, ...], weight: int, *bias: int, given: int = 0) -> Words:
    return Words(*form.words(shape), weight, int(form.centred), EPS, given, *bias)


def parameters(count: int, dtype: Any) -> tuple[Any, Any]:
    drawn = numbers((2, count), dtype)
    return drawn[0].copy(), drawn[1].copy()


def statistics_of(run: Any, x: Any, form: Form) -> Any:
    return filled(run, kernels.row_statistics, (2, form.rows(x.shape)[0]), [x], words(form, x.shape, 0), 1)


def check_normalize(run: Any, shape: tuple[int, ...], form: Form, dtype: Any) -> None:
    x, (w, b) = numbers(shape, dtype), parameters(shape[form.channel_axis], dtype)
    for rest, at, given in ([w, b], (2, 3), (w, b)), ([w], (2, 0), (w, None)), ([b], (0, 2), (None, b)):
        expected = reference.normalize(x, *given, form)
        for parts in PARTS:
            assert same(filled(run, kernels.normalize, shape, [x, *rest], words(form, shape, *at), parts), expected)
        before, behind = statistics_of(run, x, form), [p and p + 1 for p in at]
        own = words(form, shape, *behind, given=2)
        assert same(filled(run, kernels.normalize, shape, [x, before, *rest], own, 2), expected)


def check_gradient(run: Any, shape: tuple[int, ...], form: Form, dtype: Any) -> None:
    x, dy, w = numbers(shape, dtype), numbers(shape, dtype)[::-1].copy(), parameters(shape[form.channel_axis], dtype)[0]
    for rest, at, given in ([w], 3, w), ([], 0, None):
        expected, kernel = reference.normalize_grad(dy, x, given, form), kernels_grad.normalize_grad
        for parts in PARTS:
            assert same(filled(run, kernel, shape, [dy, x, *rest], words(form, shape, at), parts), expected)
        inputs = [dy, x, statistics_of(run, x, form), *rest]
        assert same(filled(run, kernel, shape, inputs, words(form, shape, at and 4, given=3), 2), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [*ROWS, *LONG[2::3], (70, 3), (0, 5), (3, 0)])
@pytest.mark.parametrize("centred", [True, False])
def test_rows_of_a_layer(run: Any, dtype: Any, shape: tuple[int, int], centred: bool) -> None:
    form = LAYER._replace(centred=centred)
    with np.errstate(invalid="ignore"):
        check_normalize(run, shape, form, dtype)
        check_gradient(run, shape, form, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", CHANNELS)
def test_channels_over_a_batch(run: Any, dtype: Any, shape: tuple[int, int, int]) -> None:
    form = Form(EPS, 1, 0)
    check_normalize(run, shape, form, dtype)
    check_gradient(run, shape, form, dtype)
    x, dy = numbers(shape, dtype), numbers(shape, dtype)[::-1].copy()
    expected = reference.normalize_weight_grad(dy, x, form)
    for parts in PARTS:
        got = filled(run, kernels_grad.normalize_weight_grad, shape[1:2], [dy, x], words(form, shape, 0), parts)
        assert same(got, expected)
    inputs, own = [dy, x, statistics_of(run, x, form)], words(form, shape, 0, given=3)
    assert same(filled(run, kernels_grad.normalize_weight_grad, shape[1:2], inputs, own, 2), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("shape", "groups"), GROUPED)
def test_groups_of_channels(run: Any, dtype: Any, shape: tuple[int, int, int], groups: int) -> None:
    check_normalize(run, shape, Form(EPS, 1, groups), dtype)
    check_gradient(run, shape, Form(EPS, 1, groups), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [*COLUMNS, (70, 3)])
def test_the_weights_gradient_of_a_layer(run: Any, dtype: Any, shape: tuple[int, int]) -> None:
    rows, columns = shape
    x, dy = numbers(shape, dtype), numbers(shape, dtype)[::-1].copy()
    expected = reference.normalize_weight_grad(dy, x, LAYER)
    for parts in PARTS:
        statistics = filled(run, kernels.row_statistics, (2, rows), [x], words(LAYER, shape, 0), parts)
        inputs = [dy, x, statistics]
        got = filled(run, kernels_grad.column_weight_grad, (columns,), inputs, Words(rows, columns), parts)
        assert same(got, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", COLUMNS)
def test_channels_that_are_columns(run: Any, dtype: Any, shape: tuple[int, int]) -> None:
    rows, columns = shape
    form, x, dy, w = (
        Form(EPS, 1, 0),
        numbers(shape, dtype),
        numbers(shape, dtype)[::-1].copy(),
        numbers(shape[1:], dtype),
    )
    with np.errstate(invalid="ignore"):
        mean = reference.reduce_sum(x, 0, mean=True)
        expected = reference.normalize(x, w, None, form)
        slopes = reference.normalize_grad(dy, x, w, form)
    for parts in PARTS:
        inv = filled(run, kernels_columns.inverse_deviations, (columns,), [x, mean], Words(rows, columns, EPS), parts)
        applied = Words(rows, columns, 1, 4, 0)
        assert same(filled(run, kernels_columns.apply_statistics, shape, [x, mean, inv, w], applied, parts), expected)
        inputs = [dy, x, mean, inv, w]
        assert same(filled(run, kernels_columns.column_slopes, shape, inputs, Words(rows, columns, 5), parts), slopes)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", CHANNELS)
def test_statistics_that_are_given(run: Any, dtype: Any, shape: tuple[int, int, int]) -> None:
    x, (mean, inv), (w, b) = numbers(shape, dtype), parameters(shape[1], dtype), parameters(shape[1], dtype)[::-1]
    column = [p[:, None] for p in (mean, inv, w, b)]
    expected = ((x - column[0]) * column[1]) * column[2] + column[3]
    for parts in PARTS:
        inputs = [x, mean, inv, w, b]
        assert same(filled(run, kernels_columns.apply_statistics, shape, inputs, Words(*shape, 4, 5), parts), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("form", [LAYER, Form(EPS, 1, 0)])
def test_the_output_may_be_an_input(run: Any, dtype: Any, form: Form) -> None:
    for shape in ((9, 10), (3, 100)) if form is LAYER else ((4, 3, 17), (70, 2, 65)):
        x, dy = numbers(shape, dtype), numbers(shape, dtype)[::-1].copy()
        y, dx = reference.normalize(x, None, None, form), reference.normalize_grad(dy, x, None, form)
        a, b, c = x.copy(), dy.copy(), x.copy()
        assert run(kernels.normalize, words(form, shape, 0, 0), [a, a], 2) == 0
        assert run(kernels_grad.normalize_grad, words(form, shape, 0), [b, b, x], 2) == 0
        assert run(kernels_grad.normalize_grad, words(form, shape, 0), [c, dy, c], 2) == 0
        assert same(a, y) and same(b, dx) and same(c, dx)


def test_the_reference_is_the_composition_of_other_references() -> None:
    x, w, b = numbers((4, 3, 50), np.float32), numbers((3,), np.float32), numbers((3,), np.float32)
    mean = reference.reduce_sum(x, (0, 2), True, mean=True)
    variance = reference.reduce_sum((x - mean) * (x - mean), (0, 2), True) / np.float32(200)
    normal = (x - mean) * (np.float32(1) / np.sqrt(variance + np.float32(EPS)))
    expected = normal * w[:, None] + b[:, None]
    assert same(reference.normalize(x, w, b, Form(EPS, 1, 0)), expected)
