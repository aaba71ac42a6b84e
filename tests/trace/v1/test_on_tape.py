"""The model of version 1 on the tape: the engine gives the bits of the hand-written loop and of `dgrr train`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.tape import Tape, f64
from dgrr.trace import open_trace
from dgrr.trace.cli import main
from dgrr.trace.v1.layout import HEADER_SIZE, RECORD_DTYPE

STEPS = 200
RUNS = pytest.mark.parametrize(("seed", "lr"), [(42, 0.01), (2**64 - 1, 0.05), (7, 0.3)])
FIELDS = ("w_before", "b_before", "grad_w", "grad_b", "w_after", "b_after", "loss")
Rows = npt.NDArray[np.float64]
"""One row per step, one column per field."""


def uniforms(seed: int) -> Iterator[float]:
    """SplitMix64, in [0, 1)."""
    mask, state = 2**64 - 1, seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield ((z ^ (z >> 31)) >> 11) * 2.0**-53


def samples(seed: int) -> list[tuple[float, float]]:
    drawn, made = uniforms(seed), list[tuple[float, float]]()
    for _ in range(STEPS):
        x = 4 * next(drawn) - 2
        made.append((x, (2 * x + 1) + 0.1 * (next(drawn) - 0.5)))
    return made


def by_hand(seed: int, lr: float) -> Rows:
    w, b, rows = 0.0, 0.0, list[tuple[float, ...]]()
    for x, y in samples(seed):
        e = (w * x + b) - y
        grad_w, grad_b = (2 * e) * x, 2 * e
        rows.append((w, b, grad_w, grad_b, w - lr * grad_w, b - lr * grad_b, e * e))
        w, b = rows[-1][4:6]
    return np.array(rows)


def recorded(path: Path, seed: int, lr: float) -> Rows:
    """What `dgrr train` writes."""
    arguments = ["--steps", STEPS, "--lr", repr(lr), "--seed", seed, "--out", path]
    assert main(["train", *map(str, arguments)]) == 0
    records = np.frombuffer(path.read_bytes(), RECORD_DTYPE, offset=HEADER_SIZE)
    return np.column_stack([records[name] for name in FIELDS])


def square_as_product(p: Any, batch: Any) -> Any:
    """The product's two contributions add up to e + e, which is 2e exactly."""
    x, y = batch
    e = (p["w"] * x + p["b"]) - y
    return e * e


def square_as_power(p: Any, batch: Any) -> Any:
    """The power's VJP scales by 2, which is exact."""
    x, y = batch
    return ((p["w"] * x + p["b"]) - y) ** 2


SQUARES = pytest.mark.parametrize("loss_fn", [square_as_product, square_as_power])


def on_the_tape(loss_fn: Callable[[Any, Any], Any], seed: int, lr: float) -> Rows:
    """Gradients by the tape, the update by hand."""
    w, b, rows = 0.0, 0.0, list[tuple[float, ...]]()
    for x, y in samples(seed):
        tape = Tape(f64)
        p = {"w": tape.param(np.array(w), name="w"), "b": tape.param(np.array(b), name="b")}
        loss = loss_fn(p, (tape.const(np.array(x)), tape.const(np.array(y))))
        grads = tape.backward_scalar(loss)
        grad_w, grad_b = (grads[name].item() for name in ("w", "b"))  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
        rows.append((w, b, grad_w, grad_b, w - lr * grad_w, b - lr * grad_b, loss.item()))
        w, b = rows[-1][4:6]
    return np.array(rows)


def assert_same_bits(found: Rows, expected: Rows) -> None:
    differs = found.view(np.uint64) != np.ascontiguousarray(expected).view(np.uint64)
    places = [f"step {step}, {FIELDS[field]}" for step, field in np.argwhere(differs)]
    assert not places, f"{len(places)} values differ, first {places[0]}"


@RUNS
@SQUARES
def test_every_value_of_every_step(tmp_path: Path, loss_fn: Callable[[Any, Any], Any], seed: int, lr: float) -> None:
    found = on_the_tape(loss_fn, seed, lr)
    assert found.shape == (STEPS, len(FIELDS))
    assert_same_bits(found, by_hand(seed, lr))
    assert_same_bits(found, recorded(tmp_path / "v1.dgrr", seed, lr))


@RUNS
@SQUARES
def test_the_trainer_and_its_trace(tmp_path: Path, loss_fn: Callable[[Any, Any], Any], seed: int, lr: float) -> None:
    """Plain SGD in the optimizer's kernel: the same state, and a trace of version 2 with the same values."""
    start = {"w": np.zeros(()), "b": np.zeros(())}
    batches = [(np.array(x), np.array(y)) for x, y in samples(seed)]
    trainer = Trainer(loss_fn, start, SGD(lr), trace=tmp_path / "v2.dgrr", seed=seed)
    result = trainer.fit(batches)
    version1 = recorded(tmp_path / "v1.dgrr", seed, lr)
    assert [trainer.params[name].item() for name in ("w", "b")] == version1[-1, 4:6].tolist()
    with open_trace(tmp_path / "v2.dgrr") as trace:
        grads = [trace.gradients(step) for step in range(STEPS)]
        version2 = np.array([(g["w"], g["b"], loss) for g, loss in zip(grads, trace.loss, strict=True)])
    columns = [FIELDS.index(name) for name in ("grad_w", "grad_b", "loss")]
    assert version2.tobytes() == version1[:, columns].tobytes()
    assert result.losses.tobytes() == version1[:, FIELDS.index("loss")].tobytes()
