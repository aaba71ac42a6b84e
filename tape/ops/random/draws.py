"""Draws of other distributions than the uniform one: normal numbers, coin flips, whole numbers, permutations."""

from numbers import Integral
from typing import Any

import numpy as np

from ...errors import DomainError, DTypeError
from ...numerics.math import random
from ...numerics.math.philox import MAX_WORDS, WORD
from ...numerics.sizes import Sizes
from ...record.derivative import NO_GRAD
from ...record.kinds.values import FINITE, PROBABILITY
from ...record.lowering import Slot
from ...record.op_decorator import op
from ...record.samples import Sample, bad
from ...values.dtypes import DType, boolean, i64
from ...values.spec import Spec
from ...var.var import Gradual, Var
from ..sorting.kernels import UNSIGNED
from ..sorting.order import positions_in_order
from . import kernels, reference
from .stream import (
    LAST,
    PLACE,
    call_drawing,
    drawn,
    refused,
    refused_floats,
    require_coordinates,
    require_float,
    samples_of_floats,
)

LEAST, MOST = -(1 << 63), 1 << 63
"""The least int64, and what is one more than the greatest."""


def _infer_normal(step: Spec, shape: Sizes, dtype: Any, mean: Any, std: Any, **key: int) -> Spec:
    require_float("normal", dtype)
    if std < 0:
        raise DomainError(f"normal: argument 'std': expected at least 0, got {std}")
    return drawn("normal", shape, dtype, 4, **key)


def _lower_normal(step: Slot, shape: Sizes, dtype: Any, mean: float, std: float, **key: int) -> Slot:
    out = drawn("normal", shape, dtype, 4, **key)
    return call_drawing(kernels.normal, "normal", [step], out, 4, float(mean), float(std), **key)


@op(
    infer=_infer_normal,
    kinds={"mean": FINITE, "std": FINITE},
    lower=_lower_normal,
    along=NO_GRAD,
    reference=reference.normal,
    samples=samples_of_floats(
        (0, (), {}),
        (3, (2, 3, 50), LAST),
        (2**32 - 2, (129,), {"mean": -1.5, "std": 0.1, "seed": 1 << 33}),
        (5, (4,), {"mean": 0.5, "std": 0}),
        (6, (3,), {"std": 1e308}),
        (1, (0, 4), {}),
    ),
    errors=(
        *refused_floats("normal", 4),
        bad(DomainError, "normal: argument 'std': expected at least 0, got -1.0", np.array(0), shape=(), std=-1.0),
    ),
    excused=PLACE,
)
def normal(
    step: Var[i64],
    shape: tuple[int, ...],
    dtype: str | type[DType] = "float32",
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    micro_batch: int = 0,
    ordinal: int = 0,
) -> Gradual[Any]:
    """Independent normally distributed numbers: ``z * std + mean`` in float64, rounded once to ``dtype``.

    ``z = sqrt(-2 log(1 - u)) * cos(2 pi v)``, each operation in float64, where u and v are the float64 numbers 2i and
    2i + 1 of `uniform`; so no number is further than 8.6 deviations from the mean.

    Source: Box and Muller (1958), A note on the generation of random normal deviates; the words are those of `uniform`.
    Shapes: step () -> shape
    Dtypes: step int64; the result float32 or float64, as ``dtype`` says.

    >>> from dgrr.tape import Tape, ops
    >>> ops.normal(Tape().leaf(0), (3,), seed=7).numpy().round(4)
    array([1.43  , 1.719 , 0.0757], dtype=float32)
    """
    ...


def _infer_bernoulli(step: Spec, p: float, shape: Sizes, **key: int) -> Spec:
    return drawn("bernoulli", shape, boolean, 2, **key)


def _lower_bernoulli(step: Slot, p: float, shape: Sizes, **key: int) -> Slot:
    out = drawn("bernoulli", shape, boolean, 2, **key)
    return call_drawing(kernels.bernoulli, "bernoulli", [step], out, 2, float(p), **key)


@op(
    infer=_infer_bernoulli,
    kinds={"p": PROBABILITY},
    lower=_lower_bernoulli,
    along=NO_GRAD,
    reference=reference.bernoulli,
    samples=lambda make: [
        Sample((np.array(step),), {"p": p, "shape": shape, **key})
        for step, p, shape, key in (
            (0, 0.5, (), {}),
            (3, 0.25, (2, 3, 50), LAST),
            (2**32 - 2, 0.9, (129,), {"seed": 1 << 33}),
            (4, 0, (70,), {}),
            (4, 1, (70,), {}),
            (1, 0.5, (0, 4), {}),
        )
    ],
    errors=(
        *refused("bernoulli", np.array(0), p=0.5, shape=(2,)),
        bad(
            DomainError,
            "bernoulli: argument 'shape': expected an integer from 0 to 8589934591, got -1",
            np.array(0),
            p=0.5,
            shape=(2, -1),
        ),
    ),
    excused=PLACE,
)
def bernoulli(
    step: Var[i64], p: float, shape: tuple[int, ...], seed: int = 0, micro_batch: int = 0, ordinal: int = 0
) -> Gradual[boolean]:
    """Independent coin flips, true with probability ``p``: where `uniform` in float64 draws less than ``p``.

    The result is a mask, as `where` takes it; `cast` makes numbers of it. 0 gives none and 1 gives all.

    Source: jax.random.bernoulli, whose result is a mask too; torch.bernoulli gives floats.
    Shapes: step () -> shape

    >>> from dgrr.tape import Tape, ops
    >>> ops.bernoulli(Tape().leaf(0), 0.5, (4,), seed=7).numpy()
    array([False,  True, False, False])
    """
    ...


