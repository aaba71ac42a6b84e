"""What is cut from joined arrays is read where it was before, to the bit; what is read as a whole stays joined."""

from typing import Any

import pytest

from dgrr.tape import ops

from .programs import Loss, change, normal

PASS = "appends"
PARAMS = {"a": normal(4, 3), "b": normal(4, 5)}


def joined(p: Any) -> Any:
    return ops.concat([ops.exp(p["a"]), ops.exp(p["b"])], 1)


READ: dict[str, tuple[Loss, int]] = {
    "pieces": (lambda p, x: ops.tanh(joined(p)[:, :3]).sum() + ops.tanh(joined(p)[:, 3:]).sum(), 2),
    "a part of one": (lambda p, x: ops.tanh(joined(p)[1:3, 4:6]).sum(), 1),
    "every second row": (lambda p, x: ops.tanh(joined(p)[::2, :2]).sum(), 1),
    "joined twice": (lambda p, x: ops.tanh(ops.concat([joined(p), p["a"]], 1)[:, 4:7]).sum(), 2),
    "across the first two of three": (lambda p, x: ops.tanh(ops.concat([joined(p), p["a"]], 1)[:, 2:5]).sum(), 1),
}
"""Losses, and how many arrays are not joined for them."""
KEPT: dict[str, Loss] = {
    "all of it": lambda p, x: ops.tanh(joined(p)).sum(),
    "across both": lambda p, x: ops.tanh(joined(p)[:, 2:5]).sum(),
    "backwards": lambda p, x: ops.tanh(joined(p)[:, 2::-1]).sum(),
    "of what the step overwrites": lambda p, x: ops.tanh(ops.concat([p["a"], p["b"]], 1)[:, :3]).sum(),
}


@pytest.mark.parametrize("name", READ)
def test_pieces_are_read_where_they_were(name: str) -> None:
    loss, fewer = READ[name]
    assert change(loss, PASS, params=PARAMS)["append"] == -fewer


@pytest.mark.parametrize("name", KEPT)
def test_what_is_read_as_a_whole_stays_joined(name: str) -> None:
    assert "append" not in change(KEPT[name], PASS, params=PARAMS)


@pytest.mark.parametrize("rows", [slice(2, 4), slice(4, 4)])
def test_arrays_without_elements(rows: slice) -> None:
    empty = normal(4, 0)
    change(lambda p, x: (joined(p)[rows] * 2.0).sum() + p["s"].sum(), PASS, params={"a": empty, "b": empty, "s": empty})


@pytest.mark.parametrize("first", [True, False])
def test_all_of_an_array_is_one_piece_if_the_other_is_empty(first: bool) -> None:
    params = {"a": normal(2, 3), "none": normal(2, 0)}

    def loss(p: Any, x: Any) -> Any:
        whole = [ops.exp(p["a"]), ops.exp(p["none"])]
        return ops.tanh(ops.concat(whole if first else whole[::-1], 1)[:, 1:]).sum()

    assert change(loss, PASS, params=params)["append"] == -1
