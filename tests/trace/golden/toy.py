"""A run that needs no compiler: plain gradient descent of two numbers, told to a recorder by hand."""

from typing import Any

import numpy as np

from dgrr.trace import CompletedStep, RuleGroup, Run


def train(trace: Any, lr: float = 0.5, steps: int = 3, numerics: int = 1, off: float = 0.0) -> None:
    """Minimise ``w**2 / 4`` in float32, with gradients that are off by a factor of ``1 + off``."""
    params = {"w": np.array([1.0, -2.0], np.float32)}
    with trace.open_recorder(Run(params, {}, [RuleGroup("sgd@1", ("lr",))], numerics=numerics)) as recorder:
        for step in range(steps):
            loss, grads = np.float32((params["w"] ** 2).sum() / 4), {"w": params["w"] / 2 * np.float32(1 + off)}
            params = {"w": params["w"] - np.float32(lr) * grads["w"]}
            told = {"hyper": {"lr": lr}, "grads": grads, "params": params, "state": {}, "batch": ()}
            recorder.step(CompletedStep(step=step, loss=np.asarray(loss), **told))
