"""The training run of `bits` once more, written by hand in numpy: no tape, no kernel, no optimizer of dgrr's.

Every line is a formula of the numerics page for ``linear, tanh, linear, cross_entropy`` and Adam, in float32.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dgrr.tape.numerics.math.reference import functions as reference, sums as reference_sums

Array = npt.NDArray[Any]
Params = dict[str, Array]
Gradients = Callable[[Params, Array, Array], tuple[Array, Params]]
"""Loss and gradients from parameters and a batch."""


def fma(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` of float32 arrays, rounded once.

    The product is exact in float64. The sum is rounded to odd there, after which rounding to float32 gives
    what a single rounding gives (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    product, addend = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + addend
    part = total - product
    lost = (product - (total - part)) + (addend - part)
    odd = (total.view(np.int64) & 1).astype(np.bool_)
    beside = np.nextafter(total, np.where(lost > 0, np.inf, -np.inf))
    return np.where((lost == 0) | odd, total, beside).astype(np.float32)


def matmul(a: Array, b: Array) -> Array:
    """``a @ b``: one chain of fma over a contraction of at most 256."""
    assert a.shape[1] <= 256
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total = fma(a[:, k : k + 1], b[k], total)
    return total


def column_sums(x: Array) -> Array:
    """The sum over at most 256 rows, one after the other."""
    assert len(x) <= 256
    total = np.zeros(x.shape[1], np.float32)
    for row in x:
        total = total + row
    return total


def gradients(p: Params, images: Array, labels: Array) -> tuple[Array, Params]:
    """Loss and gradients of one batch."""
    rows, batch = np.arange(len(labels)), np.float32(len(labels))
    hidden = reference.tanh(matmul(images, p["w1"].T) + p["b1"])
    logits = matmul(hidden, p["w2"].T) + p["b2"]
    shifted = logits - logits.max(axis=1, keepdims=True)
    e = reference.exp(shifted)
    s = np.array([reference_sums.row_sum(row) for row in e])
    loss = reference_sums.row_sum(reference.log(s) - shifted[rows, labels]) / batch
    slope = e / s[:, None]
    slope[rows, labels] -= np.float32(1)
    slope = slope * (np.float32(1) / batch)
    into_hidden = matmul(slope, p["w2"])
    into_sum = into_hidden - into_hidden * (hidden * hidden)
    grads = {
        "w1": matmul(into_sum.T, images),
        "b1": column_sums(into_sum),
        "w2": matmul(slope.T, hidden),
        "b2": column_sums(slope),
    }
    return np.asarray(loss), {name: grads[name] for name in p}


def power(base: float, exponent: int) -> float:
    """``base ** exponent`` by binary powering from the lowest bit."""
    result = 1.0
    while exponent:
        result = result * base if exponent & 1 else result
        base, exponent = base * base, exponent >> 1
    return result


def adam(p: Array, m: Array, v: Array, g: Array, corrections: Array, rate: float) -> tuple[Array, Array, Array]:
    """One step with betas 0.9 and 0.999: the new parameter, m and v."""
    f = np.float32
    m = m + f(1 - 0.9) * (g - m)
    v = f(0.999) * v + (f(1 - 0.999) * g) * g
    root = f(np.sqrt(corrections[1]))
    return p - (f(rate / corrections[0]) * m) / (np.sqrt(v) / root + f(1e-8)), m, v


def train(
    params: Params, batches: Iterable[tuple[Array, Array]], rate: float, gradients: Gradients = gradients
) -> Iterator[tuple[Array, Params, Params]]:
    """Loss, parameters and optimizer state after each batch."""
    m, v = ({name: np.zeros_like(x) for name, x in params.items()} for _ in range(2))
    for step, (images, labels) in enumerate(batches, start=1):
        loss, grads = gradients(params, images, labels)
        corrections = np.array([1 - power(0.9, step), 1 - power(0.999, step)])
        for name, g in grads.items():
            params[name], m[name], v[name] = adam(params[name], m[name], v[name], g, corrections, rate)
        buffers = {f"{kind}/{name}": b[name] for kind, b in (("m", m), ("v", v)) for name in params}
        yield loss, params, {"step": np.array(step), "corrections": corrections, **buffers}
