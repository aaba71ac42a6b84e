"""Recorded runs whose pages are looked at."""

import json
import re
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, Keep, Trainer, data
from dgrr.runtime.optim import StepDecay
from dgrr.tape import NUMERICS, AnyVar, nn, ops
from dgrr.trace import CompletedStep, write_report

from ...browser import Browser
from ...keeping import kept, recorder_of
from .diff_page import train

MODEL = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
TRAIN, TEST = data.digits()
OTHERS = TEST.batches(256)
STEPS = 40
PART = 25
"""The first step at which the two digits runs differ."""


def loss_fn(p: Any, batch: Any) -> tuple[AnyVar, dict[str, AnyVar]]:
    logits = MODEL(p, batch[0])
    return ops.cross_entropy(logits, batch[1]), {
        "accuracy": ops.cast(ops.argmax(logits, axis=-1) == batch[1], "float32").mean()
    }


def model_run() -> tuple[Any, Any]:
    return loss_fn, TRAIN.batches(32, seed=0)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


def _digits(path: Path, decay: float, **options: Any) -> Path:
    rule = Adam(StepDecay(0.01, every=PART, factor=decay))
    trainer = Trainer(loss_fn, MODEL.init(0), rule, seed=0, **kept(path, {"ops": "first", **options}))
    trainer.fit(model_run()[1], steps=STEPS)
    return path


@pytest.fixture(scope="session")
def digits(folder: Path) -> Path:
    """A run with its gradients."""
    return _digits(folder / "digits.dgrr", 0.5)


@pytest.fixture(scope="session")
def other_digits(folder: Path) -> Path:
    """The same up to step 24; then the rate is another."""
    return _digits(folder / "other.dgrr", 0.1)


KINDS = {"f64": "<f8", "f32": "<f4", "u32": "<u4", "u16": "<u2", "u8": "u1"}


class Page:
    """A page as a program reads it."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', self.text, re.DOTALL)
        assert found is not None
        self.data: Any = json.loads(found[1])

    def array(self, reference: dict[str, Any]) -> Any:
        found = re.search(rf'<script type="text/plain" id="array{reference["at"]}">([^<]*)</script>', self.text)
        assert found is not None
        return np.frombuffer(b64decode(found[1]), KINDS[reference["kind"]])


@pytest.fixture(scope="session")
def both(digits: Path, other_digits: Path, folder: Path) -> Page:
    """The page of two runs that part, with a step of the first built again."""
    write_report([digits, other_digits], folder / "both.html", make_run=model_run, rebuild=[3])
    return Page(folder / "both.html")


NOTES: dict[str, Any] = {"lr": 0.01, "decay": 0.5, "data": "digits", "layers": [16, 10]}


@pytest.fixture(scope="session")
def noted(folder: Path) -> Path:
    """The run of `digits`, with notes, validated after every tenth step."""
    path = folder / "noted.dgrr"
    rule = Adam(StepDecay(0.01, every=PART, factor=0.5))
    keep = Keep(path, notes=NOTES, created_at=10**18)
    trainer = Trainer(loss_fn, MODEL.init(0), rule, seed=0, trace=keep)
    trainer.fit(model_run()[1], steps=STEPS, validation=OTHERS, validate_every=10)
    return path


@pytest.fixture(scope="session")
def digests(folder: Path) -> Path:
    """A run of digests alone."""
    return _digits(folder / "digests.dgrr", 0.5, record="digest")


Told = Callable[[int], dict[str, Any]]


def record(path: Path, params: dict[str, Any], steps: int, told: Told, *, seal: bool = True) -> Path:
    """A run of what `told` says of each step, by a rule that nobody knows."""
    options: dict[str, Any] = {"record": "grads", "salt": bytes(16), "created_at": 7, "numerics": NUMERICS}
    start = {name: array.copy() for name, array in params.items()}
    recorder = recorder_of(
        path, params=start, state={}, rule="mine@1", hyperparameters=["lr"], on_nonfinite="record", **options
    )
    for step in range(steps):
        said = {"loss": np.array(1 / (step + 1), np.float32), "hyper": {"lr": 0.1}, "params": params, "state": {}}
        recorder.step(CompletedStep(step=step, batch=[np.ones(1)], **(said | told(step))))
    if seal:
        recorder.seal()
        return path
    recorder.close()
    return path.with_name(f"{path.name}.partial")


HOSTILE = '</script><img src=x onerror="window.harmed=1"><!--'


@pytest.fixture(scope="session")
def troubled(folder: Path) -> Path:
    """A run with a loss and a gradient that are not finite, a dead param, one that explodes, a name that is markup."""
    params = {"dead": np.ones(3, np.float32), "wild": np.ones(2, np.float32), HOSTILE: np.ones(2, np.float32)}

    def told(step: int) -> dict[str, Any]:
        grads = {name: np.full_like(array, 0.5) for name, array in params.items()}
        grads["dead"][:] = 0
        grads["wild"][0] = 1e6 if step == 12 else 1
        if step == 15:
            grads[HOSTILE][1] = np.nan
        if step == 16:
            del grads["wild"]
        return {"grads": grads} | ({"loss": np.array(np.inf, np.float32)} if step == 15 else {})

    return record(folder / "troubled.dgrr", params, 20, told)


@pytest.fixture(scope="session")
def unfinished(folder: Path) -> Path:
    """A run that was not finished."""
    ones = {"w": np.ones(2, np.float32)}
    return record(folder / "open.dgrr", ones, 5, lambda step: {"grads": ones}, seal=False)


@pytest.fixture(scope="session")
def one(digits: Path, folder: Path, browser: Browser) -> Path:
    """A run with its model."""
    write_report([digits], folder / "one.html", make_run=model_run, rebuild=[0, 7])
    return folder / "one.html"


@pytest.fixture(scope="session")
def two(digits: Path, other_digits: Path, folder: Path, browser: Browser) -> Path:
    """Two runs that part."""
    write_report([digits, other_digits], folder / "two.html")
    return folder / "two.html"


@pytest.fixture(scope="session")
def trouble(troubled: Path, folder: Path, browser: Browser) -> Path:
    write_report([troubled], folder / "trouble.html")
    return folder / "trouble.html"


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that part from the one with tanh."""
    folder = tmp_path_factory.mktemp("runs")
    train(folder / "tanh", nn.Tanh())
    train(folder / "relu", nn.ReLU())
    train(folder / "longer", nn.Sequential(nn.Tanh(), nn.Tanh()))
    train(folder / "rate", nn.Tanh(), rate=0.2)
    train(folder / "first", nn.Tanh(), rate=0.2, keep="first")
    train(folder / "seed", nn.Tanh(), seed=1)
    return folder
