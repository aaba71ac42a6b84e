"""``dgrr verify-step``: hold a captured training step to all that it promises, and say what does not hold.

The step is what ``FUNCTION()`` of a module returns; without one it is that of the reference model: Linear 8-8,
ReLU, Linear 8-8 on 64 standard normal samples, mean squared error, Adam at 1e-3, all from seed 0.
"""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...runtime import Adam, CapturedStep, capture
from ...tape import AnyTensor, AnyVar, DgrrError, nn, ops
from ...tape.numerics.math.random import uniform
from ...tape.record.op import OPS
from ...tape.values.tensor import Array
from ..exit_codes import Exit

MODEL = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
SAMPLES = 64


class StepError(Exception):
    """There is no step to verify: the text names the module and function, and says why."""


def loss_fn(p: Any, batch: Any) -> AnyVar:
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


def run(spec: str | None, replays: int) -> int:
    """Verify a step and print every check; the exit code."""
    try:
        step = reference_step() if spec is None else load_step(spec)
        report = step.verify(replays)
    except (StepError, DgrrError) as error:
        print(f"dgrr: error: {error}", file=sys.stderr)
        return Exit.USAGE
    print(report)
    print(f"{len(report.checks) - len(report.failures)} of {len(report.checks)} checks held")
    return Exit.OK if report.ok else Exit.REPLAY


def load_step(spec: str) -> CapturedStep:
    """What ``MODULE:FUNCTION`` returns when it is called; modules are also looked for in the current folder.

    Raises StepError if there is no such module or function, if one of them raises, or if it returns no step.
    """
    module, colon, function = spec.partition(":")
    if not (module and colon and function):
        raise StepError(f"expected MODULE:FUNCTION, got {spec!r}")
    with _current_folder():
        make = _function(module, function)
        step = _result(f"{spec}()", make)
    if not isinstance(step, CapturedStep):
        raise StepError(f"{spec}(): expected a CapturedStep, as dgrr.runtime.capture makes it, got {_kind(step)}")
    return step


@contextmanager
def _current_folder() -> Generator[None, None, None]:
    """Let modules of the current folder be imported."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _function(module: str, function: str) -> Any:
    if _result(module, lambda: find_spec(module)) is None:
        raise StepError(f"there is no module {module!r} in the current folder or among the installed ones")
    there = _result(f"import {module}", lambda: import_module(module))
    if not hasattr(there, function):
        raise StepError(f"module {module!r} has no {function!r}")
    make = getattr(there, function)
    if not callable(make):
        raise StepError(f"{module}:{function}: expected a function, got {_kind(make)}")
    return make


def _result(what: str, make: Callable[[], Any]) -> Any:
    """What the user's code returns; StepError, in one line, for whatever it raises."""
    try:
        return make()
    except (Exception, SystemExit) as error:
        text = " ".join(str(error).split())
        raise StepError(f"{what}: raised {_kind(error)}{': ' if text else ''}{text}") from error


def _kind(value: object) -> str:
    return type(value).__name__
