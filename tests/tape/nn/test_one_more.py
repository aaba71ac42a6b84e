"""What one more layer takes: a class of a few lines, and its name in ``nn/__init__.py``. The rest follows."""

import ast
import inspect
import pickle
import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dgrr.tape import DomainError, DTypeError, Tape, nn, ops

from ..ops.properties.documentation import lacking

SOURCE = '''
from dataclasses import dataclass

from ... import ops
from ...record.kinds.values import POSITIVE, PROBABILITY
from ...var.var import AnyVar
from ..context import Context
from ..initializers import ones
from ..kinds import SIZE
from ..layer import Features, Layer
from ..scope import Params, parameter
from ..op_layer import Activation
from ..parameters import Parameter


@dataclass(frozen=True)
class Rounded(Activation[Features], op=ops.leaky_relu, kinds={"negative_slope": POSITIVE}):
    """A row: an op, and what its field takes.

    Source: nobody.

    >>> 1 + 1
    2
    """

    negative_slope: float = 0.25


@dataclass(frozen=True)
class Faded(Layer, kinds={"size": SIZE, "rate": PROBABILITY}):
    """``x * weight * rate``.

    Source: nobody.
    Shapes: x (*Bs, size) -> (*Bs, size)
    Dtypes: x, weight and the result float32 or float64, all alike.

    >>> 1 + 1
    2
    """

    size: int
    rate: float = 0.5

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight``."""
        return {"weight": Parameter((self.size,), ones())}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        return ops.scale(x * parameter(p, self, "weight"), self.rate)
'''

NAMED = 2
"""Lines of ``nn/__init__.py``: the import, if it is no longer than a line, and the name in ``__all__``."""


def lines(name: str) -> int:
    """How many lines a class has beside docstrings and empty ones."""
    (found,) = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.ClassDef) and node.name == name]
    for node in ast.walk(found):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            node.body = node.body[1:] or [ast.Pass()]
    return sum(bool(line) for line in ast.unparse(found).splitlines())


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the layers, as if it stood beside the others."""
    module = ModuleType("dgrr.tape.nn.layers.made_up")
    module.__package__ = "dgrr.tape.nn.layers"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(SOURCE, vars(module))
    return module


@pytest.mark.parametrize(("name", "most"), [("Rounded", 3), ("Faded", 8)])
def test_it_is_a_few_lines(name: str, most: int) -> None:
    assert lines(name) <= most and most + NAMED <= 12


def test_its_docstring_is_whole(made_up: ModuleType) -> None:
    for layer in (made_up.Rounded, made_up.Faded):
        missing = lacking(inspect.cleandoc(layer.__doc__))
        assert missing == [], layer
    assert "Shapes: x (*S) -> (*S)\nDtypes: x and the result float32 or float64, alike.\nRaises:\n" in (
        made_up.Rounded.__doc__
    )
    assert "DomainError: size or rate does not fit, as in \"argument 'size': expected an int of at" in (
        made_up.Faded.__doc__
    )
    assert "DTypeError: when called, x holds no floats." in made_up.Rounded.__doc__


def test_its_fields_are_checked_and_become_plain(made_up: ModuleType) -> None:
    for make in (made_up.Rounded, lambda slope: made_up.Faded(3, slope)):
        for wrong in (-1.0, "a", None, float("nan")):
            with pytest.raises(DomainError, match=r"^(Rounded: argument 'negative_slope'|Faded: argument 'rate'): exp"):
                make(wrong)
    assert repr(made_up.Faded(np.int64(3), np.float64(0.5))) == "Faded(size=3, rate=0.5)"


def test_it_is_a_layer_as_the_others(made_up: ModuleType) -> None:
    layer: Any = made_up.Faded(3)
    assert layer == pickle.loads(pickle.dumps(layer)) == replace(layer, size=3) and hash(layer) == hash((3, 0.5))
    model: Any = nn.Sequential(nn.Linear(2, 3), layer, made_up.Rounded())
    params, x = model.init(seed=0), np.array([[1.0, -2.0]], np.float32)
    linear = x @ params["0.weight"].T + params["0.bias"]
    expected = np.where(linear > 0, linear, linear * 0.25) * 0.5
    np.testing.assert_allclose(model(params, x), expected, rtol=1e-6)
    tape: Any = Tape()
    assert tape.backward_dense(ops.sum(model(tape.params(params), tape.const(x))))["1.weight"].shape == (3,)
    assert [row["parameters"] for row in model.table()][1] == "weight (3,)"
    with pytest.raises(DTypeError, match=r"^2: leaky_relu: argument 'x': expected float32 or float64, got int64"):
        nn.Sequential(nn.Identity(), nn.Identity(), made_up.Rounded())({}, Tape().const(np.array([1])))
