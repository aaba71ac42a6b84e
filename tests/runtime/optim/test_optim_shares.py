"""The kernels of optimizers give the same bits however their work is shared, and in whatever order."""

from typing import Any

import numpy as np
import pytest

import dgrr.runtime.optim  # noqa: F401  (its kernels belong to the table)
from dgrr.tape.numerics.engine.kernel import KERNELS, call
from dgrr.tape.numerics.engine.launch import Words

SIZES = (1, 5, 16, 64, 65, 1000)
HYPER = np.array([1e-3, 0.9, 0.999, 1e-8, 0.01])
SGD = np.array([1e-2, 0.9, 0.1, 0.0, 0.01])


def tables(n: int, dtype: Any) -> dict[str, tuple[list[Any], Words]]:
    """The arrays and words of each kernel."""
    rng = np.random.default_rng(n)
    a, b, c, d = (rng.standard_normal(n).astype(dtype) for _ in range(4))
    step, corrections, results = np.array([3]), np.array([0.1, 0.01]), np.zeros(2)
    return {
        "adam_step": ([a, b, abs(c), d, corrections, HYPER], Words(n)),
        "adamw_step": ([a, b, abs(c), d, corrections, HYPER], Words(n)),
        "sgd_step": ([a, b, SGD], Words(n)),
        "sgd_momentum_step": ([a, b, c, step, SGD], Words(n)),
        "tensor_norm": ([results, a], Words(n)),
        "norm_scale": ([results, abs(rng.standard_normal(n)), np.array([0.5])], Words(n)),
        "scale_by": ([a, b, corrections], Words(n)),
        "clamp_to": ([a, b, np.array([0.5])], Words(n)),
        "bias_corr": ([corrections, step, HYPER], Words()),
        "step_inc": ([step], Words()),
    }


ELEMENTS = {"norm_scale": np.float64, "bias_corr": np.float64, "step_inc": np.int64}


def after(name: str, n: int, dtype: Any, parts: int) -> list[bytes]:
    """The bytes of every array after all parts have run, the last one first."""
    arrays, words = tables(n, dtype)[name]
    address = KERNELS[name].address(np.dtype(ELEMENTS.get(name, dtype)))
    for part in reversed(range(parts)):
        assert call(address, words.address, part, parts, tuple(map(id, arrays))) == 0
    return [x.tobytes() for x in arrays]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", list(tables(1, np.float32)))
def test_any_number_of_parts_gives_the_same_bits(name: str, dtype: Any) -> None:
    for n in SIZES:
        whole = after(name, n, dtype, 1)
        assert whole != [x.tobytes() for x in tables(n, dtype)[name][0]]
        for parts in (2, 3, 7, 13):
            assert after(name, n, dtype, parts) == whole, (n, parts)
