"""What can go wrong with a trace, as exceptions and warnings."""

from ...base.errors import DgrrError, NonFiniteError
from ..file_version import TraceFileError
from .verdict import Verdict


class InvalidTraceError(TraceFileError):
    """A trace cannot be read as asked. `verdict` says why, `offset` where in the file (or None)."""

    def __init__(self, verdict: Verdict, text: str, offset: int | None = None) -> None:
        at = "" if offset is None else f" (at byte {offset})"
        super().__init__(f"{verdict.value}: {text}{at}", verdict.exit_code)
        self.verdict = verdict
        self.text = text
        self.offset = offset


class DamageError(InvalidTraceError):
    """A frame is not whole. Whether that is a torn tail or corruption depends on what stands behind it."""

    def __init__(self, text: str, offset: int) -> None:
        super().__init__(Verdict.CORRUPT, text, offset)


class NotRecordedError(DgrrError, LookupError):
    """The value asked for was not recorded in this trace; it is never guessed."""


class TraceWriteError(DgrrError):
    """A trace cannot be begun, or a write or fsync failed and the writer has stopped."""


class NonFiniteStepError(NonFiniteError):
    """A loss or gradient is not finite: `step`, `tensor` and flat `element` (None: the loss) say where."""

    def __init__(self, step: int, tensor: str, element: int | None, value: float) -> None:
        at = "" if element is None else f" at flat element {element}"
        super().__init__(
            f"recorder.step: expected a finite loss and finite gradients, got {value} in '{tensor}'{at} of "
            f"step {step}; nothing of it was written. Lower the learning rate, clip, or check the batch"
        )
        self.step = step
        self.tensor = tensor
        self.element = element
        self.value = value


class UnsealedTraceWarning(UserWarning):
    """A trace that was never sealed is being read: its run died, was stopped, or is still running."""


class RepeatedStepWarning(UserWarning):
    """A resumed run computes a step differently from what was recorded before."""
