"""Shapes in types at run time: named results, handles without a static shape, layers joined by ``>>``."""

from typing import Any, Literal

import numpy as np
import pytest

from dgrr.tape import AnyTensor, Dim, DTypeError, Shape, ShapeError, SomeVar, Tape, Var, f64, nn, ops
from dgrr.tape.var.op_table import OPS

pytestmark = pytest.mark.quick


class Rows(Dim): ...


class Flat(Dim): ...


class Four(Dim, size=4): ...


@pytest.fixture
def tape() -> Tape[f64]:
    return Tape(f64)


@pytest.mark.parametrize(
    ("op", "shape", "attr", "value", "result"),
    [
        ("reshape", Shape[Rows, Flat], "shape", (2, -1), (2, 12)),
        ("reshape", Shape[Flat, Literal[6]], "shape", (-1, 6), (4, 6)),
        ("flatten", Shape[Rows, Flat], "start_axis", 1, (2, 12)),
        ("flatten", Shape[Flat], "start_axis", 0, (24,)),
        ("broadcast_to", Shape[Four, Rows, Literal[3], Four], "shape", (4, 2, 3, 4), (4, 2, 3, 4)),
    ],
)
def test_a_named_result_is_recorded_by_its_sizes(
    tape: Tape[f64], op: str, shape: Any, attr: str, value: object, result: tuple[int, ...]
) -> None:
    x = tape.leaf(np.arange(24.0).reshape(2, 3, 4), Shape[Rows, Any, Four])
    y = OPS[op](x, shape)
    assert tape.node(y).attrs == {attr: value}
    assert y.shape == result


def test_a_new_dim_of_a_result_has_that_size_from_then_on(tape: Tape[f64]) -> None:
    x = tape.leaf(np.ones((2, 3)))
    x.reshape(Shape[Flat])
    with pytest.raises(ShapeError, match=r"^expect: expected shape \(Flat=6,\), got \(2,\)$"):
        x[:, 0].expect(Shape[Flat])


def test_a_result_that_has_another_shape_leaves_no_trace(tape: Tape[f64]) -> None:
    x = tape.leaf(np.ones((2, 3)), Shape[Rows, Any])
    with pytest.raises(ShapeError):
        x.flatten(Shape[Flat, Rows])
    assert len(tape) == 1
    assert x.flatten(Shape[Flat]).shape == (6,)  # Flat is still free


def test_results_of_tensors_are_named_too() -> None:
    x: Any = AnyTensor.leaf(np.ones((2, 4)))
    assert ops.flatten(x, Shape[Flat]).shape == (8,)
    assert ops.reshape(x, Shape[Four, Flat]).shape == (4, 2)
    with pytest.raises(ShapeError, match=r"^flatten: argument 'start_axis': expected shape \(Four=4,\), got \(8,\)$"):
        ops.flatten(x, Shape[Four])


def test_a_var_found_again_is_the_same_node(tape: Tape[f64]) -> None:
    x = tape.leaf(np.ones((2, 3)), name="x")
    for key in ("x", 0):
        found = tape.var(key)
        assert isinstance(found, SomeVar)
        assert (found.id, found.name, found.shape, found.tape) == (x.id, "x", (2, 3), tape)
        assert isinstance(found.gradual, Var)
        assert tape.node(found) is tape.node(x)
    with pytest.raises(ShapeError, match=r"^expect: expected shape \(Rows, Four=4\), got \(2, 3\)$"):
        tape.var("x").expect(Shape[Rows, Four])


def test_joined_layers_are_one_sequential() -> None:
    a, b, c = nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)
    joined = nn.Sequential(a, b, c)
    assert (a >> b) >> c == a >> (b >> c) == joined
    assert (a >> nn.Sequential(b, c)).layers == joined.layers
    assert nn.Sequential() >> a == nn.Sequential(a)
    assert list((a >> b >> c).init(0)) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_what_is_no_layer_cannot_be_joined() -> None:
    with pytest.raises(DTypeError, match="^>>: expected a layer or a function of x, got int$"):
        nn.ReLU() >> 3  # type: ignore[operator]
    with pytest.raises(DTypeError, match="^>>: expected a layer or a function of x, got the class ReLU; write"):
        nn.ReLU >> nn.ReLU()  # type: ignore[operator]


def test_a_linear_layer_of_dims_is_that_of_their_sizes() -> None:
    class Two(Dim, size=2): ...

    assert nn.Linear(Four, Two, bias=False) == nn.Linear(4, 2, bias=False)
    assert repr(nn.Linear(Four, 2)) == "Linear(in_features=4, out_features=2, bias=True)"
    assert nn.Linear(np.int64(4), 2) == nn.Linear(4, 2)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="Linear: argument 'out_features': expected a number or a Dim .*, got Rows"):
        nn.Linear(Four, Rows)
    with pytest.raises(ShapeError, match=r"Linear: argument 'in_features': expected a number or a Dim .*, got 4.0"):
        nn.Linear(4.0, 2)  # type: ignore[arg-type]


def test_linear_of_one_vector(tape: Tape[f64]) -> None:
    x, w, b = tape.leaf([1.0, 2.0]), tape.param([[1.0, 3.0], [0.0, 5.0], [2.0, 2.0]]), tape.param([0.5, 0.0, 0.0])
    y = ops.linear(x, w, b)
    assert y.numpy().tolist() == [7.5, 10.0, 6.0]
    assert tape.backward_dense(y.sum())[x].numpy().tolist() == [3.0, 10.0]  # type: ignore[union-attr]
