"""What normalisations have in common: which elements share a mean and a variance, and how that is computed.

An array is split at its channel axis into samples, channels and positions. With ``groups`` the channels of each
sample are normalised in so many groups; with 0 groups each channel is normalised over all samples.
"""

from math import prod
from typing import NamedTuple

from ...errors import DomainError, ShapeError
from ...numerics.simd import sums as reduce_kernels
from ...numerics.sizes import Sizes
from ...record.lowering import Slot, call, elementwise
from ...values.shape import normal_axis
from ...values.spec import Spec
from ..elementwise.kernels.basic import mul
from ..reduce.reduce import lower_reduction
from .kernels import columns as column_kernels, grad as gradient_kernels, rows as kernels

WORK = 12
"""Arithmetic operations per element, for the choice of threads."""


class Form(NamedTuple):
    """A normalisation: its eps, the axis of its channels, its groups, and whether the mean is taken away."""

    eps: float
    channel_axis: int = -1
    groups: int = 1
    centred: bool = True

    def split(self, shape: Sizes) -> tuple[int, int, int]:
        """How many samples, channels and positions."""
        axis = self.channel_axis % len(shape)
        return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])

    def others(self, shape: Sizes) -> Sizes:
        """The axes that are not the channels'."""
        return tuple(a for a in range(len(shape)) if a != self.channel_axis % len(shape))

    def channels_last(self, shape: Sizes) -> bool:
        """Whether sums over all axes but the channels' are sums down columns."""
        return self.channel_axis % len(shape) == len(shape) - 1

    def in_columns(self, shape: Sizes) -> bool:
        """Whether the statistics themselves are such sums."""
        return not self.groups and self.channels_last(shape)

    def rows(self, shape: Sizes) -> tuple[int, int]:
        """How many statistics, and of how many elements each."""
        samples, channels, _ = self.split(shape)
        rows = samples * self.groups if self.groups else channels
        return rows, prod(shape) // rows if rows else 0

    def words(self, shape: Sizes) -> tuple[int, ...]:
        """The words `kernels.SHAPE`; no rows where there are no elements."""
        samples, channels, positions = self.split(shape)
        rows, n = self.rows(shape)
        if not self.groups:
            pitch = positions if samples == 1 else channels * positions
            return rows, positions, samples, positions, pitch, 1, 0, max(channels, 1)
        segments = channels // self.groups
        return rows if n else 0, n, segments, positions, positions, segments, 1, max(channels, 1)


def check(op: str, x: Spec, form: Form) -> Spec:
    """The spec of the result, that of ``x``. Raises ShapeError for the axis, DomainError for the eps or the form."""
    if not (form.centred or form.groups):
        raise DomainError(f"{op}: argument 'form': expected groups where the mean is not taken away, got 0")
    normal_axis(op, form.channel_axis, x.rank, "channel_axis")
    return x


def check_parameters(op: str, x: Spec, form: Form, **parameters: Spec | None) -> Spec:
    """`check`, and ShapeError for parameters that are not one number for each channel."""
    channels = check(op, x, form).shape[form.channel_axis]
    for name, spec in parameters.items():
        if spec is not None and spec.shape != (channels,):
            raise ShapeError(f"{op}: argument {name!r}: expected shape ({channels},), got {spec.shape}")
    return x


def lower(x: Slot, weight: Slot | None, bias: Slot | None, form: Form) -> Slot:
    """The normalised array times weight plus bias."""
    if form.in_columns(x.shape):
        return apply(x, *_column_statistics(x, form), weight, bias, -1)
    inputs, (given, w, b) = _table([x], _channel_statistics(x, form), weight, bias)
    words = (*form.words(x.shape), w, *_rest(form), given, b)
    return call(kernels.normalize, inputs, x.shape, *words, work=WORK * x.spec.size, aliases=(0,))


