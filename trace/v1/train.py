"""Training: the compiled loop, block by block, into a trace."""

from dataclasses import dataclass

import numpy as np

from .compiled import gradients, sample, train_block, updated
from .layout import RECORD_WORDS
from .reader import BLOCK_RECORDS
from .writer import WriterV1


@dataclass(frozen=True)
class Trained:
    """What came of a run; `w` and `b` are the parameters after its last recorded step."""

    step_count: int
    w: float
    b: float
    loss_total: float


def train(writer: WriterV1, steps: int, learning_rate: float, seed: int) -> Trained:
    """Append the records of up to `steps` steps from w = b = 0; fewer where a value is not finite.

    Ctrl-C is answered between blocks, every fraction of a millisecond.
    """
    records = np.empty((min(steps, BLOCK_RECORDS), RECORD_WORDS), np.uint64)
    state = np.zeros(4)
    for first in range(0, steps, BLOCK_RECORDS):
        block = records[: steps - first]
        done = train_block(block, first, seed, learning_rate, state)
        writer.append(block[:done])
        if done < len(block):
            break
    w, b, loss_total, _ = state.tolist()
    return Trained(writer.step_count, w, b, loss_total)


def attempted_step(trained: Trained, learning_rate: float, seed: int) -> dict[str, float]:
    """Return what the step after the last recorded one computes, by field name."""
    x, y = sample(seed, trained.step_count)
    grad_w, grad_b, loss = gradients(trained.w, trained.b, x, y)
    return {
        "grad_w": grad_w,
        "grad_b": grad_b,
        "w_after": updated(trained.w, learning_rate, grad_w),
        "b_after": updated(trained.b, learning_rate, grad_b),
        "loss": loss,
    }
