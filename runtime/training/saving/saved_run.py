"""A run between two steps: what checkpoints hold of it, and what it takes back from them."""

from typing import Any

from ....base.system import FilePath
from ....tape import NUMERICS
from ...step.state_digest import state_digest
from ...step.training_step import StateError
from ..batch_stream import Cursor
from ..callback_list import CallbackList
from ..step_runner import StepRunner
from .checkpoint import Checkpoint, CheckpointError, read_checkpoint, write_checkpoint


class SavedRun:
    """What does the steps of a run, the callbacks that have a state, and how far both have come.

    Args:
        runner: has the arrays that steps change.
        callbacks: those of its trainer.
        writes: whether this process writes the files; other ranks give the first what they have.
    """

    def __init__(self, runner: StepRunner, callbacks: CallbackList, *, writes: bool) -> None:
        self.runner, self.callbacks, self.writes = runner, callbacks, writes
        self.steps = 0
        """Steps done since the beginning of the run."""
        self.loss: float | None = None
        """Of the last step."""

    @property
    def law(self) -> dict[str, Any]:
        """What decides the run besides its data."""
        step = self.runner.step
        return {"numerics": NUMERICS, "seed": step.seed, **step.recipe.law}

    def save(self, path: FilePath, cursor: Cursor | None) -> None:
        """Save the run, and how far the fit in progress has come. All ranks call it. Raises OSError."""
        callbacks, arrays = self.callbacks.state(), self.runner.step.whole_arrays()
        if self.writes:
            digest = state_digest(arrays["params"], arrays["state"], arrays["model_state"])
            write_checkpoint(path, Checkpoint(self.law, self.steps, self.loss, cursor, digest, arrays, callbacks))

    def load(self, path: FilePath) -> Checkpoint:
        """Go back to where a checkpoint was saved.

        Raises CheckpointError, and changes nothing, if it is of another law or model, or a callback refuses its state.
        """
        checkpoint = read_checkpoint(path)
        for name, value in self.law.items():
            saved = checkpoint.law.get(name)
            if saved != value:
                raise CheckpointError(f"load: {str(path)!r}: {name}: it was saved with {saved}, this run has {value}")
        before = self.callbacks.state()
        try:
            self._take_over(path, checkpoint)
        except CheckpointError:
            self.callbacks.load_state(before)
            raise
        self.steps, self.loss = checkpoint.steps, checkpoint.loss
        return checkpoint

    def _take_over(self, path: FilePath, checkpoint: Checkpoint) -> None:
        try:
            self.callbacks.load_state(checkpoint.callbacks)
        except Exception as error:  # of the callbacks' own
            text = f"load: {str(path)!r}: a callback does not take its state: {type(error).__name__}: {error}"
            raise CheckpointError(text) from error
        try:
            self.runner.step.load_state_dict(checkpoint.arrays)
        except StateError as error:
            raise CheckpointError(f"load: {str(path)!r} belongs to another model: {error}") from None
