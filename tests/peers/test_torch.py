"""Values and gradients beside PyTorch's, in float64, on shapes and attributes that hypothesis draws.

``DGRR_PEER_EXAMPLES=300 pytest tests/peers`` is the long comparison.
"""

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from dgrr.tape import ops, vjp

from .row import Array, Arrays, Attrs, Row
from .rows import ROWS

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch: pip install -e '.[test,torch]'")

EXAMPLES = int(os.environ.get("DGRR_PEER_EXAMPLES", "15"))

TOLERANCE = 1e-10
"""Of a difference, relative to the largest magnitude among what is compared and what it is computed from."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.op)
def test_values_and_gradients_agree(row: Row) -> None:
    @settings(max_examples=EXAMPLES, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(row.calls)
    def agree(call: tuple[Arrays, Attrs]) -> None:
        compare(row, *call)

    agree()


def compare(row: Row, arrays: Arrays, attrs: Attrs) -> None:
    """One call: the results, and the gradients of every float input by one cotangent."""
    ours = row.ours or getattr(ops, row.op)
    value, pullback = vjp(lambda named: ours(**named, **attrs), arrays)
    tensors = {name: _tensor(a) for name, a in arrays.items()}
    results = _listed(row.peer(torch, **tensors, **attrs))
    scale = max([1.0, *(np.abs(a).max() for a in arrays.values() if a is not None and a.size and a.dtype.kind == "f")])
    values = _listed(value)
    assert len(values) == len(results)
    for got, expected in zip(values, results, strict=True):
        _assert_close(got.numpy(), expected.detach().numpy(), scale, "value")
    if all(v.dtype.kind == "f" for v in values):
        rng = np.random.default_rng(0)
        cotangents = [np.asarray(rng.standard_normal(v.sizes)).astype(v.dtype) for v in values]
        (gradients,) = pullback(cotangents if isinstance(value, list) else cotangents[0])
        _compare_gradients(gradients, tensors, results, cotangents, scale)


def _compare_gradients(
    gradients: dict[str, Any], tensors: dict[str, Any], results: list[Any], cotangents: list[Array], scale: float
) -> None:
    inputs = {name: x for name, x in tensors.items() if x is not None and x.requires_grad}
    seeds = [torch.from_numpy(u) for u in cotangents]
    found = torch.autograd.grad(results, list(inputs.values()), seeds, allow_unused=True, materialize_grads=True)
    for (name, x), expected in zip(inputs.items(), found, strict=True):
        assert gradients[name] is not None, f"no gradient by {name}"
        assert gradients[name].sizes == tuple(x.shape)
        _assert_close(gradients[name].numpy(), expected.numpy(), scale, f"gradient by {name}")


def _tensor(a: Array | None) -> Any:
    return None if a is None else torch.tensor(a, requires_grad=a.dtype.kind == "f")


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, list | tuple) else [x]


def _assert_close(got: Array, expected: Array, scale: float, what: str) -> None:
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    assert got.dtype == expected.dtype, f"{what}: {got.dtype}, expected {expected.dtype}"
    if got.dtype.kind != "f":
        assert np.array_equal(got, expected), f"{what}: {got}, expected {expected}"
        return
    assert np.isfinite(expected).all(), f"{what}: the peer's is not finite; draw other arguments"
    bound = TOLERANCE * max(scale, float(np.abs(expected).max(initial=0.0)))
    worst = float(np.abs(got - expected).max(initial=0.0))
    assert worst <= bound, f"{what}: differs by {worst:.3g}, over {bound:.3g}\ngot {got}\nexpected {expected}"
