"""dgrr: the gradients of a captured scan."""

from collections.abc import Callable
from typing import Any

from dgrr.runtime import SGD, capture
from dgrr.tape import AnyVar, ops, set_threads

from .scans import MODELS as MODELS, Array, Looped


def make(model: Looped, params: dict[str, Array], threads: int) -> Callable[[Array], float]:
    """Gradients by all leaves; returns the last element of the first."""
    set_threads(threads)

    def loss_fn(p: Any, xs: Any) -> AnyVar:
        def body(h: Any, x: Any) -> tuple[Any, None]:
            for k in range(model.cells):
                h = ops.tanh(h * p[f"a{k}"] + p[f"b{k}"] + x * p[f"c{k}"])
            return h, None

        last, _ = ops.scan(body, xs[0], xs)
        return ops.reduce_sum(last)

    step = capture(loss_fn, params, SGD(0.0), model.batches()[0])
    return lambda xs: float(step.gradients(xs)["a0"][-1])
