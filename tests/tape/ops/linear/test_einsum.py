"""Einstein summation against numpy's, its gradients against differences, and the path that the tape shows."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dgrr.tape import DTypeError, ShapeError, Tape, TapeError, gradcheck, ops

CASES: list[tuple[str, list[tuple[int, ...]]]] = [
    ("i->i", [(3,)]),
    ("ij->ji", [(2, 3)]),
    ("ba", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ijk->ik", [(2, 3, 4)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("ii->i", [(0, 0)]),
    ("iij->j", [(3, 3, 2)]),
    ("iii->i", [(3, 3, 3)]),
    ("i,i", [(4,), (4,)]),
    ("i,j->ij", [(2,), (3,)]),
    ("i,j->ji", [(2,), (3,)]),
    (",ij->ij", [(), (2, 3)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,jk->ki", [(2, 3), (3, 4)]),
    ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("ij,ij->i", [(2, 3), (2, 3)]),
    ("ij,kl->", [(2, 3), (4, 5)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("ij,ik,il->jkl", [(2, 3), (2, 4), (2, 5)]),
    ("...ij,...jk->...ik", [(2, 5, 3, 4), (2, 5, 4, 2)]),
    ("...ij,jk->...ik", [(2, 5, 3, 4), (4, 2)]),
    ("i...,j...->...ij", [(2, 6), (3, 5, 6)]),
    ("i...", [(2, 3, 4)]),
    ("...ii->...i", [(4, 3, 3)]),
    (" i j , j k -> i k ", [(2, 3), (3, 4)]),
    ("ij,jk->ik", [(2, 0), (0, 4)]),
    ("ij,jk->ik", [(0, 3), (3, 4)]),
]

REPEATED: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk", [(2, 1), (3, 4)]),
    ("ij,jk", [(2, 3), (1, 4)]),
    ("ij,jk", [(2, 1), (1, 4)]),
    ("ij,ij->ij", [(2, 1), (1, 3)]),
    ("ij,ij->i", [(2, 1), (2, 3)]),
    ("i,i->i", [(1,), (0,)]),
    ("ij,jk,kl->il", [(2, 1), (3, 4), (1, 2)]),
    ("bij,bjk->bik", [(1, 2, 3), (5, 3, 4)]),
    ("bij,bjk->bik", [(5, 2, 1), (1, 3, 4)]),
    ("...ij,...jk->...ik", [(1, 5, 3, 4), (2, 1, 4, 2)]),
    ("...i,...i->...", [(5, 4), (2, 1, 4)]),
    ("ii,i->i", [(1, 1), (3,)]),
]
"""An axis of size 1 stands for all indices of its label."""


@pytest.mark.parametrize(("subscripts", "shapes"), CASES + REPEATED)
def test_the_value_is_numpys(tape: Tape[Any], subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(0)
    arrays = [
        np.asarray(rng.integers(-4, 5, shape), np.float64) for shape in shapes
    ]  # whole: every order gives one sum
    out = ops.einsum(subscripts, *[tape.leaf(a) for a in arrays])
    expected = np.einsum(subscripts, *arrays)
    assert out.shape == expected.shape
    assert np.array_equal(out.numpy(), expected)


@pytest.mark.parametrize(("subscripts", "shapes"), [case for case in CASES if all(np.prod(s) for s in case[1])][::3])
def test_the_gradient_is_the_slope(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    assert gradcheck(lambda *xs: ops.einsum(subscripts, *xs), *arrays).ok


@pytest.mark.parametrize(("subscripts", "shapes"), [case for case in REPEATED if all(np.prod(s) for s in case[1])])
def test_the_gradient_of_a_repeated_axis_is_the_sum_along_it(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    assert gradcheck(lambda *xs: ops.einsum(subscripts, *xs), *arrays).ok


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_sizes_and_labels(data: st.DataObject) -> None:
    """Some labels for each of some operands, each axis of its label's size or of size 1."""
    sizes = {label: data.draw(st.sampled_from([1, 2, 3])) for label in "abcd"}
    terms = data.draw(st.lists(st.permutations("abcd").map(lambda p: "".join(p[:2])), min_size=1, max_size=3))
    seen = sorted(set("".join(terms)))
    result = "".join(data.draw(st.permutations(seen)))[: data.draw(st.integers(0, len(seen)))]
    shapes = [tuple(sizes[label] if data.draw(st.booleans()) else 1 for label in term) for term in terms]
    arrays = [np.arange(np.prod(shape), dtype=np.float64).reshape(shape) - 2 for shape in shapes]
    subscripts = f"{','.join(terms)}->{result}"
    out = ops.einsum(subscripts, *map(Tape[Any]().leaf, arrays[:1]), *arrays[1:])
    assert np.array_equal(out.numpy(), np.einsum(subscripts, *arrays))


