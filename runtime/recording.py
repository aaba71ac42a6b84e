"""What a trainer asks of a recorder, and how it finds one without knowing the trace format.

The runtime does not import the trace package. A recorder is found through the entry point group
``dgrr.recorder``, under which the package that writes traces registers its ``open_recorder``.
"""

from collections.abc import Mapping
from importlib.metadata import entry_points
from os import PathLike
from typing import Any, Literal, Protocol

from ..tape import NUMERICS, DgrrError
from .evaluate import Array, Arrays
from .optim import Rule

GROUP = "dgrr.recorder"
Mode = Literal["digest", "grads"]
Path = str | PathLike[str]


class RecorderError(DgrrError, RuntimeError):
    """No package that can write a trace is installed."""


class Recorder(Protocol):
    """Writes one training run."""

    def step(
        self,
        *,
        step: int,
        loss: Array,
        hyper: Mapping[str, float],
        grads: Arrays,
        params: Arrays,
        state: Arrays,
        batch: Any,
    ) -> None:
        """Record one update: the gradients as the optimizer consumed them, the state after it."""

    def seal(self) -> None:
        """Finish the trace and give it its final name."""

    def close(self) -> None:
        """Stop without finishing: what was recorded stays readable."""


def open_recorder(path: Path, *, record: Mode, params: Arrays, state: Arrays, rule: Rule, seed: int) -> Recorder:
    """A recorder for a run that starts from ``params`` and ``state``. Raises RecorderError if there is none."""
    found = list(entry_points(group=GROUP))
    if not found:
        raise RecorderError("trace: expected an installed package that records traces, got none; reinstall dgrr")
    make: Any = found[0].load()
    recorder: Recorder = make(
        path,
        record=record,
        params=params,
        state=state,
        rule=rule.rule,
        hyperparameters=list(rule.hyperparameters()),
        numerics=NUMERICS,
        seed=seed,
    )
    return recorder
