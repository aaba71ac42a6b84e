"""The validation of a fit: on which batches, and when."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, cast

from ....base.runs.completed_step import VALIDATION
from ....tape import DomainError
from ...data import Dataset, Epochs
from ..batch_stream import require_batches
from .evaluate import measured
from .forwards import Forwards

_WHERE = "fit: argument 'validation'"


class FitValidation:
    """Loss and metrics on batches of their own."""

    def __init__(self, forwards: Forwards, data: object, every: int | None) -> None:
        self._forwards, self._data = forwards, data
        self.every = every
        """After how many steps; None: after every epoch."""

    @classmethod
    def of(cls, forwards: Forwards, data: object, every: int | None, trained: object) -> Self | None:
        """What a fit on the batches ``trained`` was asked for, if anything; ``forwards`` compute it.

        Raises DomainError for what has no batches, can be iterated only once, or gives other batches to the training
        once it was iterated here; for a number of steps below 1, or without anything to validate on.
        """
        where = "fit: argument 'validate_every'"
        if every is not None and (every != int(every) or every < 1):
            raise DomainError(f"{where}: expected a whole number of at least 1, got {every!r}")
        if data is None:
            if every is not None:
                raise DomainError(f"{where}: expected validation=… beside it, got none")
            return None
        if not isinstance(data, Dataset | Epochs):
            require_batches(_WHERE, data)
            _require_again(data, trained)
        return cls(forwards, cast(Any, data), every)

    def is_due(self, steps: int) -> bool:
        """Whether to validate after so many steps."""
        return self.every is not None and steps % self.every == 0

    def figures(self, check: Callable[[], None]) -> dict[str, float]:
        """Their means, named as validation; ``check`` is called after every batch."""
        found = measured(self._forwards, _WHERE, self._data, check)
        return {VALIDATION + name: value for name, value in found.items()}


def _require_again(data: object, trained: object) -> None:
    if isinstance(data, Iterator):
        kind = type(cast(Any, data)).__name__
        raise DomainError(f"{_WHERE}: expected batches that can be iterated again, got a {kind}; pass a list of them")
    if data is trained and not isinstance(data, Sequence):
        raise DomainError(
            f"{_WHERE}: it is the object that is trained on, and iterating it may change what the training gets; pass "
            "another"
        )
