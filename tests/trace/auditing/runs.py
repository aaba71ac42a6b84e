"""Honest and forged runs of a small model, for audits."""

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dgrr.runtime import SGD, Trainer
from dgrr.trace import CompletedStep, Keep, Run, open_recorder

BATCHES = [np.linspace(0.1, 0.9, 4) + i for i in range(5)]
STEPS = 13
KEYFRAMES = 4
NONCE = b"of the verifier"

Made = Callable[..., Path]
"""What the fixture `run` is."""


def loss_fn(p: Any, x: Any) -> Any:
    """The loss of the run."""
    return ((p["w"] * x - 0.5) ** 2).sum()


class Counting:
    """The loss function, and how often it was called; it may be interrupted."""

    def __init__(self, interrupted: int = -1) -> None:
        self.calls, self.interrupted = 0, interrupted

    def __call__(self, p: Any, x: Any) -> Any:
        self.calls += 1
        if self.calls == self.interrupted:
            raise KeyboardInterrupt
        return loss_fn(p, x)


class Recorded:
    """A trainer's recorder; and a forger's.

    At the steps of `forged` it changes the weights behind the back of the rule and writes the changed ones down. From
    there on all is honest.
    """

    def __init__(self, path: Path, forged: Collection[int], **options: Any) -> None:
        self.path, self.forged = path, forged
        self.numerics = options.pop("numerics", None)
        self.options = options

    def open_recorder(self, run: Run) -> Any:
        """As a trainer asks for it."""
        run = run if self.numerics is None else replace(run, numerics=self.numerics)
        recorder = open_recorder(Keep(self.path, **self.options), run)
        step = recorder.step

        def forging(done: CompletedStep) -> None:
            if done.step in self.forged:
                weights = done.params["w"]
                weights[1] = np.nextafter(weights[1], np.inf)
            step(done)

        recorder.step = forging  # type: ignore[method-assign]
        return recorder


def another_loss(steps: Collection[int]) -> Callable[[Any, Any], Any]:
    """A loss function that is another at these steps: gradients and updates follow from it."""
    calls: list[int] = []

    def forged(p: Any, x: Any) -> Any:
        calls.append(1)
        made = loss_fn(p, x)
        return made * 2.0 if len(calls) - 1 in steps else made

    return forged


def record(
    path: Path, steps: int, *, state: Collection[int] = (), gradient: Collection[int] = (), **options: Any
) -> Path:
    """A trace of so many steps; those of `state` have another state than the rule makes, those of `gradient` another
    gradient than the model."""
    trace = Recorded(path, state, **{"salt": bytes(16), "created_at": 7, **options})
    rule = SGD(0.001, momentum=0.5)
    trainer = Trainer(another_loss(gradient), {"w": np.linspace(-1, 1, 4)}, rule, mode="eager", trace=trace)
    trainer.fit(BATCHES, steps=steps, progress=False)
    return path
