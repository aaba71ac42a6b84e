"""Gradients of slices that are added become one call, to the bit of what they were; other sums of blocks stay."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, CapturedStep, EagerStep
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import nn, ops
from dgrr.tape.numerics.engine.launch import Words, run
from dgrr.tape.ops.shape import kernels

from .programs import Loss, change, kernels as kernels_of, normal, programs

PASS = "joined-slices"
WIDE, DEEP = normal(4, 12), normal(3, 5, 4)


def gates(p: Any, x: Any) -> Any:
    a, b, c = ops.split(p["wide"], 3, 1)
    return (ops.tanh(a) * b + c).sum()


def halves(p: Any, x: Any) -> Any:
    """By halving, as recurrent layers take a sequence apart."""
    left, right = ops.narrow(p["wide"], 0, 5, 1), ops.narrow(p["wide"], 5, 7, 1)
    parts = [*ops.split(left, [2, 3], 1), *ops.split(right, [3, 4], 1)]
    return ops.concat([ops.tanh(part) for part in reversed(parts)], 1).sum()


def rows(p: Any, x: Any) -> Any:
    return (p["wide"][0] * p["wide"][1] * ops.tanh(p["wide"][2]) * p["wide"][3]).sum()


def places(p: Any, x: Any) -> Any:
    """The places of a sequence whose first axis is the batch."""
    found = [ops.tanh(p["deep"][:, t]) * (t + 1.0) for t in range(5)]
    return ops.stack(found, 1).sum()


def every_second(p: Any, x: Any) -> Any:
    return (p["wide"][::2] * ops.tanh(p["wide"][1::2])).sum()


JOINED: dict[str, tuple[Loss, int, int]] = {
    "gates": (gates, 3, 1),
    "halves": (halves, 6, 1),
    "rows": (rows, 4, 1),
    "places": (places, 5, 1),
    "every second": (every_second, 2, 1),
}


@pytest.mark.parametrize("name", JOINED)
def test_slices_that_make_up_an_array(name: str) -> None:
    loss, placed, joined = JOINED[name]
    changed = change(loss, PASS, params={"wide": WIDE, "deep": DEEP})
    assert changed == {
        "place_columns": -placed,
        "add": -(placed - 1) if name != "halves" else -3,
        "join_columns": joined,
    }


def inner(p: Any, x: Any) -> Any:
    """Of which all parts of one half are read, and the other half is not."""
    return ops.tanh(ops.split(ops.narrow(p["wide"], 0, 6, 1), 2, 1)[0] * ops.narrow(p["wide"], 3, 3, 1)).sum()


APART: dict[str, Loss] = {
    "a part is not read": lambda p, x: (p["wide"][0] * ops.tanh(p["wide"][1]) * p["wide"][2]).sum(),
    "parts overlap": lambda p, x: (p["wide"][:3] * ops.tanh(p["wide"][1:])).sum(),
    "backwards": lambda p, x: (p["wide"][:, 5::-1] * ops.tanh(p["wide"][:, 6:])).sum(),
    "one of all": lambda p, x: ops.tanh(p["wide"][:]).sum(),
    "of other axes": lambda p, x: (ops.tanh(p["wide"][:, :6]).sum() * ops.tanh(p["wide"][:2]).sum()),
    "inner": inner,
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_what_makes_up_no_array_stays_apart(name: str) -> None:
    assert "join_columns" not in change(APART[name], PASS, params={"wide": WIDE, "deep": DEEP})


def test_the_parts_of_a_half_of_which_the_rest_is_not_read() -> None:
    def loss(p: Any, x: Any) -> Any:
        a, b = ops.split(ops.narrow(p["wide"], 0, 6, 1), 2, 1)
        return ops.tanh(a * ops.exp(b)).sum()

    assert change(loss, PASS, params={"wide": WIDE})["join_columns"] == 1


def test_what_else_an_array_is_used_for() -> None:
    """Before it is taken apart: then that gradient is added last. After it, the sum begins with that."""

    def before(p: Any, x: Any) -> Any:
        other = ops.exp(p["wide"]).sum()
        return gates(p, x) + other

    def after(p: Any, x: Any) -> Any:
        return gates(p, x) + ops.exp(p["wide"]).sum()

    assert change(before, PASS, params={"wide": WIDE})["join_columns"] == 1
    assert change(after, PASS, params={"wide": WIDE}) == {}


def test_a_block_of_two_sums() -> None:
    """As where the same cotangent goes to two products, of which gates are parts."""

    def loss(p: Any, x: Any) -> Any:
        a, b = ops.split(p["wide"], 2, 1), ops.split(p["other"], 2, 1)
        return ops.tanh(a[0] + b[0]).sum() + ops.exp(a[1]).sum() + ops.tanh(b[1]).sum()

    _, after = programs(loss, PASS, "common-subexpressions", params={"wide": WIDE, "other": WIDE + 1})
    assert (kernels_of(after)["join_columns"], kernels_of(after)["place_columns"]) == (2, 0)


def test_zeros_have_the_sign_that_a_sum_with_zero_gives_them() -> None:
    """And values that are no numbers stay none: the blocks of a sum are not merely copied."""
    odd = np.array([[-0.0, 1.0, np.nan, -np.inf, -0.0, 5e-324]])

    def loss(p: Any, x: Any) -> Any:
        a, b = ops.split(p["x"], 2, 1)
        return (a * x[:, :3]).sum() + (b * x[:, 3:]).sum()

    recipe, params = Recipe(SGD(0.0), on_nonfinite="record"), {"x": np.ones((1, 6))}
    eager, step = EagerStep(loss, params, recipe), CapturedStep(loss, params, recipe)
    eager(odd), step(odd)
    found = step.consumed["x"]
    assert found.tobytes() == eager.consumed["x"].tobytes()
    assert np.signbit(found).tolist() == [[False, False, bool(np.signbit(found[0, 2])), True, False, False]]
    assert any(op.kernel is kernels.join_columns for op in step.lowered.ops)


@pytest.mark.parametrize("layer", [nn.RNN(3, 4), nn.GRU(3, 4, batch_first=True), nn.LSTM(3, 4, bidirectional=True)])
def test_a_recurrent_layer_places_no_gradient(layer: Any) -> None:
    def loss(p: Any, x: Any) -> Any:
        return ops.tanh(layer(p, x)).sum()

    params, batch = layer.init(0), normal(6, 5, 3)
    step, eager = (kind(loss, params, Recipe(SGD(0.1))) for kind in (CapturedStep, EagerStep))
    for _ in range(3):
        assert step(batch).tobytes() == eager(batch).tobytes()
    assert step.digest() == eager.digest()
    assert not any(op.kernel in (kernels.place, kernels.place_columns) for op in step.lowered.ops)


def each_part(kernel: Any, words: Words, arrays: list[Any], parts: int) -> Any:
    out = np.full_like(arrays[0], 7.0)
    assert run(kernel.address(out.dtype), words, [out, *arrays[1:]], parts) == 0
    return out


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("runs", [[1], [1, 1], [3, 1, 4], [2] * 9])
def test_any_share_of_a_join(runs: list[int], dtype: Any, parts: int) -> None:
    blocks = [normal(5, n).astype(dtype) for n in runs]
    found = each_part(
        kernels.join_columns, Words(5, sum(runs), len(runs), *runs), [np.empty((5, sum(runs)), dtype), *blocks], parts
    )
    assert found.tobytes() == (np.concatenate(blocks, 1) + dtype(0)).tobytes()


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
@pytest.mark.parametrize(("first", "run"), [(0, 1), (0, 6), (2, 3), (5, 1)])
def test_any_share_of_a_block(first: int, run: int, parts: int) -> None:
    block = normal(5, run)
    expected = np.zeros((5, 6), np.float32)
    expected[:, first : first + run] = block
    found = each_part(kernels.place_columns, Words(5, 6, first, run), [np.empty((5, 6), np.float32), block], parts)
    assert found.tobytes() == expected.tobytes()
