"""The trace of one fit: opened before its first step, told of every step, sealed when the fit ends well."""

from pathlib import Path as FilePath
from typing import Any

from ...completed_step import CompletedStep
from ..captured.captured_step import CapturedStep
from ..step.batch import leaves
from ..step.eager import EagerStep
from ..step.evaluate import NonFiniteError
from .recorder_protocol import Mode, Path, Recorder, open_recorder, resume_recorder

CLIP_VALUE = "clip_value"
"""The event that holds the bound of clipping by value, which no step records."""


class Journal:
    """A context that seals the trace at its end, or at a non-finite value; another error leaves it readable.

    Args:
        path: of the trace; None records nothing.
        record, seed: of the run.
        loaded: the steps done before, where the run goes on from a checkpoint; else None.
    """

    def __init__(self, path: Path | None, record: Mode, seed: int, loaded: int | None) -> None:
        self._path, self._record, self._seed, self._loaded = path, record, seed, loaded
        self._recorder: Recorder | None = None

    def begin(self, step: EagerStep | CapturedStep) -> None:
        """Open the trace, or go on with it, unless that was done; ``step`` is in the state before the next step."""
        if self._path is None or self._recorder is not None:
            return
        rule = step.recipe.rule
        run: dict[str, Any] = {"record": self._record, "seed": self._seed, **step.arrays}
        if self._loaded:
            self._recorder = resume_recorder(self._path, steps=self._loaded, rule=rule, **run)
            return
        self._recorder = open_recorder(self._path, rule=rule, overwrite=self._loaded == 0, **run)
        if step.recipe.clip_value is not None:
            self._recorder.event(CLIP_VALUE, repr(step.recipe.clip_value))

    def step(self, number: int, step: EagerStep | CapturedStep, batch: Any) -> None:
        """Record the step just done. The batch of an accumulated one is recorded as all its arrays in their order."""
        if self._recorder is None:
            return
        recipe, scale = step.recipe, step.scale
        done = CompletedStep(
            step=number,
            loss=step.loss,
            hyper=recipe.rule.hyperparameters(number + 1),
            grads=step.consumed,
            params=step.params,
            state=step.state,
            model_state=step.model_state,
            batch=batch if recipe.accumulate == 1 else tuple(leaves(batch)),
            clip=None if recipe.clip_norm is None or scale is None else (recipe.clip_norm, scale),
            micro_batches=recipe.accumulate,
        )
        self._recorder.step(done)

    def commit(self) -> None:
        """Bring what was recorded to the disk."""
        if self._recorder is not None:
            self._recorder.commit()

    def end(self, step: EagerStep | CapturedStep) -> None:
        """Seal the trace; one that an earlier process has sealed stays as it is."""
        if self._path is None:
            return
        if self._recorder is None and self._loaded is not None and FilePath(self._path).exists():
            return
        self.begin(step)
        assert self._recorder is not None, "begun"
        self._recorder.seal()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is None or kind is None:
            return
        if issubclass(kind, NonFiniteError):
            recorder.seal()
        else:
            recorder.close()
