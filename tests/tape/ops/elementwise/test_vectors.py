"""Kernels that work on whole vectors, at every number of elements that is left over at the end."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.numerics.math.reference import functions as reference
from dgrr.tape.ops.elementwise.kernels import basic as kernels, powers
from dgrr.tape.ops.elementwise.reference import powered

FLOATS = (np.float32, np.float64)
LENGTHS = (*range(36), *range(60, 70), 80, 96, 127, 128, 129, 145)
BORDER = 64

CASES = [
    *((getattr(kernels, name), getattr(reference, name), ()) for name in ("exp", "log", "tanh", "sigmoid")),
    *((powers.power, lambda x, n=n: powered(x, n), (n,)) for n in (0, 3, -2)),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("kernel", "definition", "attributes"), CASES)
def test_every_length_and_share(run: Any, dtype: Any, kernel: Any, definition: Any, attributes: Any) -> None:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, -1e-42, 3e38, 88.9, -103.5], dtype)
    x = np.concatenate([np.random.default_rng(0).standard_normal(135).astype(dtype) * dtype(3), special])
    with np.errstate(all="ignore"):
        expected = definition(x)
    for n in LENGTHS:
        for first in {0, min(3, len(x) - n)}:
            area = np.full(n + 2 * BORDER, 1.75, dtype)
            out = area[BORDER : BORDER + n]
            assert run(kernel, Words(n, *attributes), [out, x[first : first + n]], 1 + n % 3) == 0
            wanted, nan = expected[first : first + n], np.isnan(expected[first : first + n])
            assert (np.isnan(out) == nan).all() and out[~nan].tobytes() == wanted[~nan].tobytes(), n
            assert (area[:BORDER] == 1.75).all() and (area[BORDER + n :] == 1.75).all()
