"""What an op finds out once per shapes, dtypes and attributes: the same for equal ones, and for no others."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import DTypeError, Tape, ops
from dgrr.tape.ops import OPS
from dgrr.tape.values.spec import Spec

pytestmark = pytest.mark.quick

X = Spec((3, 4, 5), np.dtype(np.float32))


def test_a_lowering_is_made_once() -> None:
    attrs = {"axis": 1, "keepdims": False}
    assert OPS["reduce_sum"].lowered([X], attrs) is OPS["reduce_sum"].lowered([X], {**attrs})
    assert OPS["reduce_sum"].lowered([X], attrs) is not OPS["reduce_sum"].lowered([X], {**attrs, "keepdims": True})


def test_attributes_are_told_apart_by_name_in_any_order() -> None:
    narrow = OPS["narrow"]
    assert narrow.infer_spec([X], {"start": 0, "length": 2, "axis": 1}).shape == (3, 2, 5)
    assert narrow.infer_spec([X], {"length": 0, "start": 2, "axis": 1}).shape == (3, 0, 5)
    assert narrow.lowered([X], {"length": 0, "start": 2, "axis": 1})[1].shape == (3, 0, 5)


@pytest.mark.parametrize("strange", [(1.0,), (True,)])
def test_attributes_that_compare_equal_are_not_the_same(strange: Any) -> None:
    tape: Tape[Any] = Tape()
    x = tape.leaf(np.ones((2, 3), np.float32))
    assert ops.reduce_sum(x, (1,)).shape == (2,)
    with pytest.raises(DTypeError, match="argument 'axis'"):
        ops.reduce_sum(x, strange)


def test_a_list_is_a_tuple_each_time() -> None:
    tape: Tape[Any] = Tape()
    x, axes = tape.leaf(np.ones((2, 3), np.float32)), [0]
    assert ops.reduce_sum(x, axes).shape == (3,)  # type: ignore[call-overload]
    axes[0] = 1
    assert ops.reduce_sum(x, axes).shape == (2,)  # type: ignore[call-overload]
