"""What went wrong with a step, told by executing it again from the seed, or by a fused multiply-add."""

from fractions import Fraction

from ....base.ulp import ulp_distance
from ..compiled import gradients, sample
from ..layout import Record
from ..report import float_bits

_ROUNDINGS = 2  # grad_w / grad_b is x to two roundings ...
_NORMAL = 2.0**-1000  # ... where neither can lose bits to underflow


def with_fma(value: float, learning_rate: float, gradient: float) -> float:
    """Return `value - learning_rate*gradient` rounded once, as a fused multiply-add gives it.

    Raises:
        OverflowError: the result is too large for a float64.
    """
    return float(Fraction(value) - Fraction(learning_rate) * Fraction(gradient))


def derived_error(record: Record) -> float:
    """Return e, the prediction's error, which is exactly half of grad_b."""
    return record.grad_b / 2


def derived_x(record: Record) -> float | None:
    """Return x to within rounding, or None where the gradients do not tell it."""
    if abs(record.grad_b) < _NORMAL or 0 < abs(record.grad_w) < _NORMAL:
        return None
    return record.grad_w / record.grad_b


def diagnose(seed: int, step: int, record: Record) -> str:
    """Say in a word and a reason how a record differs from its step executed again from the seed.

    The words: `data` (the sample was another one), `gradient` (the sample's x is right, its y or the
    gradients are not), `loss`, and `update` (all of these are right, so what is wrong can only be the
    update).
    """
    x, y = sample(seed, step)
    grad_w, grad_b, loss = gradients(record.w_before, record.b_before, x, y)
    recorded_x = derived_x(record)
    if recorded_x is not None and ulp_distance(recorded_x, x) > _ROUNDINGS:
        return f"data: the recorded gradients belong to x = {recorded_x!r}, seed {seed} gives x = {x!r}"
    if (float_bits(record.grad_w), float_bits(record.grad_b)) != (float_bits(grad_w), float_bits(grad_b)):
        expected = f"grad_w = {grad_w!r}, grad_b = {grad_b!r}"
        return f"gradient: seed {seed} gives x = {x!r}, y = {y!r}, and these {expected}"
    if float_bits(record.loss) != float_bits(loss):
        return f"loss: seed {seed} gives {loss!r}"
    return f"update: gradients and loss are those of seed {seed}"
