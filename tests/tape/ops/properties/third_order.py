"""Third derivatives: gradients of gradients of gradients, held against differences of the second."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from dgrr.tape import grad, ops, vjp

from .cases import Array, Case, Record
from .gradients import differentiable, precision, regular
from .numeric import dot, moved, normal, slope

SMALL = 64
"""Elements of a sample's inputs and result together: what a wrong rule does shows in small samples."""

SAMPLES = 4
"""Samples of an op that are looked at, at most."""

Scalar = Callable[..., Any]


def check_third_order(op: Record) -> None:
    """The gradient of a contraction of the second derivatives is the slope of that contraction.

    The seed is an input beside the op's own, so that linear ops have second derivatives too. Kinks excuse single
    samples, never all of them.
    """
    rng = np.random.default_rng(6)
    sized = [(y.size + sum(x.size for x in _floats(case)), case, y) for case, y in regular(op) if differentiable(case)]
    sized.sort(key=lambda item: item[0] > SMALL)
    smooth = [_check_case(case, y, normal(rng, y), rng) for _, case, y in sized[:SAMPLES]]
    assert any(smooth) or not any(op.smooth), f"{op.name}: every sample has a kink in its second derivatives"


def _floats(case: Case) -> list[Array]:
    return [a for i, a in enumerate(case.arrays) if a is not None and i in case.float_inputs]


def _check_case(case: Case, y: Array, u: Array, rng: np.random.Generator) -> bool:
    """Check one sample; False if it has a kink."""
    xs = [*_floats(case), u]
    weights = [[normal(rng, x) for x in xs] for _ in range(2)]
    directions = {i: normal(rng, x) for i, x in enumerate(xs)}
    first = _contracted(partial(_seeded, case), weights[0])
    second = _contracted(first, weights[1])

    def along(t: float) -> Array:
        return np.asarray(vjp(second, *moved(xs, directions, t))[0])

    added = dot([(g.array, w) for g, w in zip(_gradients(first, xs), weights[1], strict=True)])[1]
    numeric = slope(along, np.ones(()), precision(*xs), cancelled=added + dot([(u, y)])[1])
    if numeric.kink:
        return False
    pairs = [(g.array, v) for g, v in zip(_gradients(second, xs), directions.values(), strict=True)]
    numeric.assert_equals(*dot(pairs), f"{case.label}: third order")
    return True


def _seeded(case: Case, *xs: Any) -> Any:
    """The op's result contracted with the seed, which comes last."""
    *given, u = xs
    floats = iter(given)
    inputs = [next(floats) if i in case.float_inputs else a for i, a in enumerate(case.arrays)]
    return ops.reduce_sum(ops.mul(case.op(*inputs, **case.attrs), u))


def _contracted(f: Scalar, weights: Sequence[Array]) -> Scalar:
    """The sum of the products of f's gradient with fixed weights, in float64."""

    def contraction(*xs: Any) -> Any:
        products = [
            ops.cast(g, np.float64) * w.astype(np.float64) for g, w in zip(_gradients(f, xs), weights, strict=True)
        ]
        return reduce(ops.add, [ops.reduce_sum(product) for product in products])

    return contraction


def _gradients(f: Scalar, xs: Sequence[Any]) -> tuple[Any, ...]:
    gradients: tuple[Any, ...] = grad(f, argnums=tuple(range(len(xs))))(*xs)
    return gradients


THIRD_ORDER: dict[str, Callable[[Any], None]] = {"third order": check_third_order}
