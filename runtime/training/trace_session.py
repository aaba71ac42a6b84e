"""The trace of one fit: opened before its first step, told of every step, sealed when the fit ends well."""

from typing import Any

from ...completed_step import CompletedStep
from ..captured.captured_step import CapturedStep
from ..step.batch import batch_arrays
from ..step.eager import EagerStep
from ..step.evaluate import NonFiniteError
from .recorder_protocol import Mode, Path, Recorder, is_path, is_taken, open_recorder, resume_recorder, taken


class Journal:
    """A context that seals the trace at its end, or at a non-finite value; another error leaves it readable.

    Args:
        trace: its path, or its recorder, begun or resumed by the caller; None records nothing.
        record, seed, overwrite: of a run whose trace is given by its path.
        loaded: the steps done before, where the run goes on from a checkpoint; else None.
    """

    def __init__(
        self, trace: Path | Recorder | None, record: Mode, seed: int, loaded: int | None, *, overwrite: bool
    ) -> None:
        self._trace, self._record, self._seed, self._loaded = trace, record, seed, loaded
        self._overwrite = overwrite
        self._recorder: Recorder | None = None

    def begin(self, step: EagerStep | CapturedStep) -> None:
        """Open the trace, or go on with it, unless that was done; ``step`` is in the state before the next step."""
        if self._trace is None or self._recorder is not None:
            return
        self._recorder = self._opened(self._trace, step) if is_path(self._trace) else self._trace

    def _opened(self, path: Path, step: EagerStep | CapturedStep) -> Recorder:
        run: dict[str, Any] = {"record": self._record, "seed": self._seed, "recipe": step.recipe, **step.arrays}
        if self._loaded:
            return resume_recorder(path, steps=self._loaded, **run)
        if is_taken(path) and not self._overwrite:
            raise taken("fit", path)
        return open_recorder(path, overwrite=self._overwrite or self._loaded == 0, **run)

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
            batch=batch if recipe.accumulate == 1 else tuple(batch_arrays(batch)),
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
        if self._trace is None:
            return
        if self._recorder is None and self._loaded is not None and is_taken(self._trace):
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
