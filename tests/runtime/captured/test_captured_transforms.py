"""Derivatives inside a loss: a captured step holds them as ops and gives the bits of the eager step."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, CapturedStep, EagerStep
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import grad, hvp, jacobian, jvp, ops, vjp

RNG = np.random.default_rng(0)
PARAMS = {"w": RNG.standard_normal((3, 4)), "v": RNG.standard_normal(3)}
BATCH = (RNG.standard_normal((2, 4)),)


def energy(p: Any, x: Any) -> Any:
    return (ops.tanh(ops.linear(x, p["w"])) * ops.broadcast_to(p["v"], (2, 3))).sum()


def gradient_penalty(p: Any, batch: Any) -> Any:
    (x,) = batch
    return ops.reduce_sum(grad(energy, argnums=1)(p, x).square())


def curvature(p: Any, batch: Any) -> Any:
    (x,) = batch
    products = hvp(lambda w: energy({**p, "w": w}, x), (p["w"],), (p["w"],))
    return ops.reduce_sum(products[0] * p["w"])


def slope_along(p: Any, batch: Any) -> Any:
    (x,) = batch
    value, tangent = jvp(lambda y: energy(p, y), (x,), (x,))
    return value * tangent


def pulled(p: Any, batch: Any) -> Any:
    (x,) = batch
    value, pullback = vjp(lambda v: v * v, p["v"])
    return (jacobian(lambda v: v * v)(p["v"]).sum() + pullback(value)[0].sum()) * energy(p, x)


@pytest.mark.parametrize("loss", [gradient_penalty, curvature, slope_along, pulled])
def test_a_captured_derivative_has_the_bits_of_the_eager_one(loss: Any) -> None:
    captured, eager = (made(loss, PARAMS, Recipe(SGD(0.125))) for made in (CapturedStep, EagerStep))
    for _ in range(3):
        assert captured(BATCH).tobytes() == eager(BATCH).tobytes()
    assert captured.digest() == eager.digest()
