"""What users of other libraries ask of a Var is refused with what to write instead; numpy's operators are taken."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.base.pytorch_names import Row, sections
from dgrr.tape import DgrrError, DTypeError, MissingAttributeError, Tape, ops
from dgrr.tape.var.foreign import MIRRORED, OTHER_NAMES, REFLECTED, WITHOUT_RECORD
from dgrr.tape.var.op_table import COMPOSED, OPS

pytestmark = pytest.mark.quick

ARRAY = np.array([[1.0, 2.0], [3.0, 4.0]])


def leaf() -> Any:
    return Tape[Any]().leaf([[0.5, 2.0], [3.0, -1.0]])


SYMBOLS: list[Callable[[Any, Any], Any]] = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.matmul,
    operator.pow, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("other", [ARRAY, ARRAY[0], np.float64(2.0)], ids=["matrix", "row", "scalar"])
def test_an_array_on_the_left_is_an_operand(symbol: Callable[[Any, Any], Any], other: Any) -> None:
    if symbol is operator.matmul and other.ndim == 0:
        return
    _check_left(symbol, other, leaf())


def _check_left(symbol: Callable[[Any, Any], Any], other: Any, x: Any) -> None:
    made = symbol(other, x)
    assert made.tape is x.tape
    expected = np.ascontiguousarray(symbol(other, x.numpy()))
    assert made.numpy().dtype == expected.dtype
    assert made.numpy().tobytes() == expected.tobytes()


WHOLE = np.array([[7, -7], [8, 0]])
MASK = np.array([[True, False], [False, True]])


@pytest.mark.parametrize("symbol", [operator.floordiv, operator.mod])
@pytest.mark.parametrize("other", [WHOLE, WHOLE[0], np.int64(7)], ids=["matrix", "row", "scalar"])
def test_whole_numbers_on_the_left_are_operands(symbol: Callable[[Any, Any], Any], other: Any) -> None:
    _check_left(symbol, other, Tape[Any]().const([[2, 3], [-2, 5]]))


@pytest.mark.parametrize("symbol", [operator.and_, operator.or_, operator.xor])
@pytest.mark.parametrize("other", [MASK, MASK[0], np.True_], ids=["matrix", "row", "scalar"])
def test_masks_on_the_left_are_operands(symbol: Callable[[Any, Any], Any], other: Any) -> None:
    _check_left(symbol, other, Tape[Any]().const([[True, True], [False, False]]))


def test_the_function_of_an_operator_takes_numbers_and_lists_on_the_left() -> None:
    assert np.less(1, leaf()).numpy().tolist() == [[False, True], [True, False]]
    assert np.add([[1.0, 2.0]] * 2, leaf()).numpy().tolist() == [[1.5, 4.0], [4.0, 1.0]]


@pytest.mark.parametrize(
    ("wrap", "what"),
    [(lambda x: x, "a Var"), (lambda x: [x, x], "a list of Vars"), (lambda x: ([x],), "a tuple of Vars")],
)
@pytest.mark.parametrize("call", ["leaf", "const", "param"])
def test_a_var_does_not_become_a_leaf_without_a_word(call: str, wrap: Callable[[Any], Any], what: str) -> None:
    x = leaf()
    with pytest.raises(DTypeError) as caught:
        getattr(x.tape, call)(wrap(x))
    assert str(caught.value) == (
        f"{call}: argument 'value': expected an array of numbers, got {what}, whose gradient would end here; "
        "write x.value for its value alone"
    )
    assert np.array_equal(x.tape.const(x.value).numpy(), x.numpy())


def test_every_operator_of_numpy_is_tried() -> None:
    tried_elsewhere = {"floor_divide", "remainder", "bitwise_and", "bitwise_or", "bitwise_xor"}
    assert len((REFLECTED | MIRRORED).keys() - tried_elsewhere) == len(SYMBOLS)


def test_an_array_of_a_var_is_its_value() -> None:
    x = leaf()
    assert np.asarray(x) is x.numpy()
    assert not np.asarray(x).flags.writeable
    assert np.array(x).flags.writeable
    assert np.asarray(x, np.float32).dtype == np.float32
    assert np.array_equal(np.stack([x.numpy(), np.asarray(x)])[1], x.numpy())
    assert len(x.tape) == 1


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (np.exp, "numpy.exp: expected arrays, got a Var; write ops.exp for an op that is recorded, and x.numpy() for its"),
    (np.negative, "numpy.negative: expected arrays, got a Var; write ops.neg for an op"),
    (np.arctan, "numpy.arctan: expected arrays, got a Var; write ops.atan for an op that is recorded, and x.numpy()"),
    (np.invert, "numpy.invert: expected arrays, got a Var; write ops.logical_not for an op that is recorded"),
    (np.cbrt, "numpy.cbrt: expected arrays, got a Var; write x.numpy() for its value"),
    (lambda x: np.add(x, 1.0), "numpy.add: expected arrays, got a Var; write ops.add for an op that is recorded"),
    (np.add.reduce, "numpy.add: expected arrays, got a Var; write ops.add"),
    (lambda x: np.multiply(ARRAY, x, dtype=np.float32), "numpy.multiply: expected arrays, got a Var; write ops.mul"),
    (np.sum, "numpy.sum: expected arrays, got a Var; write ops.reduce_sum"),
    (np.mean, "numpy.mean: expected arrays, got a Var; write ops.reduce_mean"),
    (lambda x: np.concatenate([x, x]), "numpy.concatenate: expected arrays, got a Var; write ops.concat"),
    (np.linalg.norm, "numpy.norm: expected arrays, got a Var; write ops.norm for an op that is recorded"),
    (np.linalg.svd, "numpy.svd: expected arrays, got a Var; write x.numpy() for its value"),
    (lambda x: operator.iadd(ARRAY.copy(), x), "numpy.add: an array cannot take a Var in place; write a = a + x"),
    (lambda x: np.power(x, 2.0), "numpy.power: expected arrays, got a Var; write ops.pow for an op that is recorded"),
    (
        lambda x: operator.iand(MASK.copy(), x),
        "numpy.bitwise_and: an array cannot take a Var in place; write a = a + x",
    ),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_functions_of_numpy_are_refused_and_append_nothing(call: Callable[[Any], Any], text: str) -> None:
    x = leaf()
    with pytest.raises(DTypeError) as caught:
        call(x)
    assert str(caught.value).startswith(text)
    assert len(x.tape) == 1


ATTRIBUTES = [
    ("grad", "Var: there is no attribute 'grad'; x.tape.backward_dense(loss)[x] is its gradient"),
    ("sin", "Var: there is no attribute 'sin'; write ops.sin(x)"),
    ("einsum", "Var: there is no attribute 'einsum'; write ops.einsum(x)"),
    ("where_positive", "Var: there is no attribute 'where_positive'"),
    ("copy", "Var: there is no attribute 'copy'; a Var never changes, so it needs no copy"),
    ("bmm", "Var: there is no attribute 'bmm'; it is ops.matmul, or a @ b"),
    ("reshpae", "Var: there is no attribute 'reshpae'; did you mean x.reshape?"),
    ("nonsense", "Var: there is no attribute 'nonsense'"),
]


@pytest.mark.parametrize(("name", "text"), ATTRIBUTES)
def test_attributes_of_other_libraries_are_named_with_ours(name: str, text: str) -> None:
    x = leaf()
    with pytest.raises(MissingAttributeError) as caught:
        getattr(x, name)
    assert str(caught.value) == text
    assert not hasattr(x, name)
    with pytest.raises(AttributeError):
        setattr(x, name, 1)


def rows(home: str) -> list[Row]:
    return [row for section in sections() if section.home == home for row in section.rows]


def test_advice_is_given_where_there_is_none() -> None:
    x = leaf()
    assert [row.name for row in rows("x") if row.here != f"x.{row.name}" and hasattr(x, row.name)] == []
    assert {*OTHER_NAMES.values(), *WITHOUT_RECORD} <= {*ops.__all__}
    assert not {*WITHOUT_RECORD} & {*OPS, *COMPOSED}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: ops.softmax(x, dim=0), "softmax: got an unexpected keyword argument 'dim'; write axis="),
        (lambda x: x.sum(dim=0, keepdim=True),
         "reduce_sum: got an unexpected keyword argument 'dim'; write axis=; write keepdims="),
        (lambda x: ops.exp(x, dim=0), "exp: got an unexpected keyword argument 'dim'"),
    ],
)  # fmt: skip
def test_arguments_of_other_libraries_are_named_with_ours(call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(DgrrError) as caught:
        call(leaf())
    assert str(caught.value) == text
