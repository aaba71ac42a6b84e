"""Vars: operators and methods record the ops they name, broadcast openly, and promote nothing."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyTensor, BoundsError, BroadcastWarning, DomainError, DTypeError, Shape, ShapeError, Tape, ops
from dgrr.tape.var.op_table import OPS

pytestmark = pytest.mark.quick

ARITHMETIC = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
COMPARISONS = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
REFLECTED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


def names(tape: Tape[Any]) -> list[str]:
    return [node.op_name for node in tape]


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
def test_operators_on_vars_record_one_op(tape: Tape[Any], name: str) -> None:
    function = {**ARITHMETIC, **COMPARISONS}[name]
    a, b = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0])
    out = function(tape.leaf(a), tape.leaf(b))
    assert names(tape) == ["leaf", "leaf", name]
    assert out.numpy().tolist() == function(a, b).tolist()
    assert out.dtype == function(a, b).dtype


@pytest.mark.parametrize("other", [2, 2.0, True, np.float64(2), np.float32(2), np.int64(2), np.array([2.0, 3.0])])
@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
def test_numbers_and_arrays_on_either_side(tape: Tape[Any], name: str, other: Any) -> None:
    function = {**ARITHMETIC, **COMPARISONS}[name]
    a = np.array([1.0, 2.0])
    x = tape.leaf(a)
    right, left = function(x, other), function(other, x)
    assert right.numpy().tolist() == function(a, other).tolist()
    assert left.numpy().tolist() == function(other, a).tolist()
    assert tape.node(right).op_name == name
    assert tape.node(left).op_name == REFLECTED.get(name, name)


def test_a_number_takes_the_dtype_of_the_other_side(tape: Tape[Any]) -> None:
    x = tape.leaf(np.ones(2, np.float32))
    for number in (0.1, np.float64(0.1), np.float32(0.1), 1, True):
        out = x * number
        assert out.dtype == np.float32
        assert out.numpy().tolist() == [np.float32(number)] * 2


def test_operands_broadcast_by_a_node_that_the_tape_shows(tape: Tape[Any]) -> None:
    m, v = tape.leaf(np.ones((2, 3))), tape.leaf(np.arange(3.0))
    out = m + v
    assert names(tape) == ["leaf", "leaf", "broadcast_to", "add"]
    grads = tape.backward_dense(out.sum())
    assert grads[v].numpy().tolist() == [2.0, 2.0, 2.0]  # type: ignore[union-attr]
    column, row = tape.leaf(np.ones((2, 1))), tape.leaf(np.ones((1, 4)))
    assert (column * row).numpy().shape == (2, 4)
    assert names(tape)[-3:] == ["broadcast_to", "broadcast_to", "mul"]


def test_an_array_broadcasts_before_it_enters_the_tape(tape: Tape[Any]) -> None:
    out = tape.leaf(np.ones((2, 3))) + np.arange(3.0)
    assert names(tape) == ["leaf", "leaf", "add"]
    assert out.numpy().tolist() == [[1.0, 2.0, 3.0]] * 2


def test_the_ops_themselves_do_not_broadcast(tape: Tape[Any]) -> None:
    m, v = tape.leaf(np.ones((2, 3))), tape.leaf(np.arange(3.0))
    advice = "shapes do not broadcast here: give both one shape, with reshape or ops.broadcast_to$"
    with pytest.raises(ShapeError, match=rf"^add: argument 'b': expected shape \(2, 3\), got \(3,\); {advice}"):
        ops.add(m, v)
    with pytest.raises(ShapeError, match=rf"^mse_loss: argument 'b': expected shape \(2, 1\), got \(2,\); {advice}"):
        ops.mse_loss(m[:, :1], v[:2])
    with pytest.raises(ShapeError, match=r"^add: argument 'b': expected shape \(2, 3\), got \(2,\)$"):
        ops.add(m, v[:2])


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_broadcast_as_operators_do(tape: Tape[Any], name: str) -> None:
    m, v = np.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]]), np.array([2.0, 1.0, 2.5])
    x, y = tape.leaf(m), tape.leaf(v)
    out = getattr(ops, name)(x, y)
    assert names(tape) == ["leaf", "leaf", "broadcast_to", name]
    assert out.numpy().tolist() == getattr(np, name)(m, v).tolist()
    grads: Any = tape.backward_dense(out.sum())
    assert grads[y].numpy().tolist() == (m != out.numpy()).sum(0).tolist()
    tensors: Any = AnyTensor(m[:, :1]), AnyTensor(v)
    assert getattr(ops, name)(*tensors).numpy().tolist() == getattr(np, name)(m[:, :1], v).tolist()


def test_selections_broadcast_as_operators_do(tape: Tape[Any]) -> None:
    row, column = tape.leaf([1.0, 2.0, 3.0]), tape.leaf([[10.0], [20.0]])
    mask = np.array([[True, False, True], [False, False, True]])
    for condition, a, b in ((mask, row, column), (mask[0], column, row), (mask[:, :1], row, row), (mask, row, 0.0)):
        made: Any = ops.where(tape.const(condition), a, b)  # type: ignore[arg-type]  # pyright: ignore
        other = b if isinstance(b, float) else b.numpy()
        assert made.numpy().tolist() == np.where(condition, a.numpy(), other).tolist()
    grads: Any = tape.backward_dense(ops.where(tape.const(mask), row, column).sum())  # type: ignore[arg-type]
    assert grads[column].numpy().tolist() == [[1.0], [2.0]]
    assert grads[row].numpy().tolist() == [1.0, 0.0, 2.0]
    count = len(tape)
    with pytest.raises(DTypeError, match="^where: argument 'condition': expected bool, got float64; convert with"):
        ops.where(row, column, row)  # type: ignore[arg-type]
    with pytest.raises(
        ShapeError, match=r"^where: argument 'b': expected a shape that broadcasts with \(2, 3\), got \(2,\)"
    ):
        ops.where(tape.const(mask[:, :1]), row, row[:2])  # type: ignore[arg-type]
    assert names(tape)[count:] == ["leaf", "getitem"]


def test_shapes_that_do_not_broadcast(tape: Tape[Any]) -> None:
    text = r"^mul: argument 'b': expected a shape that broadcasts with \(2, 3\), got \(2,\); sizes must be equal or 1"
    with pytest.raises(ShapeError, match=text):
        _ = tape.leaf(np.ones((2, 3))) * np.ones(2)


def test_nothing_is_promoted(tape: Tape[Any]) -> None:
    x, y, i = tape.leaf(np.ones(2, np.float32)), tape.leaf(np.ones(2)), tape.const([1, 2])
    text = "^add: argument 'b': expected float32, got (float64|int64); convert with ops.cast"
    for other in (y, i, np.ones(2), np.arange(2)):
        with pytest.raises(DTypeError, match=text):
            _ = x + other
    wide = "^add: argument 'a': expected float32, got float64; .*, data that numpy made float64 with x.astype"
    with pytest.raises(DTypeError, match=wide):  # of two that must be alike float64 is the odd one, wherever it stands
        _ = y + x
    assert (x + ops.cast(y, np.float32)).dtype == np.float32
    with pytest.raises(DTypeError, match=r"^div: argument 'a': expected float32 or float64, got int64; convert with"):
        _ = i / i
    with pytest.raises(
        DTypeError, match=r"^less: argument 'b': expected a whole number beside int64, got 1.5; use ops.cast"
    ):
        _ = i < 1.5
    assert (i < 2).numpy().tolist() == [True, False]


@pytest.mark.parametrize("other", ["text", None, object()])
def test_operands_that_are_no_values(tape: Tape[Any], other: Any) -> None:
    x = tape.leaf(np.ones(2))
    for function in (operator.add, operator.eq):
        with pytest.raises(DTypeError, match="argument 'b': expected a Var, a tensor, an array or a number, got "):
            function(x, other)


def test_matmul_with_an_array_on_either_side(tape: Tape[Any]) -> None:
    a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0], [7.0, 8.0]])
    assert (tape.leaf(a) @ b).numpy().tolist() == (a @ b).tolist()
    assert (a @ tape.leaf(b)).numpy().tolist() == (a @ b).tolist()
    assert (tape.leaf(a) @ tape.leaf(b)).numpy().tolist() == (a @ b).tolist()


def test_power(tape: Tape[Any]) -> None:
    x = tape.leaf([2.0, -3.0])
    assert (x**3).numpy().tolist() == [8.0, -27.0]
    assert (x**-1).numpy().tolist() == [0.5, 1.0 / -3.0]
    assert (x**0).numpy().tolist() == [1.0, 1.0]
    assert (x**2.0).numpy().tolist() == [4.0, 9.0]
    assert (tape.leaf([4.0, 0.0]) ** -0.5).numpy().tolist() == [0.5, np.inf]
    assert np.isnan((x**0.5).numpy()).tolist() == [False, True]
    refused: tuple[tuple[Any, str], ...] = (
        (float("nan"), "a finite number, got nan"),
        (1 << 21, r"a whole number of at most 2\*\*20 in size, got 2097152; use ops.pow"),
        (1e300, r"a whole number of at most 2\*\*20 in size, got 1e\+300; use ops.pow"),
    )
    for exponent, text in refused:
        with pytest.raises(DomainError, match=f"^power: argument 'exponent': expected {text}"):
            _ = x**exponent
    with pytest.raises(DTypeError, match="^power: argument 'exponent': expected a number, got True"):
        _ = x**True


def test_powers_of_vars_and_arrays(tape: Tape[Any]) -> None:
    x, row = tape.leaf([[4.0, 2.0], [-2.0, 0.0]]), tape.leaf([0.5, 3.0])
    assert (x**row).numpy().tolist()[0] == [2.0, 8.0]
    assert names(tape)[-2:] == ["broadcast_to", "pow"]
    assert (x ** np.array([[2.0, -1.0], [3.0, 0.0]])).numpy().tolist() == [[16.0, 0.5], [-8.0, 1.0]]
    assert tape.node(x ** np.array(2.0)).op_name == "power"
    assert (2**x).numpy().tolist() == [[16.0, 4.0], [0.25, 1.0]]
    assert (np.array([1.0, 3.0]) ** x).numpy().tolist() == [[1.0, 9.0], [1.0, 1.0]]
    with pytest.raises(
        DTypeError, match="^pow: argument 'exponent': expected float64, got int64; convert with ops.cast"
    ):
        _ = x ** np.array([[1, 2], [3, 4]])


WHOLE: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_those_of_numpy(tape: Tape[Any], name: str) -> None:
    function, a, b = WHOLE[name], np.array([[7, -7, 2**62]]), np.array([[2], [-3]])
    x = tape.const(a)
    for given, other in ((tape.const(b), b), (b, b), (3, 3), (np.int64(-3), -3)):
        made, expected = function(x, given), function(a, other)
        assert (made.numpy().tolist(), made.dtype) == (expected.tolist(), expected.dtype)
        assert function(given, x).numpy().tolist() == function(other, a).tolist()
    assert tape.node(function(x, 3)).op_name == name
    assert not tape.node(function(x, x)).requires_grad
    with pytest.raises(DTypeError, match=f"^{name}: argument 'b': expected a whole number beside int64, got 1.5; use"):
        function(x, 1.5)
    with pytest.raises(DTypeError, match=f"^{name}: argument '[ab]': expected int64, got float64; convert"):
        function(x, tape.leaf(np.ones((1, 3))))


def test_whole_numbers_wrap(tape: Tape[Any]) -> None:
    least = tape.const([-(2**63)])
    assert (-least).numpy().tolist() == (least // -1).numpy().tolist() == (least * -1).numpy().tolist() == [-(2**63)]
    assert (least - 1).numpy().tolist() == [2**63 - 1]
    assert (least % -1).numpy().tolist() == (least // 0).numpy().tolist() == (least % 0).numpy().tolist() == [0]


LOGIC = {"logical_and": operator.and_, "logical_or": operator.or_, "logical_xor": operator.xor}


@pytest.mark.parametrize("name", LOGIC)
def test_logic_of_masks(tape: Tape[Any], name: str) -> None:
    function, a, b = LOGIC[name], np.array([[True, False]]), np.array([[True], [False]])
    mask = tape.const(a)
    for given, other in ((tape.const(b), b), (b, b), (True, True), (np.False_, np.False_)):
        assert function(mask, given).numpy().tolist() == function(a, other).tolist()
        assert function(given, mask).numpy().tolist() == function(other, a).tolist()
    assert tape.node(function(mask, mask)).op_name == name
    assert (~mask).numpy().tolist() == [[False, True]]
    with pytest.raises(DTypeError, match=f"^{name}: argument 'a': expected bool, got float64; convert with ops.cast"):
        function(tape.leaf([1.0]), tape.leaf([1.0]))
    with pytest.raises(DTypeError, match=f"^{name}: argument 'b': expected True or False beside bool, got 2"):
        function(mask, 2)


METHODS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "relu": ("relu", lambda x: x.relu()),
    "exp": ("exp", lambda x: x.exp()),
    "log": ("log", lambda x: x.log()),
    "tanh": ("tanh", lambda x: x.tanh()),
    "sigmoid": ("sigmoid", lambda x: x.sigmoid()),
    "sqrt": ("sqrt", lambda x: x.sqrt()),
    "neg": ("neg", lambda x: -x),
    "abs": ("absolute", lambda x: x.abs()),
    "abs()": ("absolute", abs),
    "square": ("square", lambda x: x.square()),
    "clamp": ("clamp", lambda x: x.clamp(1.0, 2.0)),
    "softmax": ("softmax", lambda x: x.softmax(axis=0)),
    "log_softmax": ("log_softmax", lambda x: x.log_softmax(axis=0)),
    "sum": ("reduce_sum", lambda x: x.sum(axis=0, keepdims=True)),
    "mean": ("reduce_mean", lambda x: x.mean(axis=(0, 1))),
    "reshape": ("reshape", lambda x: x.reshape(3, -1)),
    "reshape by a tuple": ("reshape", lambda x: x.reshape((3, -1))),
    "reshape by a list": ("reshape", lambda x: x.reshape([3, -1])),
    "flatten": ("flatten", lambda x: x.flatten()),
    "broadcast_to": ("broadcast_to", lambda x: x.broadcast_to((4, 2, 3))),
    "T": ("transpose2d", lambda x: x.T),
    "astype": ("cast", lambda x: x.astype(np.float32)),
    "slice": ("getitem", lambda x: x[1, ::-1]),
}
"""Each method, the op it records; the same attributes are given to the op in the test."""


@pytest.mark.parametrize("method", METHODS)
def test_methods_record_their_op_with_its_attributes(tape: Tape[Any], method: str) -> None:
    name, call = METHODS[method]
    x = tape.leaf(np.linspace(0.5, 3.0, 6).reshape(2, 3))
    out = call(x)
    node = tape.node(out)
    assert (node.op_name, node.parents) == (name, (0,))
    assert out.numpy().tobytes() == OPS[name](x.value, **node.attrs).array.tobytes()


def test_attributes_of_methods(tape: Tape[Any]) -> None:
    x = tape.leaf(np.arange(6.0).reshape(2, 3))
    assert x.sum(axis=0, keepdims=True).numpy().tolist() == [[3.0, 5.0, 7.0]]
    assert x.mean(axis=1).numpy().tolist() == [1.0, 4.0]
    assert x.mean().item() == 2.5
    assert x.reshape(3, -1).numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    assert x.flatten(1).numpy().shape == (2, 3)
    assert x.T.numpy().tolist() == [[0, 3], [1, 4], [2, 5]]


def test_looking_at_a_var(tape: Tape[Any]) -> None:
    x = tape.leaf(np.ones((2, 3), np.float32), name="x")
    assert (tuple(x.shape), x.dtype.name, x.name, x.id, len(x)) == ((2, 3), "float32", "x", 0, 2)
    assert x.tape is tape
    assert repr(x) == "Var(id=0 'x', shape=(2, 3), dtype=float32)"
    assert repr(x.sum()) == "Var(id=1, shape=(), dtype=float32)"
    assert x.value is tape.value(x)
    assert x.numpy() is x.value.array
    assert (x.shape.size, x.shape.rank) == (6, 2)


def test_numbers_of_one_element(tape: Tape[Any]) -> None:
    x = tape.leaf([1.5])
    assert (x.item(), float(x), bool(x), bool(x < 0)) == (1.5, 1.5, True, False)
    pair = tape.leaf([1.0, 2.0])
    for convert in (float, bool, lambda v: v.item()):
        with pytest.raises(ShapeError, match=r"^item: expected one element, got shape \(2,\); use .numpy\(\)$"):
            convert(pair)


def test_numbers_in_texts_and_as_integers(tape: Tape[Any]) -> None:
    loss, pair = tape.leaf([[2.71828]]), tape.leaf([1.0, 2.0])
    assert (f"{loss:.3f}", f"{loss:10.1e}|", f"{tape.const(7):03d}") == ("2.718", "   2.7e+00|", "007")
    assert (f"{loss}", str(loss), int(loss), int(tape.leaf(-2.9))) == (repr(loss), repr(loss), 2, -2)
    for convert in (int, lambda v: f"{v:.3f}"):
        with pytest.raises(ShapeError, match=r"^item: expected one element, got shape \(2,\); use .numpy\(\)$"):
            convert(pair)
    assert f"{pair}" == repr(pair)


def test_a_conversion_casts_the_gradient_back(tape: Tape[Any]) -> None:
    x = tape.leaf(np.array([1.5, -2.5], np.float32))
    wide = x.astype("float64")
    grads = tape.backward_dense((wide * wide).sum())
    assert (wide.dtype, np.asarray(grads[x]).dtype, np.asarray(grads[x]).tolist()) == (
        np.float64,
        np.float32,
        [3.0, -5.0],
    )
    whole = tape.leaf([2.7, -2.7, np.nan, np.inf, -1e30]).astype(np.int64)
    assert whole.numpy().tolist() == [2, -2, 0, 2**63 - 1, -(2**63)]
    assert not tape.node(whole).requires_grad


def test_vars_are_keys_by_identity(tape: Tape[Any]) -> None:
    x, y = tape.leaf([1.0]), tape.leaf([1.0])
    assert {x: "x", y: "y"}[y] == "y"


def test_iteration_gives_the_rows(tape: Tape[Any]) -> None:
    x: Any = tape.leaf([[1.0, 2.0], [3.0, 4.0]])
    assert [row.numpy().tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]
    first, second = x
    assert np.asarray(tape.backward_dense((first * second).sum())[x]).tolist() == [[3.0, 4.0], [1.0, 2.0]]
    assert (x.ndim, x.sum().ndim, list(tape.leaf(np.zeros((0, 2))))) == (2, 0, [])
    with pytest.raises(ShapeError, match=r"^iter: expected an axis to go along, got a scalar; use .item\(\)"):
        iter(x.sum())


def test_expect(tape: Tape[Any]) -> None:
    x = tape.leaf(np.ones((2, 3)))
    assert x.expect((2, 3)) is x
    with pytest.raises(ShapeError, match=r"^expect: expected shape \(3, 2\), got \(2, 3\)$"):
        x.expect((3, 2))
    with pytest.raises(
        ShapeError, match=r"^expect: argument 'shape': expected Shape\[...\] or a tuple of sizes, got 3$"
    ):
        x.expect(3)  # type: ignore[call-overload]
    x.expect(Shape[Any, Any])


REFUSED_INDICES: list[tuple[Any, type[Exception], str]] = [
    (2, BoundsError, "argument 'index': expected -2 to 1 on axis 0, got 2"),
    ((0, -4), BoundsError, "argument 'index': expected -3 to 2 on axis 1, got -4"),
    ((0, 0, 0), ShapeError, r"argument 'index': expected at most 2 axes and one \.\.\., got \(0, 0, 0\)"),
    ((..., ...), ShapeError, r"argument 'index': expected at most 2 axes and one \.\.\."),
    (True, ShapeError, "use ops.index for arrays of indices and masks"),
    (1.0, ShapeError, "expected integers, slices, ... or None, got float"),
    ("name", ShapeError, "expected integers, slices, ... or None, got str"),
]


@pytest.mark.parametrize(("index", "error", "text"), REFUSED_INDICES)
def test_indices_that_are_refused(tape: Tape[Any], index: Any, error: type[Exception], text: str) -> None:
    x = tape.leaf(np.arange(6.0).reshape(2, 3))
    with pytest.raises(error, match=f"^getitem: .*{text}"):
        _ = x[index]
    assert len(tape) == 1


def test_numpy_integers_are_indices(tape: Tape[Any]) -> None:
    x = tape.leaf(np.arange(6.0).reshape(2, 3))
    assert x[np.int64(1), np.int32(-1)].item() == 5.0


def test_a_column_and_a_row_by_accident_are_remarked_once_per_line(tape: Tape[Any]) -> None:
    column, row = tape.leaf(np.ones((4, 1))), tape.leaf(np.ones(4))
    with pytest.warns(BroadcastWarning) as told:
        results = [column - row for _ in range(3)]
    assert results[0].shape == (4, 4)
    assert [(str(warning.message), warning.filename) for warning in told] == [
        (
            "sub: (4, 1) and (4,) are broadcast to (4, 4), larger than either; if that is meant, give both as many "
            "axes, as (B, 1) and (1, B); else reshape one, as x[:, 0] or y[:, None]",
            __file__,
        )
    ]
    with pytest.warns(BroadcastWarning, match=r"mul: \(4,\) and \(4, 1\)"):
        row * column  # pyright: ignore[reportUnusedExpression]


def test_what_is_repeated_on_purpose_is_not_remarked(tape: Tape[Any]) -> None:
    """Warnings are errors here."""
    column, row = tape.leaf(np.ones((4, 1))), tape.leaf(np.ones(4))
    assert (column - row.reshape(1, 4)).shape == (4, 4)
    assert (column - tape.leaf(np.ones(3))).shape == (4, 3)
    assert (tape.leaf(np.ones((1, 4))) - row).shape == (1, 4)
    assert (column - 1.0).shape == (4, 1)
    assert (tape.leaf(np.ones((1, 1))) - tape.leaf(np.ones(1))).shape == (1, 1)
