"""The step of the reference model: Linear 8-8, ReLU, Linear 8-8 on 64 standard normal samples, mean squared error, Adam
at 1e-3, all from seed 0.
"""

import numpy as np

from ...base.arrays import Array
from ...runtime import Adam, CapturedStep, capture
from ...tape import AnyTensor, AnyVar, nn, ops
from ...tape.numerics.math.random import uniform
from ...tape.record.op import OPS

MODEL = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
SAMPLES = 64


def loss_fn(p: nn.Params, batch: tuple[Array, Array]) -> AnyVar:
    """Mean squared error of the reference model."""
    inputs, targets = batch
    return ops.mse_loss(MODEL(p, inputs), targets)


def reference_step() -> CapturedStep:
    """The reference model's step."""
    return capture(loss_fn, MODEL.init(seed=0), Adam(lr=1e-3), reference_batch())


def reference_batch() -> tuple[Array, Array]:
    """Inputs and targets of the reference model."""
    return standard_normal((SAMPLES, 8), 0), standard_normal((SAMPLES, 8), 1)


def standard_normal(shape: tuple[int, int], ordinal: int) -> Array:
    """Standard normal float32 numbers of seed 0, the same on every machine: Marsaglia's polar method over Philox.

    Marsaglia and Bray, "A convenient method for generating normal variables", SIAM Review 6 (1964).
    """
    count = shape[0] * shape[1]
    x, y = 2 * uniform((2, count), np.float64, seed=0, ordinal=ordinal) - 1
    square = x * x + y * y
    inside = (square > 0) & (square < 1)
    x, y, square = x[inside], y[inside], square[inside]
    logs: AnyTensor = OPS["log"](AnyTensor(square))
    factor: AnyTensor = OPS["sqrt"](AnyTensor(-2 * logs.array / square))
    pairs = np.stack([x * factor.array, y * factor.array], axis=1)
    return pairs.reshape(-1)[:count].astype(np.float32).reshape(shape)
