"""The ranks of a trainer: which of them writes, and that all do the same."""

from collections.abc import Mapping
from typing import Any

from ....base.runs.keep import Keep
from ....tape import DomainError
from ...ranks.exchange import Exchange
from ...ranks.same_run import agree_on_program, agree_on_run
from ..recorder_protocol import Traced
from ..saving.saved_run import SavedRun


class Peers:
    """This process among the ranks of a trainer, or alone, where nothing has to agree.

    Raises DomainError for what are no ranks, or what they cannot record.
    """

    def __init__(self, ranks: Exchange | None, trace: Traced | None) -> None:
        _require_ranks(ranks, trace)
        self._ranks = ranks
        self._unlike = True
        """Whether the programs of all are still to be compared."""

    @property
    def writes(self) -> bool:
        """Whether this process writes trace, checkpoint and progress."""
        return self._ranks is None or self._ranks.rank == 0

    def agree_on_fit(self, run: SavedRun, data: Mapping[str, object], asked: Mapping[str, object]) -> None:
        """Raise AgreementError if other ranks were asked for another fit."""
        if self._ranks is not None:
            law = {f"recipe: {name}": value for name, value in run.law.items()}
            settings = {**law, **asked, "steps done": run.steps}
            agree_on_run(self._ranks, run.steps, settings, data, run.runner.step)

    def agree_on_program(self, run: SavedRun, batch: Any) -> None:
        """Raise AgreementError if other ranks record another program; once, unless all was forgotten since."""
        if self._ranks is not None and self._unlike:
            self._unlike = False
            if not run.runner.is_eager:
                agree_on_program(self._ranks, run.steps, run.runner.step, batch)

    def forget(self) -> None:
        """Compare programs again before the next step: the run is another."""
        self._unlike = True


def _require_ranks(ranks: object, trace: Traced | None) -> None:
    if ranks is None:
        return
    if not isinstance(ranks, Exchange):
        raise DomainError(
            f"Trainer: argument 'ranks': expected what dgrr.runtime.ranks.init() returns, or None, got {ranks!r}"
        )
    if isinstance(trace, Keep) and trace.ops is not None:
        raise DomainError(
            "Trainer: argument 'trace': expected a Keep without 'ops' with ranks, of which none has all values of a "
            f"step, got ops={trace.ops!r}; replay the trace in one process to see them"
        )
