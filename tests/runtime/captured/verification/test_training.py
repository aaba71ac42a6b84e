"""Two checks that users make of a captured step by hand, and the trap in the first of them.

Gradients must be held against the weights from which they were computed; a whole step is judged by how weights
and optimizer state move.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dgrr.runtime import Adam, CapturedStep, capture
from dgrr.tape import nn, ops

Array = npt.NDArray[Any]
MODEL = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
LR = 1e-3


def loss_fn(p: Any, batch: Any) -> Any:
    inputs, targets = batch
    return ops.mse_loss(MODEL(p, inputs), targets)


def new_step() -> tuple[CapturedStep, tuple[Array, Array]]:
    rng = np.random.default_rng(0)
    x, t = (rng.standard_normal((64, 8)).astype(np.float32) for _ in range(2))
    return capture(loss_fn, MODEL.init(seed=0), Adam(LR), (x, t)), (x, t)


def by_hand(params: dict[str, Array], x: Array, t: Array) -> dict[str, Array]:
    """The gradients by the textbook's formulas, in float64."""
    w0, b0, w1, b1 = (params[name].astype(np.float64) for name in ("0.weight", "0.bias", "2.weight", "2.bias"))
    hidden = x @ w0.T + b0
    active = np.maximum(hidden, 0)
    dy = 2 * (active @ w1.T + b1 - t) / t.size
    dh = (dy @ w1) * (hidden > 0)
    return {"0.weight": dh.T @ x, "0.bias": dh.sum(0), "2.weight": dy.T @ active, "2.bias": dy.sum(0)}


def distance(a: dict[str, Array], b: dict[str, Array]) -> float:
    return max(float(np.abs(a[name] - b[name]).max()) for name in a)


def test_gradients_against_the_weights_they_were_computed_from() -> None:
    step, (x, t) = new_step()
    before = step.digest()
    for _ in range(20):
        assert distance(by_hand(step.params, x, t), step.gradients((x, t))) < 1e-7
        step.replay(1)
    assert step.digest() != before


def test_the_trap_of_gradients_against_weights_that_have_moved() -> None:
    """The gradients that a step consumed belong to the weights before it: held against those after, they look wrong."""
    step, (x, t) = new_step()
    weights = {name: array.copy() for name, array in step.params.items()}
    step((x, t))
    assert distance(by_hand(step.params, x, t), step.consumed) > 1e-4
    assert distance(by_hand(weights, x, t), step.consumed) < 1e-7


def test_whole_training_steps() -> None:
    """Weights move against their gradients by about the rate, both moments move, the loss falls."""
    step, batch = new_step()
    before, losses = step.state_dict(), list[float]()
    losses.append(float(step(batch)))
    for name, old in before["params"].items():
        move, gradient = step.params[name] - old, step.consumed[name]
        assert np.all(np.sign(move[gradient != 0]) == -np.sign(gradient[gradient != 0]))
        assert 0.9 * LR < np.abs(move[np.abs(gradient) > 1e-5]).max() < 1.01 * LR
        assert np.any(step.state[f"m/{name}"] != 0)
        assert np.any(step.state[f"v/{name}"] != 0)
    losses += step.replay(99).tolist()
    assert all(later < earlier for earlier, later in pairwise(losses))
    assert int(step.state["step"]) == 100


def test_the_reference_model_is_verified_with_every_check() -> None:
    step, _ = new_step()
    report = step.verify(replays=20)
    assert report.ok, str(report)
