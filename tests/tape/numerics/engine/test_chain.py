"""A chain of kernels gives the bits of its kernels one after the other."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dgrr.tape.ops  # noqa: F401  (its kernels belong to the table)
from dgrr.tape.numerics.engine.chain import BLOCK, LOCAL, Chain, Link, chain
from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.numerics.engine.launch import Words

Array = npt.NDArray[Any]
FLOAT32, FLOAT64, BOOL = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.bool_)
SIZES = [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1, 3 * BLOCK - 1, 5 * BLOCK + 77]

CALLS: list[tuple[str, np.dtype[Any], np.dtype[Any], tuple[int, ...], tuple[float, ...]]] = [
    ("neg", FLOAT32, FLOAT32, (0,), ()),  # 2
    ("less", FLOAT32, BOOL, (2, 1), ()),  # 3
    ("to_float64", FLOAT32, FLOAT64, (2,), ()),  # 4
    ("scale", FLOAT64, FLOAT64, (4,), (0.3,)),  # 5
    ("where", FLOAT64, FLOAT64, (3, 5, 4), ()),  # 6
    ("to_float32", FLOAT64, FLOAT32, (6,), ()),  # 7
    ("mul", FLOAT32, FLOAT32, (7, 7), ()),  # 8
    ("exp", FLOAT32, FLOAT32, (8,), ()),  # 9
]
"""Kernel, type of its table, type of its output, the values it reads, its attributes; values 0 and 1 are given."""


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize("local", [(), (2, 3, 4, 5, 6, 7, 8), (3, 6), (2, 5, 8)], ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_a_chain_is_its_kernels(run: Any, size: int, local: tuple[int, ...], parts: int) -> None:
    rng = np.random.default_rng(size)
    given = [rng.standard_normal(size).astype(np.float32) for _ in range(2)]
    expected: list[Array] = list(given)
    for name, element, out, reads, attributes in CALLS:
        target = np.empty(size, out)
        run(KERNELS[name], Words(size, *attributes), [target, *(expected[i] for i in reads)], element=element)
        expected.append(target)
    outputs = [i for i in range(2, len(expected)) if i not in local]
    places = {i: n for n, i in enumerate([*outputs, 0, 1])} | {i: -1 - n for n, i in enumerate(local)}
    links = [_link(n + 2, call, size, places, expected) for n, call in enumerate(CALLS)]
    joined = Chain(size, len(outputs) + 2, len(local), links)
    scratch = np.full(joined.scratch((), parts) + 64, 0xA5, np.uint8)
    made = [np.full(expected[i].nbytes, 0xA5, np.uint8).view(expected[i].dtype) for i in outputs]
    assert run(chain, joined.words(()), [*made, *given, scratch], parts, element=np.bool_) == 0
    for i, got in zip(outputs, made, strict=True):
        assert got.tobytes() == expected[i].tobytes(), CALLS[i - 2][0]
    assert (scratch[-64:] == 0xA5).all()


def _link(target: int, call: Any, size: int, places: dict[int, int], values: list[Array]) -> Link:
    name, element, _, reads, attributes = call
    operands = (target, *reads)
    return Link(
        KERNELS[name],
        element,
        Words(size, *attributes),
        tuple([places[i] for i in operands]),
        tuple([values[i].itemsize for i in operands]),
    )


def test_scratch_is_a_block_for_each_local_value_and_part() -> None:
    assert Chain(10 * BLOCK, 3, 0, []).scratch((), 4) == 1
    assert Chain(10 * BLOCK, 3, 2, []).scratch((), 4) == 8 * LOCAL
