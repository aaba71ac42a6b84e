"""A small model, captured and eager steps of it, and what can be seen of them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dgrr.runtime import SGD, Adam, CapturedStep, EagerStep, capture
from dgrr.runtime.optim import Rule
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import DgrrError, nn, ops

Arrays = dict[str, npt.NDArray[Any]]
Batch = tuple[npt.NDArray[Any], npt.NDArray[Any]]
Loss = Callable[[Any, Any], Any]
MODEL = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
RULES = [SGD(0.1, momentum=0.9), Adam(0.01)]


def loss_fn(p: Any, batch: Any) -> Any:
    inputs, labels = batch
    return ops.cross_entropy(MODEL(p, inputs), labels)


def batch_of(number: int, rows: int = 6) -> Batch:
    rng = np.random.default_rng(number)
    return rng.standard_normal((rows, 3)).astype(np.float32), rng.integers(0, 2, rows)


def new_step(rule: Rule, seed: int = 0, **options: Any) -> CapturedStep:
    return capture(loss_fn, MODEL.init(seed), rule, batch_of(0), **options)


def copied(arrays: Arrays) -> Arrays:
    return {name: array.copy() for name, array in arrays.items()}


def bits(arrays: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}


def outcome(step: Any, method: str, *arguments: Any) -> Any:
    """The bits of a loss, or the error and its text, which may quote the line of the call: it is this one for all."""
    try:
        return getattr(step, method)(*arguments).tobytes()
    except DgrrError as error:
        return type(error), str(error)


def same_training(loss: Loss, params: Any, batches: Sequence[Any], rule: Rule, **recipe: Any) -> CapturedStep:
    """Train both ways on the batches; losses, consumed gradients and states must be equal to the bit at each."""
    captured, eager = capture(loss, params, rule, batches[0], **recipe), EagerStep(loss, params, Recipe(rule, **recipe))
    for batch in batches:
        assert captured(batch).tobytes() == eager(batch).tobytes()
        assert bits(captured.consumed) == bits(eager.consumed)
        assert bits(captured.params) == bits(eager.params)
        assert bits(captured.state) == bits(eager.state)
        assert captured.scale == eager.scale
    return captured
