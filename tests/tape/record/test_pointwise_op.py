"""What one more op of each place takes: a formula, and a line about its slope. Every property follows."""

import inspect

import numpy as np
import pytest

from dgrr.tape import Tape, Var
from dgrr.tape.numerics.engine.kernel import KERNELS, call
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.ops import mul, scale, square
from dgrr.tape.record import F, Number, S, pointwise, pointwise_op
from dgrr.tape.var.op_table import OPS

from ..ops.properties.captured import CAPTURED
from ..ops.properties.forward import FORWARD
from ..ops.properties.gradients import GRADIENTS
from ..ops.properties.masks import MASKS
from ..ops.properties.record import RECORD
from ..ops.properties.third_order import THIRD_ORDER

PROPERTIES = {**FORWARD, **GRADIENTS, **MASKS, **THIRD_ORDER, **RECORD, **CAPTURED}


@pointwise
def cubes(x: Number) -> Number:
    """``x * x * x``."""
    return x * x * x


@pointwise_op(cubes, lambda d, x: mul(d, scale(square(x), 3.0)))
def cube(x: Var[F, *S]) -> Var[F, *S]:
    """``x * x * x``.

    Source: numpy.power, for the exponent 3.

    >>> cube(Tape().leaf([1.0, -3.0])).numpy()
    array([  1., -27.])
    """


CUBE = OPS.pop("cube")
del KERNELS["cubes"]


@pytest.mark.parametrize("name", PROPERTIES)
def test_it_has_every_property(name: str) -> None:
    PROPERTIES[name](CUBE)


def test_it_takes_one_line_beside_formula_and_docs() -> None:
    text = inspect.getsource(inspect.getmodule(cubes.body) or inspect)
    record = text[text.index("@pointwise_op") : text.index("def cube(")]
    assert record.count("\n") == 1


def test_what_follows() -> None:
    assert cube(Tape().leaf([1.0, -3.0])).numpy().tolist() == [1.0, -27.0]
    assert CUBE.batch_axis == {"x": 0}
    assert np.asarray(CUBE.reference(np.float32([1, -3]))).tolist() == [1.0, -27.0]


def test_a_formula_of_too_many_arrays_is_refused() -> None:
    def mix(a: Number, b: Number, c: Number, t: Number) -> Number:
        return a + (b + (c + t))

    text = (
        "pointwise: formula 'mix': expected one to three arrays, and behind one or two at most two numbers, got 4 and 0"
    )
    with pytest.raises(TypeError, match=text):
        pointwise(mix)


def test_a_formula_may_stand_in_no_file() -> None:
    """As one that is typed at a prompt or into a notebook."""
    typed = "from dgrr.tape.record import pointwise\n@pointwise\ndef typed_halves(x):\n    return x - (x + x)\n"
    scope = {"__name__": "of_nobody"}
    exec(compile(typed, "<input>", "exec"), scope)
    kernel = KERNELS.pop("typed_halves")
    assert kernel is scope["typed_halves"]
    x, y = np.float32([1.0, -2.0]), np.empty(2, np.float32)
    assert call(kernel.address(x.dtype), Words(2).address, 0, 1, (id(y), id(x))) == 0
    assert y.tolist() == [-1.0, 2.0]