def test_a_repeated_axis_is_never_made(tape: Tape[Any]) -> None:
    """It costs nothing: no node is larger than the operands and the result."""
    out = ops.einsum("ij,jk->ik", tape.leaf(np.ones((2, 1))), tape.leaf(np.ones((300, 4))))
    assert out.numpy().tolist() == [[300.0] * 4] * 2
    assert max(node.value.size for node in tape) == 1200


def test_the_path_is_on_the_tape(tape: Tape[Any]) -> None:
    a, b, c = (tape.leaf(np.ones(shape)) for shape in ((2, 3), (3, 4), (4, 5)))
    ops.einsum("ij,jk,kl->il", a, b, c)
    assert [node.op_name for node in tape].count("matmul") == 2


def test_what_nobody_needs_is_summed_before_the_product(tape: Tape[Any]) -> None:
    out = ops.einsum("ij,kl->ik", tape.leaf(np.ones((2, 3))), tape.leaf(np.ones((4, 5))))
    product = next(node for node in tape if node.op_name == "matmul")
    assert product.value.sizes == (2, 4)
    assert out.numpy().tolist() == [[15.0] * 4] * 2


def test_a_product_has_the_bits_of_matmul(tape: Tape[Any]) -> None:
    rng = np.random.default_rng(2)
    a, b = tape.leaf(rng.standard_normal((3, 300))), tape.leaf(rng.standard_normal((300, 4)))
    assert np.array_equal(ops.einsum("ij,jk->ik", a, b).numpy(), (a @ b).numpy())


@pytest.mark.parametrize(
    ("subscripts", "shapes", "text"),
    [
        ("ij,jk", [(2, 3)], "einsum: argument 'subscripts': expected one for each of 1 operands, got 2 in 'ij,jk'"),
        ("ij", [(2,)], "expected a label for each of 1 axes, got 'ij'"),
        ("i", [(2, 3)], "expected a label for each of 2 axes, got 'i'"),
        ("...ij", [(2,)], "expected a label for each of 1 axes"),
        ("i1", [(2, 3)], "expected letters and one '...', got 'i1'"),
        ("...i...", [(2, 3)], "expected letters and one '...', got '...i...'"),
        ("ij->ii", [(2, 3)], "expected each label of the result once, and in an operand, got 'ii'"),
        ("ij->k", [(2, 3)], "expected each label of the result once, and in an operand, got 'k'"),
        ("ij,jk", [(2, 3), (4, 5)], "expected size 3 or 1 along 'j' of 'ij,jk', got 4 in operand 1"),
        ("ii", [(2, 3)], "expected size 2 along 'i' of 'ii', got 3 in operand 0"),
        ("ii", [(1, 3)], "expected size 1 along 'i' of 'ii', got 3 in operand 0"),
    ],
)
def test_what_does_not_fit_is_refused(tape: Tape[Any], subscripts: str, shapes: Any, text: str) -> None:
    operands = [tape.leaf(np.ones(shape)) for shape in shapes]
    with pytest.raises(ShapeError) as refusal:
        ops.einsum(subscripts, *operands)
    assert text in str(refusal.value)
    assert len(tape) == len(operands)


def test_nonsense_is_refused(tape: Tape[Any]) -> None:
    x, array = tape.leaf(np.ones((2, 3))), np.ones((2, 3))
    with pytest.raises(DTypeError, match="einsum: argument 'subscripts': expected a string, got 5"):
        ops.einsum(5, x)  # type: ignore[arg-type]
    with pytest.raises(TapeError, match="einsum: expected a Var among the arguments; put an array on a tape"):
        ops.einsum("ij->ji", array)
    with pytest.raises(DTypeError, match="einsum: argument 'operands': expected"):
        ops.einsum("ij,jk", x, [[1.0], [1.0, 2.0]])
