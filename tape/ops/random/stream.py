"""What all draws share: the coordinates of their words, how much may be drawn, and what they refuse."""

from math import prod
from typing import Any

from ...errors import DomainError, DTypeError
from ...numerics.math import random
from ...numerics.math.philox import MAX_WORDS, WORD
from ...numerics.sizes import Sizes
from ...record.samples import Bad, bad
from ...values.dtypes import FLOATS
from ...values.spec import Spec
from ..elementwise.select import element_type

WORK = 20
"""Arithmetic operations for each number drawn."""

PLACE = {"batch": "what is drawn for an element depends on its place in the batch"}

LIMITS = {"seed": random.SEEDS, "micro_batch": random.SAMPLES, "ordinal": WORD + 1}


def stream(spec: Spec, each: int, seed: int, micro_batch: int, ordinal: int) -> tuple[int, ...]:
    """The words of a call that draws ``each`` words for an element."""
    return spec.size, each, seed & WORD, seed >> 32, micro_batch, ordinal


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
