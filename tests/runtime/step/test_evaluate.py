"""A loss function on a batch: loss, gradients, batches of every form, and what is refused."""

import re
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import NonFiniteError, evaluate, gradients
from dgrr.runtime.step.evaluate import LossFn
from dgrr.tape import DTypeError, GradientError, ShapeError, Tape, TapeError, Var, ops

pytestmark = pytest.mark.quick

W = np.array([2.0, -3.0])
X = np.array([5.0, 7.0])
PARAMS = {"unused": np.ones(3), "w": W, "b": np.array(0.5)}


def product_loss(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum() + p["b"]


def test_the_loss_and_the_gradients_by_name() -> None:
    loss, grads = gradients(product_loss, PARAMS, X)
    assert loss.dtype == np.float64
    assert loss.shape == ()
    assert loss.item() == 2 * 5 - 3 * 7 + 0.5
    assert {name: g.tolist() for name, g in grads.items()} == {"w": [5.0, 7.0], "b": 1.0}


def test_gradients_stand_in_the_order_of_the_parameters_and_leave_out_what_the_loss_ignores() -> None:
    turned = dict(reversed(PARAMS.items()))
    assert list(gradients(product_loss, PARAMS, X)[1]) == ["w", "b"]
    assert list(gradients(product_loss, turned, X)[1]) == ["b", "w"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_have_the_dtype_of_their_parameters(dtype: type[np.floating[Any]]) -> None:
    params = {name: value.astype(dtype) for name, value in PARAMS.items()}
    loss, grads = gradients(product_loss, params, X.astype(dtype))
    assert {loss.dtype, *(g.dtype for g in grads.values())} == {np.dtype(dtype)}


def test_parameters_and_batch_are_not_changed() -> None:
    params, x = {name: value.copy() for name, value in PARAMS.items()}, X.copy()
    gradients(product_loss, params, x)
    assert all(np.array_equal(params[name], PARAMS[name]) for name in PARAMS)
    assert np.array_equal(x, X)


FORMS: list[tuple[Any, Any]] = [
    (X, lambda batch: batch),
    ((X, 1.0), lambda batch: batch[0]),
    ([X, 1.0], lambda batch: batch[0]),
    ({"x": X, "weight": 1.0}, lambda batch: batch["x"]),
    ({"both": (np.arange(3), [X])}, lambda batch: batch["both"][1][0]),
]


@pytest.mark.parametrize(("batch", "select"), FORMS)
def test_batches_keep_their_form(batch: Any, select: Any) -> None:
    loss, _ = gradients(lambda p, given: product_loss(p, select(given)), PARAMS, batch)
    assert loss.item() == -10.5


def test_every_array_of_a_batch_becomes_a_constant_of_its_own_dtype() -> None:
    seen: list[Any] = []

    def loss_fn(p: Any, batch: Any) -> Any:
        seen.extend([batch["labels"], *batch["inputs"]])
        return p["w"].sum()

    evaluate(loss_fn, PARAMS, {"labels": np.arange(2), "inputs": [X.astype(np.float32), X > 6]})
    assert all(isinstance(part, Var) and not part.tape.node(part).requires_grad for part in seen)
    assert [part.dtype for part in seen] == [np.int64, np.float32, np.bool_]


def test_an_evaluation_holds_the_gradient_of_every_node() -> None:
    made = evaluate(product_loss, PARAMS, X)
    assert [node.name for node in made.tape][:3] == list(PARAMS)
    product = next(node for node in made.tape if node.op_name == "mul")
    gradient = made.dense[product.id]
    assert gradient is not None
    assert gradient.numpy().tolist() == [1.0, 1.0]
    assert made.loss.item() == -10.5
    made.require_finite()


OTHER_TAPE = Tape[Any]().param(np.array(1.0))
REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda p, x: 3.0, GradientError, "loss_fn: expected it to return a scalar Var, got float"),
    (lambda p, x: None, GradientError, "loss_fn: expected it to return a scalar Var, got NoneType"),
    (lambda p, x: p["w"] * x, ShapeError, "backward_scalar: argument 'out': expected shape (), got (2,)"),
    (lambda p, x: x.sum(), GradientError, "depends on no leaf that requires a gradient"),
    (lambda p, x: OTHER_TAPE, TapeError, "expected a Var of <Tape"),
]


@pytest.mark.parametrize(("loss_fn", "error", "text"), REFUSED)
def test_what_a_loss_function_must_return(loss_fn: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        evaluate(loss_fn, PARAMS, X)
    assert text in str(caught.value)


def test_parameters_must_be_floats() -> None:
    with pytest.raises(DTypeError) as caught:
        evaluate(product_loss, {"w": np.arange(2)}, X)
    assert str(caught.value) == "param: argument 'value': expected float32 or float64, got int64"


def nonfinite(loss_fn: LossFn, w: list[float], x: Any) -> str:
    with pytest.raises(NonFiniteError) as caught:
        evaluate(loss_fn, {"w": np.array(w)}, x).require_finite()
    return str(caught.value)


AT = r", at \S*test_evaluate\.py:\d+: "


def test_an_infinite_value_names_the_first_node_that_has_one() -> None:
    text = nonfinite(lambda p, x: (ops.log(p["w"]) * x).sum(), [1.0, 0.0], X)
    head = r"the first non-finite value is node 2 \(log\), shape \(2,\) from \(2,\)"
    assert re.fullmatch(rf"{head}{AT}text = nonfinite\(.*; 1 inf of 2 elements", text)


def test_a_nan_in_a_parameter_or_in_the_batch_is_named_as_the_leaf() -> None:
    text = nonfinite(lambda p, x: (p["w"] * x).sum(), [1.0, np.nan], X)
    assert re.fullmatch(
        rf"the first non-finite value is node 0 \(leaf 'w'\), shape \(2,\){AT}.*; 1 NaN of 2 elements", text
    )
    text = nonfinite(lambda p, x: (p["w"] * x).sum(), [1.0, 1.0], np.array([np.inf, 1.0]))
    assert re.fullmatch(
        rf"the first non-finite value is node 1 \(leaf\), shape \(2,\){AT}.*; 1 inf of 2 elements", text
    )


def test_an_infinite_gradient_of_finite_values_names_its_node_and_what_brought_it() -> None:
    tiny = [1.0, 1e-200]  # the slope of 1e200 * log is 1e400 there, its value -4.6e202
    head, brought = (
        "the values are finite; the first non-finite gradient is of node",
        "; 1 inf of 2 elements; brought by",
    )
    text = nonfinite(lambda p, x: ops.scale(ops.log(p["w"]), 1e200).sum(), tiny, X)
    assert re.fullmatch(rf"{head} 0 \(leaf 'w'\), shape \(2,\){AT}.*{brought} node 2 \(log\).*", text)
    text = nonfinite(lambda p, x: ops.scale(ops.log(p["w"] * x), 1e200).sum(), tiny, X)
    assert re.fullmatch(rf"{head} 2 \(mul\), shape .*{AT}.*{brought} node 3 \(log\).*", text)


def test_integers_of_a_batch_are_finite() -> None:
    made = evaluate(lambda p, labels: ops.cross_entropy(p["w"], labels), {"w": np.eye(3)}, np.arange(3))
    made.require_finite()
