"""Whatever a tape, a Var or a transform is given, it does what it says or raises a dgrr error."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyTensor, DgrrError, DTypeError, GradientError, ShapeError, Tape, TapeError, grad, ops

NONSENSE: list[Any] = [
    "qq", b"x", None, ..., 1j, object(), {}, [None], ["a"], [[1.0], [1.0, 2.0]], np.zeros(2, np.complex64),
    np.array([None]), slice(None), np.float16(1), 10**30, [10**30], 1.5, True, np.ones(4, np.int32),
    np.ones((5, 1), "i4"),
]  # fmt: skip

Call = Callable[[Tape[Any], Any, Any], Any]

OPERATORS: dict[str, Call] = {
    f"{name}{side}": call
    for name in (
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "and_",
        "or_",
        "xor",
        "matmul",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
    )
    for side, call in (
        ("", lambda t, x, v, n=name: getattr(operator, n)(x, v)),
        (" reflected", lambda t, x, v, n=name: getattr(operator, n)(v, x)),
    )
}

CALLS: dict[str, Call] = {
    **OPERATORS,
    "astype": lambda t, x, v: x.astype(v),
    "getitem": lambda t, x, v: x[v],
    "getitem of two": lambda t, x, v: x[0, v],
    "slice": lambda t, x, v: x[v:],
    "step": lambda t, x, v: x[::v],
    "sum": lambda t, x, v: x.sum(v),
    "keepdims": lambda t, x, v: x.mean(0, v),
    "reshape": lambda t, x, v: x.reshape(v),
    "reshape by two": lambda t, x, v: x.reshape(v, v),
    "permute": lambda t, x, v: x.permute(v, v),
    "flatten": lambda t, x, v: x.flatten(v),
    "broadcast_to": lambda t, x, v: x.broadcast_to(v),
    "clamp": lambda t, x, v: x.clamp(v, v),
    "softmax": lambda t, x, v: x.softmax(v),
    "swapaxes": lambda t, x, v: x.swapaxes(v, 0),
    "var": lambda t, x, v: x.var(0, correction=v),
    "expect": lambda t, x, v: x.expect(v),
    **{
        f"{name}{what}": call
        for name in ("leaf", "param", "const")
        for what, call in (
            ("", lambda t, x, v, n=name: getattr(t, n)(v)),
            (" shape", lambda t, x, v, n=name: getattr(t, n)(np.ones(2), v)),
        )
    },
    "requires_grad": lambda t, x, v: t.leaf(1.0, requires_grad=v),
    "params": lambda t, x, v: t.params(v),
    "params of one": lambda t, x, v: t.params({"a": v}),
    **{
        f"{name}{what}": call
        for name in ("backward", "backward_dense", "backward_dense_all")
        for what, call in (
            ("", lambda t, x, v, n=name: getattr(t, n)(v)),
            (" seed", lambda t, x, v, n=name: getattr(t, n)(x, v)),
        )
    },
    "backward_scalar": lambda t, x, v: t.backward_scalar(v),
    "backward_dense_from": lambda t, x, v: t.backward_dense_from(v),
    "backward_dense_from each": lambda t, x, v: t.backward_dense_from([v] * len(t)),
    "node": lambda t, x, v: t.node(v),
    "var of a tape": lambda t, x, v: t.var(v),
    "value": lambda t, x, v: t.value(v),
    "hook": lambda t, x, v: t.hook(v, lambda g: g),
    "gradients": lambda t, x, v: t.backward_dense(x.sum())[v],
    "require_value": lambda t, x, v: t.require_value(x, v),
    "Tape check": lambda t, x, v: Tape(check=v),
    "concat": lambda t, x, v: ops.concat(v),
    "concat of two": lambda t, x, v: ops.concat([x, v]),
    "stack axis": lambda t, x, v: ops.stack([x, x], v),
    "split": lambda t, x, v: ops.split(x, v),
    "split axis": lambda t, x, v: ops.split(x, 2, v),
    "split x": lambda t, x, v: ops.split(v, 1),
    "einsum": lambda t, x, v: ops.einsum(v, x),
    "einsum operand": lambda t, x, v: ops.einsum("ij,jk", x, v),
    "group_norm": lambda t, x, v: ops.group_norm(x, v),
    "argnums": lambda t, x, v: grad(lambda y: y.sum(), v)(np.ones(2)),
    "AnyTensor.leaf": lambda t, x, v: AnyTensor.leaf(v),
}


@pytest.mark.parametrize("name", CALLS)
def test_nonsense_is_refused_by_a_dgrr_error(name: str) -> None:
    for value in NONSENSE:
        tape: Tape[Any] = Tape()
        x = tape.leaf(np.ones((2, 4)))
        try:
            CALLS[name](tape, x, value)
        except Exception as error:  # what each says is tested below and where it stands
            assert isinstance(error, DgrrError) and str(error), (value, error)  # noqa: PT017


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda t, x: t.node(1.5), TapeError, "node: expected a Var, an id or a name, got 1.5"),
        (lambda t, x: t.backward(None), TapeError, "node: expected a Var, an id or a name, got None"),
        (
            lambda t, x: t.params(3),
            DTypeError,
            "params: argument 'values': expected a dict of arrays by name, as model.init(seed) makes it, got int",
        ),
        (lambda t, x: t.param([[1.0], [1.0, 2.0]]), DTypeError,
         "param: argument 'value': expected an array of numbers"),
        (lambda t, x: t.leaf(1.0, requires_grad=1), DTypeError,
         "leaf: argument 'requires_grad': expected True or False, got 1"),
        (lambda t, x: t.backward_dense_from(None), GradientError,
         "backward_dense_from: argument 'cotangents': expected a list, got None"),
        (lambda t, x: t.require_value(x, 2.0), DTypeError,
         "require_value: argument 'shape': expected a tuple of whole numbers, got 2.0"),
        (lambda t, x: grad(lambda y: y.sum(), "a")(np.ones(2)), DTypeError,
         "grad: argument 'argnums': expected a whole number or a tuple of whole numbers, got 'a'"),
        (lambda t, x: x + np.zeros((3, 1, 1), np.complex64), DTypeError,
         "add: argument 'b': expected float32, float64, an integer type or bool, got complex64"),
        (lambda t, x: x + np.zeros((3, 1, 1), np.int32), DTypeError, "add: argument 'b': expected float"),
    ],
)  # fmt: skip
def test_texts(call: Any, error: type[DgrrError], text: str) -> None:
    tape: Tape[Any] = Tape()
    with pytest.raises(error) as caught:
        call(tape, tape.leaf(np.ones((2, 4))))
    assert text in str(caught.value)
    assert len(tape) == 1


def test_a_slice_of_floats_is_not_taken_for_one_of_whole_numbers() -> None:
    """They compare equal, so that the second could find what was prepared for the first."""
    x = Tape[Any]().leaf([1.0, 2.0, 3.0])
    assert x[1:2].numpy().tolist() == [2.0]
    with pytest.raises(ShapeError, match="getitem: argument 'index': expected slices of whole numbers"):
        _ = x[1.0:2]


def test_ids_may_be_numpys() -> None:
    tape: Tape[Any] = Tape()
    x = tape.leaf([1.0], name="x")
    assert tape.node(np.int64(0)) is tape.node(x)  # type: ignore[arg-type]
