"""Compiling ahead, for images and for CI, what a first step would else compile.

Every op with its derivative in float32, the optimizers, and captured steps of three small networks.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ...runtime import SGD, Adam, AdamW, capture
from ...runtime.optim import Rule
from ...tape import AnyTensor, nn, ops
from ...tape.numerics.engine.side_by_side import Task, compile_side_by_side
from ...tape.ops import OPS
from ...tape.record.op import Op
from ...tape.record.samples import Make

FLOAT = np.dtype(np.float32)

IMAGES: nn.Layer = nn.Sequential(
    nn.Conv(1, 4, (3, 3), padding=1),
    nn.BatchNorm(4),
    nn.ReLU(),
    nn.MaxPool((2, 2)),
    nn.Conv(4, 8, (3, 3)),
    nn.Flatten(),
    nn.Dropout(0.1),
    nn.Linear(32, 10),
)
VECTORS: nn.Layer = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 10))
SENTENCES: nn.Layer = nn.Sequential(nn.TransformerBlock(8, 2, 16, dropout=0.1, causal=True), nn.Linear(8, 10))

NETWORKS: dict[str, tuple[nn.Layer, tuple[int, ...]]] = {
    "a perceptron": (VECTORS, (64, 8)),
    "a convolutional network": (IMAGES, (16, 1, 8, 8)),
    "a transformer": (SENTENCES, (4, 16, 8)),
}
"""Networks and the shapes of their inputs."""

RULES: tuple[Rule, ...] = (SGD(0.1), SGD(0.1, momentum=0.9), Adam(), AdamW())

PATIENCE = 2.0
"""Seconds in which another process may end by the Ctrl-C that it got itself, before it gets ours."""

_DIED = "its process ended before it was compiled"


def compiled(given: Sequence[Task]) -> list[dict[str, str]]:
    """Compile side by side; which of the tasks failed, and why.

    A task may run in a forked process, whose errors and whose death nobody sees. So each leaves a file where it
    ends: empty, or with its error; one without a file never came to its end.
    """
    with TemporaryDirectory(prefix="dgrr-warm-") as folder:
        outcomes = [Path(folder, str(i)) for i in range(len(given))]
        told = [Task(t.name, partial(_noted, t, path)) for t, path in zip(given, outcomes, strict=True)]
        compile_side_by_side(told, "ops and networks")
        errors = [path.read_text() if path.exists() else _DIED for path in outcomes]
    return [{"task": task.name, "error": error} for task, error in zip(given, errors, strict=True) if error]


def in_another_process(level: str, function: str | None) -> dict[str, Any]:
    """What the command answers, with ``--json``, in a process that compiles for a level; empty if that process died.

    Ctrl-C in a terminal reaches that process, too. It has time to end those that compile for it.
    """
    command = [sys.executable, "-m", "dgrr", "cache", "warm", *([function] if function else []), "--json"]
    variables = {**os.environ, "NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as process:
        try:
            answer: dict[str, Any] = json.loads(process.communicate()[0] or "{}")
        except KeyboardInterrupt:
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait()
            raise
    return answer


def _noted(task: Task, outcome: Path) -> None:
    """Compile, and leave behind how it went."""
    error = ""
    try:
        task.compile()
    except Exception as raised:
        error = " ".join(f"{type(raised).__name__}: {raised}".split())
    outcome.write_text(error)


def tasks() -> list[Task]:
    """What is compiled without a model; the longest first."""
    captured = [Task(name, partial(_capture, *network)) for name, network in NETWORKS.items()]
    rules = [Task(rule.rule, partial(_update, rule)) for rule in RULES]
    return [*captured, *(Task(op.name, partial(_compute, op)) for op in OPS.values()), *rules]


def _capture(network: nn.Layer, shape: tuple[int, ...]) -> None:
    """A step and its gradients, as `capture` makes them."""

    def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
        inputs, labels = batch
        return ops.cross_entropy(network(p, inputs, ctx).reshape((-1, 10)), labels), ctx.state

    size = shape[0] if len(shape) != 3 else shape[0] * shape[1]
    batch = (np.ones(shape, np.float32), np.zeros(size, np.int64))
    step = capture(loss_fn, network.init(seed=0), Adam(), batch, model_state=network.init_state())
    for use in (step, step.gradients, step.grads):
        made: Callable[[Any], object] = use
        made(batch)


def _compute(op: Op) -> None:
    """An op and its derivative on each of its samples."""
    for sample in op.samples(Make(FLOAT)):
        inputs, attrs = op.bind(sample.arrays, sample.attrs)
        values = [None if x is None else AnyTensor(np.asarray(x)) for x in inputs]
        y = op.compute(values, attrs)
        if y.dtype == FLOAT:
            needs = [x is not None and x.dtype == FLOAT for x in values]
            op.pull(AnyTensor(np.asarray(Make(FLOAT, seed=1)(*y.sizes))), values, y, attrs, needs)


def _update(rule: Rule) -> None:
    """Two steps of an optimizer."""
    params = {"w": np.ones(8, np.float32)}
    state = rule.init(params)
    for _ in range(2):
        rule.step(params, {"w": np.ones(8, np.float32)}, state)