def lower_grad(dy: Slot, x: Slot, weight: Slot | None, form: Form) -> Slot:
    """The gradient by x."""
    if form.in_columns(x.shape):
        (rows, columns, _), statistics = form.split(x.shape), _column_statistics(x, form)
        inputs, at = _table([dy, x, *statistics], weight)
        words: tuple[float, ...] = (rows, columns, at[0])
        return call(column_kernels.column_slopes, inputs, x.shape, *words, work=WORK * x.spec.size, aliases=(0, 1))
    inputs, (given, w) = _table([dy, x], _channel_statistics(x, form), weight)
    words = (*form.words(x.shape), w, *_rest(form), given)
    return call(gradient_kernels.normalize_grad, inputs, x.shape, *words, work=WORK * x.spec.size, aliases=(0, 1))


def lower_weight_grad(dy: Slot, x: Slot, form: Form) -> Slot:
    """The gradient by the weight: the sums over all axes but the channels' of dy times the normalised array."""
    shape, work, last = x.shape, WORK * x.spec.size, form.channels_last(x.shape)
    (samples, channels, _), (rows, n) = form.split(shape), form.rows(shape)
    if not (form.groups or last):
        inputs, (given,) = _table([dy, x], _channel_statistics(x, form))
        words = (*form.words(shape), 0, *_rest(form), given)
        return call(gradient_kernels.normalize_weight_grad, inputs, (channels,), *words, work=work)
    if form.groups == 1 and last:
        inputs = [dy, x, _row_statistics(x, form)]
        return call(gradient_kernels.column_weight_grad, inputs, (channels,), rows, channels, work=work)
    if form.groups:  # a weight for each element of all rows: dy
        words = (rows if n else 0, n, n, 1, 1, n, 1, x.spec.size, 2, *_rest(form), 0, 0)
        products = call(kernels.normalize, [x, dy], shape, *words, work=work, aliases=(0, 1))
    else:
        products = elementwise(mul, dy, lower(x, None, None, form))
    if last:
        return call(reduce_kernels.sum_columns, [products], (channels,), 1, samples, channels, work=x.spec.size)
    return lower_reduction(products, form.others(shape), keepdims=False, mean=False)


def apply(x: Slot, mean: Slot, inv: Slot, weight: Slot | None, bias: Slot | None, channel_axis: int) -> Slot:
    """``((x - mean) * inv) * weight + bias`` with a mean and an inverse deviation for each channel."""
    inputs, at = _table([x, mean, inv], weight, bias)
    words = (*Form(0.0, channel_axis).split(x.shape), *at)
    return call(column_kernels.apply_statistics, inputs, x.shape, *words, work=WORK * x.spec.size, aliases=(0,))


def _table(inputs: list[Slot], *parameters: Slot | None) -> tuple[list[Slot], list[int]]:
    """The inputs with the parameters that are given, and the place of each in the kernel's table, or 0."""
    places: list[int] = []
    for slot in parameters:
        inputs = inputs if slot is None else [*inputs, slot]
        places.append(0 if slot is None else len(inputs))
    return inputs, places


def _rest(form: Form) -> tuple[int, float]:
    return int(form.centred), float(form.eps)


def _row_statistics(x: Slot, form: Form) -> Slot:
    """The mean and the inverse deviation of each row."""
    words = (*form.words(x.shape), 0, *_rest(form), 0)
    return call(kernels.row_statistics, [x], (2, form.rows(x.shape)[0]), *words, work=WORK * x.spec.size)


def _channel_statistics(x: Slot, form: Form) -> Slot | None:
    """Those of channels over a batch, a call that the gradients have in common with the result.

    Rows of a layer or a group lie together and in the cache, where computing them again costs less than a call.
    """
    return None if form.groups else _row_statistics(x, form)


def _column_statistics(x: Slot, form: Form) -> tuple[Slot, Slot]:
    rows, columns, _ = form.split(x.shape)
    mean = call(reduce_kernels.mean_columns, [x], (columns,), 1, rows, columns, work=x.spec.size)
    words = (rows, columns, float(form.eps))
    return mean, call(column_kernels.inverse_deviations, [x, mean], (columns,), *words, work=2 * x.spec.size)
