"""Elements along an axis: the first wrong index is named whatever the threads, and orders meet their inverses."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dgrr.tape import AnyTensor, BoundsError, Tape, get_threads, ops, set_threads
from dgrr.tape.numerics.engine import launch
from dgrr.tape.ops import OPS

INDICES = np.array([[0, 0, 9, 0], [0, -9, 0, 9], [8, 0, 9, 0]])


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("op", "attrs"), [("take_along_axis", {}), ("scatter_add_along_axis", {"size": 3})])
def test_the_first_wrong_index_is_named(op: str, attrs: dict[str, int], threads: int) -> None:
    before = get_threads()
    set_threads(threads)
    try:
        with patch.object(launch, "PARALLEL_WORK", 0), pytest.raises(BoundsError) as caught:
            OPS[op](AnyTensor(np.ones((3, 4))), INDICES, axis=0, **attrs)
    finally:
        set_threads(before)
    assert str(caught.value) == f"{op}: argument 'indices': expected -3 to 2, got 9 at position 2"


def test_an_order_is_undone_by_adding_at_it(tape: Tape[Any]) -> None:
    x = tape.leaf(np.random.default_rng(0).standard_normal((3, 5)))
    order = ops.argsort(x)
    back = ops.scatter_add_along_axis(ops.take_along_axis(x, order), order, 5)
    assert back.numpy().tolist() == x.numpy().tolist()
    assert ops.take_along_axis(order, ops.argsort(order)).numpy().tolist() == [[0, 1, 2, 3, 4]] * 3
