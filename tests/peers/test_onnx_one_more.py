"""What one more operator takes: a row, by which an op is written as one node and read again."""

from collections.abc import Iterator
from importlib import reload
from typing import Any, cast

import numpy as np
import pytest

from dgrr.runtime.onnx import export, load, same
from dgrr.runtime.onnx.export import elementwise as exporting
from dgrr.runtime.onnx.export.graph import EXPORTERS
from dgrr.runtime.onnx.load import elementwise as loading
from dgrr.runtime.onnx.load.operator import IMPORTERS
from dgrr.tape import Var, ops
from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.tape.record import F, Number, S, constant, pointwise, pointwise_op, select
from dgrr.tape.var.op_table import OPS

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")


@pointwise
def far(x: Number) -> Number:
    """``x`` beyond 1/2, else 0."""
    return select(abs(x) > constant(x, 0.5), x, constant(x, 0.0))


@pointwise_op(far, lambda d, x: ops.where(ops.greater(ops.abs(x), 0.5), d, 0.0))
def hardshrink(x: Var[F, *S]) -> Var[F, *S]:
    """``x`` beyond 1/2, else 0.

    Source: torch.nn.functional.hardshrink.

    >>> from dgrr.tape import Tape
    >>> hardshrink(Tape().leaf([1.0, 0.25])).numpy()
    array([1., 0.])
    """


HARDSHRINK = OPS.pop("hardshrink")
del KERNELS["far"]

ROW = {"Shrink": hardshrink}


@pytest.fixture
def _with_the_row(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The table as if the row stood in it."""
    before = [(table, dict(table)) for table in cast(list[dict[str, Any]], [EXPORTERS, IMPORTERS, same.UNARY])]
    monkeypatch.setitem(OPS, "hardshrink", HARDSHRINK)
    cast(dict[str, Any], same.UNARY).update(ROW)
    for module in (exporting, loading):
        reload(module)
    yield
    for table, rows in before:
        table.clear()
        table.update(rows)


@pytest.mark.usefixtures("_with_the_row")
def test_one_more_operator_is_written_run_elsewhere_and_read_again() -> None:
    x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    made = export(lambda p, x: hardshrink(x) * p["w"], {"w": np.ones((2, 3), np.float32)}, x)
    assert [node.op_type for node in made.graph.node] == ["Shrink", "Mul", "Identity"]
    expected = np.where(np.abs(x) > 0.5, x, 0)
    (elsewhere,) = ort.InferenceSession(made.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(elsewhere, expected, rtol=1e-6)
    model, params, _ = load(made.SerializeToString())
    np.testing.assert_allclose(model(params, x), expected, rtol=1e-6)


def test_without_the_row_both_ways_are_refused() -> None:
    assert "hardshrink" not in EXPORTERS and "Shrink" not in IMPORTERS


def test_every_row_is_in_both_tables() -> None:
    rows = {**same.UNARY, **same.BINARY, **same.ORDERS, **same.FOLDED, **same.REDUCTIONS}
    rows.update({kind: row.op for kind, row in same.ATTRIBUTES.items()})
    assert len(rows) > 45
    for kind, op in rows.items():
        assert kind in IMPORTERS and op.__name__ in EXPORTERS and op.__name__ in OPS
