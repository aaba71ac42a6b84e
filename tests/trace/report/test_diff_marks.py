"""What is marked on the page of two runs: all that flows from the first difference, by the recorded graph."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import Cause, Comparison, OpDigests, TapeNode, compare
from dgrr.trace.comparing.ops import aligned, first_op

from .diff_page import CHAIN, F, digests, parted, written


def downstream(nodes: Any, start: set[int]) -> set[int]:
    """All that takes one of these, and what takes that: forward along the recorded inputs."""
    found, waiting = set[int](), list(start)
    while waiting:
        position = waiting.pop()
        if position not in found:
            found.add(position)
            waiting += [taker for taker, node in enumerate(nodes) if position in node.parents]
    return found


def upstream_of_gradients(nodes: Any, grads: Any, values: set[int], start: set[int]) -> set[int]:
    """The nodes whose gradients are computed from these values or gradients."""
    found, arrived = set(start), {i for i, grad in enumerate(grads) if grad is not None}
    while True:
        reads = {i for i in arrived if i in found or i in values or values & set(nodes[i].parents)}
        new = {p for i in reads for p in nodes[i].parents} - found
        if not new:
            return found
        found |= new


def ops_of(found: Comparison) -> tuple[OpDigests, OpDigests]:
    assert found.ops is not None
    return found.ops


def test_the_first_difference_and_what_flows_from_it(runs: Path) -> None:
    found = compare(runs / "tanh", runs / "relu")
    page, (a, b) = written(found, runs), ops_of(found)
    assert found.op is not None
    (first,) = [row for row in page.rows["values"] if row.place == "first"]
    assert first.at == (found.op.index, found.op.index)
    assert first.mark == f"first difference: {found.op.short}, another op"
    assert "tanh" in first.sides[0] and "relu" in first.sides[1]
    for line in found.op.lines():
        assert line in page.said["summary"]
    reached = downstream(b.nodes, {found.op.index})
    differ = {i for i in range(len(b.nodes)) if a.values[i] != b.values[i]}
    assert {j for _, j in page.marked("values", "flows")} == (reached & differ) - {found.op.index}
    assert page.marked("values", "beside") == set()
    assert len(page.rows["values"]) == len(b.nodes) > len(reached)
    back = upstream_of_gradients(b.nodes, b.grads, reached, set())
    other = {i for i in range(len(b.nodes)) if a.grads[i] != b.grads[i]}
    assert {j for _, j in page.marked("gradients", "flows")} == back & other == other
    assert [row.at[1] for row in page.rows["gradients"]] == [
        i for i in reversed(range(len(b.nodes))) if b.grads[i] is not None
    ]
    quiet = [row for row in page.rows["gradients"] if "d" not in row.classes]
    assert any("exp" in row.sides[0] for row in quiet)  # the other branch


def test_an_op_that_was_added_and_one_that_was_removed(runs: Path) -> None:
    for pair, only, side in ((("tanh", "longer"), "b", 1), (("longer", "tanh"), "a", 0)):
        found = compare(*(runs / name for name in pair))
        page, nodes = written(found, runs), ops_of(found)[side].nodes
        assert found.op is not None
        (first,) = [row for row in page.rows["values"] if row.place == "first"]
        assert first.mark == f"first difference: {found.op.short}, only in {only}"
        assert (first.at[side], first.sides[1 - side]) == (found.op.index, "–")
        flows = {at[side] for at in page.marked("values", "flows")}
        assert flows == downstream(nodes, {found.op.index}) - {found.op.index}
        takers = [row.mark for row in page.rows["values"] if row.mark.endswith("other inputs")]
        assert takers == ["follows from the first, other inputs"]


@pytest.mark.parametrize(
    ("values", "grads", "first", "flows", "beside", "flows_back", "beside_back"),
    [
        ("aBcdef", "abcdef", 1, set(), set(), set(), set()),  # what differs is lost in the next op
        ("aBcDeF", "abcdef", 1, {3, 5}, set(), set(), set()),
        ("aBCDef", "abcdef", 1, {3}, {2}, set(), set()),  # a second difference, of another branch
        ("abCdef", "AbCdef", 2, set(), set(), {0}, {2}),  # add's backward reads that value: it gives to tanh and sin
    ],
)
def test_values_that_do_not_flow_from_the_first(
    tmp_path: Path,
    values: str,
    grads: str,
    first: int,
    flows: set[int],
    beside: set[int],
    flows_back: set[int],
    beside_back: set[int],
) -> None:
    page = written(parted(digests("abcdef", "abcdef"), digests(values, grads)), tmp_path)
    assert page.marked("values", "first") == {(first, first)}
    assert page.marked("values", "flows") == {(i, i) for i in flows}
    assert page.marked("values", "beside") == {(i, i) for i in beside}
    reached = downstream(CHAIN, {first})
    back = upstream_of_gradients(CHAIN, digests(values, grads).grads, reached, set())
    differ = {i for i, (x, y) in enumerate(zip("abcdef", grads, strict=True)) if x != y}
    assert {i for i, _ in page.marked("gradients", "flows")} == back & differ
    assert {i for i, _ in page.marked("gradients", "beside")} == differ - back


def test_the_first_gradient(tmp_path: Path) -> None:
    found = parted(digests("abcdef", "abcdef"), digests("abcdef", "AbcDef"))
    page = written(found, tmp_path)
    assert found.op is not None and found.op.what == "grad"
    assert page.marked("values", "first") == set()
    assert "all 6 values are equal" in page.said["values"]
    assert page.marked("gradients", "first") == {(3, 3)}
    (first,) = [row for row in page.rows["gradients"] if row.place == "first"]
    assert first.mark == f"first difference: {found.op.short}"
    assert CHAIN[3] == found.op.target
    assert page.marked("gradients", "flows") == {(0, 0)}  # exp, between the two, has the same in both
    page = written(parted(digests("abcdef", "abcdef"), digests("abcdef", "ABcDef")), tmp_path)
    assert page.marked("gradients", "flows") == {(0, 0), (1, 1)}


def test_inputs_that_differ_stand_out(tmp_path: Path) -> None:
    page = written(parted(digests("abcdef", "abcdef"), digests("aBcDEF", "abcdef")), tmp_path)
    assert "<small>of #2, <b>#3</b></small>" in page.text


def test_runs_that_begin_otherwise_show_their_first_step(runs: Path) -> None:
    found = compare(runs / "tanh", runs / "seed")
    page, (a, b) = written(found, runs), ops_of(found)
    assert (found.cause, found.op) == (Cause.START, None)
    first = next(i for i, (x, y) in enumerate(zip(a.values, b.values, strict=True)) if x != y)
    assert page.marked("values", "first") == {(first, first)}
    named = first_op(a, b)
    assert named is not None and page.rows["values"][first].mark == f"first difference: {named.short}"


# ------------------------------------------------------------------ alignment


def test_long_tapes_are_aligned_to_their_end() -> None:
    rng = np.random.default_rng(0)
    names = [("exp", "tanh", "sin", "add")[k] for k in rng.integers(0, 4, 3000)]
    a = [TapeNode(name, F, (k % 7,)) for k, name in enumerate(names)]
    b = [*a[:50], TapeNode("new", F, ()), *a[50:900], *a[1500:2000], TapeNode("other", F, ()), *a[2001:]]
    blocks = list(aligned(a, b))
    i = j = 0
    for tag, i1, i2, j1, j2 in blocks:
        assert (i1, j1) == (i, j)
        i, j = i2, j2
        assert tag != "equal" or a[i1:i2] == b[j1:j2]
    assert (i, j) == (len(a), len(b))
    assert ("insert", 50, 50, 50, 51) in blocks
    same = {j1 + k for tag, i1, i2, j1, _ in blocks if tag == "equal" for k in range(i2 - i1)}
    assert set(range(50)) | set(range(51, 800)) <= same
    assert set(range(len(b) - 500, len(b))) <= same
