"""What transforms refuse."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dgrr.tape import (
    DomainError,
    DTypeError,
    GradientError,
    ShapeError,
    Tape,
    TapeError,
    grad,
    hvp,
    jacobian,
    jvp,
    ops,
    value_and_grad,
    vjp,
)

from .functions import V, X, Y, mixed, total


def product(x: Any, i: Any = None) -> Any:
    return x * x


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: grad(product)(X), GradientError,
     "grad: function 'product': expected it to return a float scalar, got float64 of shape (5,); reduce it first, "
     "or use jacobian"),
    (lambda: value_and_grad(product)(X), GradientError, "value_and_grad: function 'product': expected it to return"),
    (lambda: grad(lambda x: ops.argmax(x))(X), GradientError, "return a float scalar, got int64 of shape ()"),
    (lambda: grad(lambda x: (x.sum(),))(X), GradientError, "expected it to return a float scalar, got a tuple"),
    (lambda: grad(lambda x: 1.0)(X), GradientError, "function '<lambda>': expected it to return a Var, got float"),
    (lambda: vjp(lambda x: {"a": [x, X]}, X), GradientError, "expected it to return a Var at ['a'][1], got ndarray"),
    (lambda: grad(grad(product))(X), GradientError, "grad: function 'product': expected it to return a float scalar"),
    (lambda: grad(product)(3), GradientError,
     "grad: argument 'args[0]': expected float32 or float64, got int64, which has no gradient; pass it as an "
     "argument that is not among argnums"),
    (lambda: grad(lambda p: p["x"].sum())({"x": X, "i": [True]}), GradientError,
     """grad: argument "args[0]['i'][0]": expected float32 or float64, got bool, which has no gradient"""),
    (lambda: jacobian(product, argnums=(0, -1))(X, [1, 2]), GradientError,
     "jacobian: argument 'args[1][0]': expected float32 or float64, got int64"),
    (lambda: grad(product, argnums=1)(X), DomainError,
     "grad: argument 'argnums': expected positions among 1 arguments, got 1"),
    (lambda: jacobian(product, argnums=(0, -2))(X), DomainError,
     "jacobian: argument 'argnums': expected positions among 1 arguments, got -2"),
    (lambda: grad(product)("x"), DTypeError,
     "grad: argument 'args[0]': expected a Var, a tensor, an array or a number, or a tuple, list or dict of them, "
     "got str"),
    (lambda: grad(product)(X.astype(np.complex128)), DTypeError,
     "grad: argument 'args[0]': expected float32, float64, an integer type or bool, got complex128"),
    (lambda: value_and_grad(product, has_aux=True)(X), GradientError,
     "value_and_grad: function 'product': expected it to return (value, aux), got Var"),
    (lambda: jacobian(lambda x: ops.argmax(x))(X), GradientError,
     "jacobian: function '<lambda>': expected it to return floats, got int64, which has no gradient"),
    (lambda: hvp(product, (X,), (V,)), GradientError,
     "hvp: function 'product': expected it to return a float scalar, got float64 of shape (5,)"),
    (lambda: jvp(product, (X,), (V[:2],)), ShapeError, "jvp: argument 'tangents[0]': expected shape (5,), got (2,)"),
    (lambda: jvp(product, (X,), (V.astype(np.float32),)), DTypeError,
     "jvp: argument 'tangents[0]': expected dtype float64, got float32"),
    (lambda: jvp(product, (X, 1), (V, 1.0)), GradientError,
     "jvp: argument 'tangents[1]': expected None for int64: no gradient exists"),
    (lambda: jvp(product, (X,), (V, V)), GradientError,
     "jvp: argument 'tangents': expected a tuple of 1, got a tuple of 2"),
    (lambda: jvp(lambda p: p["x"], ({"x": X},), ({"y": X},)), GradientError,
     "jvp: argument 'tangents[0]': expected a dict of 'x', got a dict of 'y'"),
    (lambda: jvp(lambda p: p[0], ([X],), (X,)), GradientError,
     "jvp: argument 'tangents[0]': expected a list of 1, got one value"),
    (lambda: jvp(product, (X, None), (V, V)), GradientError,
     "jvp: argument 'tangents[1]': expected None, got one value"),
    (lambda: hvp(total, (X,), ((V,),)), GradientError,
     "hvp: argument 'tangents[0]': expected one value, got a tuple of 1"),
    (lambda: vjp(product, X)[1](V[:2]), ShapeError,
     "pullback: argument 'cotangent': expected shape (5,), got (2,)"),
    (lambda: vjp(lambda x: {"a": x}, X)[1]({"a": 1.0}), ShapeError,
     """pullback: argument "cotangent['a']": expected shape (5,), got ()"""),
    (lambda: vjp(lambda x: ops.argmax(x), X)[1](1.0), GradientError,
     "pullback: argument 'cotangent': expected None for int64: no gradient exists"),
    (lambda: vjp(product, X)[1](Tape().leaf(V)), TapeError, "expected a Var of <Tape #"),
    (lambda: grad(lambda y: (Tape().leaf(X) * y).sum())(Y), TapeError, "expected a Var of <Tape #"),
    (lambda: grad(lambda y: Tape().leaf(1.0))(Y), TapeError, "expected a Var of <Tape #"),
    (lambda: grad(mixed)(Tape().leaf(X), Tape().leaf(Y)), TapeError, "expected a Var of <Tape #"),
    (lambda: jvp(product, X, V), DTypeError,
     "jvp: argument 'primals': expected a tuple of arguments, got ndarray; write (x,) for one"),
    (lambda: hvp(total, (X,), Tape().leaf(V)), DTypeError,
     "hvp: argument 'tangents': expected a tuple of arguments, got Var; write (x,) for one"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
