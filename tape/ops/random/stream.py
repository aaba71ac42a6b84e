"""What all draws share: the coordinates of their words, how much may be drawn, and what they refuse."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ...errors import DomainError, DTypeError
from ...numerics.engine.kernel import Kernel
from ...numerics.math import random
from ...numerics.math.philox import MAX_WORDS, WORD
from ...numerics.sizes import Sizes
from ...record.lowering import Slot, call
from ...record.samples import Bad, Make, Sample, Samples, bad
from ...values.dtypes import FLOATS
from ...values.spec import Spec
from ..elementwise.select import element_type

WORK = 20
"""Arithmetic operations for each number drawn."""

PLACE = {"batch": "what is drawn for an element depends on its place in the batch"}

LIMITS = {"seed": random.SEEDS, "micro_batch": random.SAMPLES, "ordinal": WORD + 1}


LAST = {"seed": 2**64 - 1, "micro_batch": 5, "ordinal": 2**32 - 1}
"""Coordinates at their ends."""


def stream(spec: Spec, each: int, *, seed: int, micro_batch: int, ordinal: int) -> tuple[int, ...]:
    """The words of a call that draws ``each`` words for an element."""
    return spec.size, each, seed & WORD, seed >> 32, micro_batch, ordinal


def call_drawing(
    kernel: Kernel,
    name: str,
    inputs: Sequence[Slot],
    out: Spec,
    each: int,
    *attrs: float,
    **key: int,
) -> Slot:
    """The output of a kernel that draws ``each`` words for an element; the step is the last of the inputs."""
    return call(
        kernel,
        inputs,
        out.shape,
        *stream(out, each, **key),
        *attrs,
        dtype=out.dtype,
        element=out.dtype,
        work=WORK * each * out.size,
        aliases=(0,) if len(inputs) > 1 else (),
        refusal=f"{name}: argument 'step': expected an integer from 0 to {WORD}, got {{value}}",
    )


def require_coordinates(name: str, **key: int) -> None:
    """Raise DomainError for a seed, micro-batch or ordinal out of range."""
    for argument, value in key.items():
        random.coordinate(name, argument, value, LIMITS[argument])


def drawn(name: str, sizes: Sizes, dtype: Any, each: int, **key: int) -> Spec:
    """What a draw of ``each`` words for an element makes. Raises DomainError for what cannot be drawn."""
    for size in (*sizes, prod(sizes)):
        random.coordinate(name, "shape", size, MAX_WORDS // each)
    require_coordinates(name, **key)
    return Spec(sizes, element_type(dtype))


def require_float(name: str, dtype: Any) -> None:
    """Raise DTypeError for an element type that a draw of floats cannot have."""
    try:
        given: Any = element_type(dtype)
    except DTypeError:
        given = repr(dtype)
    if given not in FLOATS:
        raise DTypeError(f"{name}: argument 'dtype': expected float32 or float64, got {given}")


def refused(name: str, *arrays: Any, **attrs: Any) -> list[Bad]:
    """The coordinates that every draw refuses."""
    return [
        bad(
            DomainError,
            f"{name}: argument {key!r}: expected an integer from 0 to {limit - 1}, got {value}",
            *arrays,
            **{**attrs, key: value},
        )
        for key, limit in LIMITS.items()
        for value in (-1, limit)
    ]


def samples_of_floats(*rows: tuple[int, Sizes, Mapping[str, Any]]) -> Samples:
    """The samples of a draw of floats, from step, shape and other attributes."""

    def samples(make: Make) -> list[Sample]:
        return [
            Sample((np.array(step),), {"shape": shape, "dtype": make.dtype.name, **attrs})
            for step, shape, attrs in rows
        ]

    return samples


def refused_floats(name: str, each: int) -> list[Bad]:
    """What every draw of floats refuses, of ``each`` words for an element."""
    step, sizes = np.array(0), f"an integer from 0 to {MAX_WORDS // each - 1}"
    return [
        *refused(name, step, shape=(2,)),
        bad(
            DTypeError,
            f"{name}: argument 'dtype': expected float32 or float64, got int64",
            step,
            shape=(),
            dtype="int64",
        ),
        bad(DomainError, f"{name}: argument 'shape': expected {sizes}, got -1", step, shape=(2, -1)),
    ]
