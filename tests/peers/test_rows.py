"""The table of comparisons is complete: each public op has one row or a reason to have none."""

import inspect
from collections import Counter

from dgrr.tape import ops

from .rows import ROWS, WITHOUT

PUBLIC = {function.__name__ for name in ops.__all__ if inspect.isfunction(function := getattr(ops, name))}


def test_every_public_op_has_a_row_or_a_reason() -> None:
    assert PUBLIC - {row.op for row in ROWS} - set(WITHOUT) == set()


def test_every_row_and_reason_is_of_a_public_op() -> None:
    assert {row.op for row in ROWS} | set(WITHOUT) <= PUBLIC


def test_no_op_has_two_of_them() -> None:
    assert Counter([*(row.op for row in ROWS), *WITHOUT]).most_common(1)[0][1] == 1
    assert all(WITHOUT.values())