def _infer_integers(step: Spec, low: int, high: int, shape: Sizes, **key: int) -> Spec:
    for argument, value, least, most in (("low", low, LEAST, MOST - 1), ("high", high, LEAST + 1, MOST)):
        if not (isinstance(value, Integral) and least <= value <= most):
            expected = f"an integer from {least} to {most}"
            raise DomainError(f"integers: argument {argument!r}: expected {expected}, got {value!r}")
    if high <= low:
        raise DomainError(f"integers: argument 'high': expected more than low, {low}, got {high}")
    return drawn("integers", shape, i64, 4, **key)


def _lower_integers(step: Slot, low: int, high: int, shape: Sizes, **key: int) -> Slot:
    count, out = high - low, drawn("integers", shape, i64, 4, **key)
    return call_drawing(kernels.integers, "integers", [step], out, 4, int(low), count & WORD, count >> 32, **key)


@op(
    infer=_infer_integers,
    lower=_lower_integers,
    along=NO_GRAD,
    reference=reference.integers,
    samples=lambda make: [
        Sample((np.array(step),), {"low": low, "high": high, "shape": shape, **key})
        for step, low, high, shape, key in (
            (0, 0, 10, (), {}),
            (3, -7, 1000, (2, 3, 50), LAST),
            (2**32 - 2, 0, 2**63, (129,), {"seed": 1 << 33}),
            (7, LEAST, MOST, (65,), {}),
            (8, 2**40, 2**40 + 2**33 + 5, (33,), {}),
            (4, 5, 6, (3,), {}),
            (1, 0, 2, (0, 4), {}),
        )
    ],
    errors=(
        *refused("integers", np.array(0), low=0, high=2, shape=(2,)),
        *(
            bad(error, f"integers: argument {text}", np.array(0), low=low, high=high, shape=())
            for error, text, low, high in (
                (DomainError, "'high': expected more than low, 3, got 3", 3, 3),
                (DTypeError, "'low': expected a whole number, got 0.5", 0.5, 3),
                (
                    DomainError,
                    f"'high': expected an integer from {LEAST + 1} to {MOST}, got {MOST + 1}",
                    0,
                    MOST + 1,
                ),
            )
        ),
    ),
    excused=PLACE,
)
def integers(
    step: Var[i64],
    low: int,
    high: int,
    shape: tuple[int, ...],
    seed: int = 0,
    micro_batch: int = 0,
    ordinal: int = 0,
) -> Gradual[i64]:
    """Independent whole numbers from ``low`` to ``high - 1``.

    Element i is ``low + floor(W * (high - low) / 2**128)``, W being the 128 bits of block i of the stream. The
    probability of each number differs from ``1 / (high - low)`` by less than ``2**-128``, and no draw is rejected.

    Source: numpy.random.Generator.integers for the half-open range; Lemire (2019), Fast random integer generation in
        an interval, for the product, here of 128 bits instead of a rejection.
    Shapes: step () -> shape

    >>> from dgrr.tape import Tape, ops
    >>> ops.integers(Tape().leaf(0), 0, 10, (4,), seed=7).numpy()
    array([0, 9, 8, 1])
    """
    ...


def _infer_permutation(step: Spec, n: int, **key: int) -> Spec:
    random.coordinate("permutation", "n", n, MAX_WORDS // 2)
    require_coordinates("permutation", **key)
    return Spec((n,), i64.dtype)


def _lower_permutation(step: Slot, n: int, **key: int) -> Slot:
    out = Spec((n,), i64.dtype)
    keys = call_drawing(kernels.sort_keys, "permutation", [step], out, 2, **key)
    return positions_in_order(keys, UNSIGNED, i64.dtype.itemsize)


@op(
    infer=_infer_permutation,
    lower=_lower_permutation,
    along=NO_GRAD,
    reference=reference.permutation,
    samples=lambda make: [
        Sample((np.array(step),), {"n": n, **key})
        for step, n, key in ((0, 5, {}), (3, 300, LAST), (2**32 - 2, 129, {"seed": 1 << 33}), (4, 1, {}), (1, 0, {}))
    ],
    errors=(
        *refused("permutation", np.array(0), n=3),
        bad(
            DomainError,
            "permutation: argument 'n': expected an integer from 0 to 8589934591, got -1",
            np.array(0),
            n=-1,
        ),
        bad(
            DTypeError,
            "permutation: argument 'n': expected a whole number, got 2.5",
            np.array(0),
            n=2.5,
        ),
    ),
    excused=PLACE,
)
def permutation(step: Var[i64], n: int, seed: int = 0, micro_batch: int = 0, ordinal: int = 0) -> Gradual[i64]:
    """The numbers below ``n`` in random order: the stable ascending argsort of n 64-bit keys.

    Key i is ``w[2i] + 2**32 * w[2i+1]``, w being the words of the stream.

    Source: numpy.random.Generator.permutation of a number; torch.randperm.
    Shapes: step () -> (n)

    >>> from dgrr.tape import Tape, ops
    >>> ops.permutation(Tape().leaf(0), 5, seed=7).numpy()
    array([4, 1, 0, 2, 3])
    """
    ...
