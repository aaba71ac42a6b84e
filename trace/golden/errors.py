"""What can be wrong with a golden file, or with the run that is held against it."""

from ...base.errors import DgrrError
from ..comparing.result import Comparison


class GoldenError(DgrrError):
    """A golden file that a run does not agree with, or that cannot be read or written."""


class GoldenDriftWarning(UserWarning):
    """A run that differs from its golden trace as another machine or library makes it differ; it passes."""


class GoldenMismatchError(GoldenError):
    """A run that is not the golden one; `comparison` says how they differ."""

    def __init__(self, comparison: Comparison) -> None:
        super().__init__(str(comparison))
        self.comparison = comparison
