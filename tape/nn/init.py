"""How parameters start: keyed by a seed and the parameter's place in the model, so that order never matters."""

from typing import Any

import numpy as np

from ..random import uniform
from ..table import OPS
from ..tensor import AnyTensor, Array
from .layer import Initialiser

BEFORE_TRAINING = 2**32 - 1
"""The step under which initial values are drawn: the last there is, so no training step draws the same words."""


def uniform_fan_in(fan_in: int) -> Initialiser:
    """Uniform on ``[-b, b)`` with ``b = 1 / sqrt(fan_in)``: PyTorch's default for Linear's weight and bias.

    The bound is computed in float64 and rounded once; a value is ``(2 u - 1) * b`` with u from [0, 1).
    """

    bound = OPS["power"](OPS["sqrt"](AnyTensor(np.array(float(fan_in)))), -1).item()

    def initialise(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int, ordinal: int) -> Array:
        unit = uniform(shape, dtype, seed=seed, step=BEFORE_TRAINING, ordinal=ordinal)
        centred = AnyTensor(np.asarray(unit * dtype.type(2) - dtype.type(1)))  # exact
        values: AnyTensor = OPS["scale"](centred, bound)
        return values.array.copy()

    return initialise
