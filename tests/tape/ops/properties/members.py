"""Property of an op under `vmap`: every member has the bits that it has alone."""

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from dgrr.tape import AnyTensor, vmap
from dgrr.tape.record.composed import Composed

from .cases import Array, Case, Record, assert_same_bits, cases, run

CASES = 3
"""How many samples of one float type are tried: what way an op goes does not depend on its numbers."""


def check_members(op: Record) -> None:
    """Two members in every input at once, and in each input alone."""
    if isinstance(op, Composed):
        return  # its ops are held
    for case in islice(cases(op, np.float32), CASES):
        given = [i for i, a in enumerate(case.arrays) if a is not None]
        for chosen in [given, *([i] for i in given if len(given) > 1)]:
            _check(case, set(chosen))


def _check(case: Case, chosen: set[int]) -> None:
    rows = [[_other(a, k) if i in chosen else a for i, a in enumerate(case.arrays)] for k in range(2)]
    pairs = list(zip(*rows, strict=True))
    args = [np.stack(pair) if i in chosen else pair[0] for i, pair in enumerate(pairs)]
    positions = [i for i, a in enumerate(args) if a is not None]

    def function(*xs: Any) -> Any:
        inputs: list[Any] = [None] * len(args)
        for position, x in zip(positions, xs, strict=True):
            inputs[position] = x
        return case.op(*inputs, **case.attrs)

    axes = tuple(0 if i in chosen else None for i in positions)
    made: AnyTensor = vmap(function, axes)(*[args[i] for i in positions])
    for k, row in enumerate(rows):
        label = f"{case.label}, member {k} of inputs {sorted(chosen)}"
        assert_same_bits(made.array[k], run(case.op, row, case.attrs), label)


def _other(a: Array | None, member: int) -> Any:
    """The array itself, or its elements in reverse: as valid, and different."""
    return a if a is None or member == 0 else a.ravel()[::-1].reshape(a.shape)


MEMBERS: dict[str, Callable[[Any], None]] = {"members": check_members}
