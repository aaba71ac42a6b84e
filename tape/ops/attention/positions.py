"""Sines and cosines of positions, as tables that no libm has computed."""

from functools import lru_cache
from typing import Any, cast

import numpy as np

from ....base.arrays import Array
from ...values.tensor import AnyTensor
from ..elementwise.arithmetic import scale
from ..elementwise.exponential import exp, log
from ..elementwise.functions import cos, sin

TABLES_KEPT = 32


@lru_cache(TABLES_KEPT)
def turns(first: int, count: int, pairs: int, base: float, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """``sin`` and ``cos`` of ``position * base ** (-i / pairs)``, (count, pairs), rounded from float64."""
    rate: Any = log(_tensor(np.float64(base)))
    speeds: Any = exp(scale(_tensor(-np.arange(pairs, dtype=np.float64) / max(pairs, 1)), float(rate.array)))
    angles = _tensor(np.arange(first, first + count, dtype=np.float64)[:, None] * speeds.array)
    sines, cosines = (np.asarray(function(angles).array).astype(dtype) for function in cast(Any, (sin, cos)))
    return sines, cosines


def _tensor(value: Any) -> Any:
    return AnyTensor.leaf(value)
