"""Where a trainer saves its run by itself, how often, and what it finds there."""

import os
from pathlib import Path

from ....base.system import FilePath
from ....tape import DomainError


class SavePlace:
    """The trainer's arguments ``checkpoint`` and ``checkpoint_every``. Raises DomainError where they do not fit."""

    def __init__(self, path: FilePath | None, every: int | None) -> None:
        where = "Trainer: argument 'checkpoint_every'"
        if every is not None and (every != int(every) or every < 1):
            raise DomainError(f"{where}: expected a whole number of at least 1, got {every!r}")
        if every is not None and path is None:
            raise DomainError(f"{where}: expected a checkpoint to save to beside it, got none")
        self.path, self.every = path, every
        self._own = False

    def is_due(self, steps: int) -> bool:
        """Whether to save after so many steps."""
        return self.every is not None and steps % self.every == 0

    def exists(self) -> bool:
        """Whether there is a checkpoint."""
        return self.path is not None and os.path.exists(self.path)

    def note(self, path: FilePath) -> None:
        """What was just saved to a path, or loaded from it, is of this run."""
        self._own = self._own or (self.path is not None and Path(path) == Path(self.path))

    def require_free(self) -> None:
        """Raise DomainError if what stands there is not of this run, which would overwrite it."""
        if not self._own and self.exists():
            raise DomainError(
                f"fit: the checkpoint {str(self.path)!r} already exists; load it to continue, or remove it"
            )
