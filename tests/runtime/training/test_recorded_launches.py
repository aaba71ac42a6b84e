"""Steps that are recorded, in launches too: the file is that of single steps."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, Keep, NonFiniteError, Trainer
from dgrr.runtime.optim import Cosine
from dgrr.runtime.training.fitting import pace
from dgrr.tape import nn, ops
from dgrr.trace import open_trace, validate

from .launched import DATA, MODEL, NAMED, PAIRS, STATE, metrics, named, of_context, of_types, plain

pytestmark = pytest.mark.usefixtures("launches")

WIDE = nn.Sequential(nn.Linear(3, 4000), nn.Tanh(), nn.Linear(4000, 2))


def wide(p: Any, batch: Any) -> Any:
    return ops.cross_entropy(WIDE(p, batch[0]), batch[1])


def recorded(folder: Path, monkeypatch: pytest.MonkeyPatch, loss: Any = plain, **options: Any) -> None:
    """A run whose launches may have 64 steps has the file of a run of single steps, op by op too."""
    kept, batches = options.pop("kept", {}), options.pop("batches", None)
    files = list[bytes]()
    for name, most, mode in (("eager", 1, "eager"), ("1", 1, "replay"), ("64", 64, "replay")):
        monkeypatch.setattr(pace, "MOST", most)
        path = folder / f"{name}.dgrr"
        given: dict[str, Any] = {"params": MODEL.init(0), "optimizer": Adam(0.05)} | options
        trainer = Trainer(loss, **given, mode=mode, trace=Keep(path, salt=bytes(16), created_at=1, **kept))
        with suppress(NonFiniteError):
            trainer.fit(DATA.batches(4, seed=3) if batches is None else batches, epochs=3)
        files.append(path.read_bytes())
        assert validate(path).ok
    assert files[0] == files[1] == files[2]


RECORDED: dict[str, tuple[dict[str, Any], int]] = {
    "digests": ({"kept": {"record": "digest"}}, 20),
    "gradients": ({"kept": {"record": "grads"}}, 20),
    "the state too": ({"kept": {"record": "full"}}, 20),
    "arrays": ({"batches": PAIRS}, 20),
    "by name": ({"loss": named, "batches": NAMED.batches(4, seed=3)}, 20),
    "a schedule": ({"optimizer": {"*.bias": SGD(Cosine(0.1, steps=90)), "*": Adam(0.01)}, "clip_value": 0.1}, 20),
    "a state of the model": ({"loss": lambda p, b, c: of_context(p, b, c)[:2], **STATE}, 20),
    "accumulated": ({"accumulate": 2}, 10),
    "ops of some steps": ({"kept": {"ops": [30, 31]}}, 20),
    "states now and then": ({"kept": {"state_every": 20, "keyframe_every": 20}}, 10),
    "keyframes and commits": ({"kept": {"keyframe_every": 7, "commit_every": 9}}, 5),
    "metrics": ({"loss": metrics}, 20),
    "metrics of micro-batches": ({"loss": metrics, "accumulate": 3, "order": "tree"}, 5),
    "metrics of other types": ({"loss": of_types, "kept": {"keyframe_every": 7, "commit_every": 9}}, 5),
    "metrics beside a state": ({"loss": of_context, **STATE, "kept": {"state_every": 9}}, 5),
    "clipped": ({"clip_norm": 0.5}, 20),
    "clipped twice": ({"clip_norm": 0.5, "clip_value": 0.1, "loss": metrics}, 20),
    "clipped to nothing": ({"clip_norm": 0.0, "kept": {"record": "full"}}, 20),
    "measured alone": ({"clip_norm": np.inf, "accumulate": 2}, 10),
    "by SHA-256": ({"kept": {"digest": "sha256"}}, 0),
    "long frames": ({"kept": {"record": "grads"}, "loss": wide, "params": WIDE.init(0)}, 5),
}


@pytest.mark.parametrize("run", RECORDED)
def test_the_trace_of_a_run(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launches: list[int]) -> None:
    """Where all that is kept of a step can be made by its own rows, recorded steps are done in launches too."""
    options, least = RECORDED[run]
    recorded(tmp_path, monkeypatch, **options)
    assert max(launches, default=0) >= least
    assert least or not launches


def test_a_recorder_ends_a_launch_at_what_it_has_to_record_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launches: list[int]
) -> None:
    """A parameter that is infinite behind step 20, whose gradient is finite."""
    options: dict[str, Any] = {"params": {"w": np.zeros(2, np.float32)}, "optimizer": SGD(1.65e37)}
    batches = [np.array([1, 0], np.float32)] * 40
    recorded(tmp_path, monkeypatch, lambda p, x: (p["w"] * x).sum(), batches=batches, **options)
    with open_trace(tmp_path / "64.dgrr") as trace:
        assert len(trace) == 21
    assert launches == [7, 5]


def test_a_recorder_that_takes_single_steps_gets_them(tmp_path: Path, launches: list[int]) -> None:
    class Counting:
        def __init__(self) -> None:
            self.steps = list[int]()

        def wants_tape(self, step: int) -> bool:
            return False

        def step(self, done: Any) -> None:
            self.steps.append(done.step)

        def commit(self) -> None: ...
        def seal(self) -> None: ...
        def close(self) -> None: ...

    recorder = Counting()
    Trainer(plain, MODEL.init(0), Adam(0.05), trace=recorder).fit(DATA.batches(4, seed=3), epochs=1)
    assert (recorder.steps, launches) == (list(range(33)), [])
