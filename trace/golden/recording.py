"""A run that is recorded to be held against its golden file: what a trainer takes as ``trace=``."""

from pathlib import Path
from typing import Any

from ...base.errors import DomainError
from ...base.runs.keep import Keep
from ...base.runs.run import Run
from ..comparing.policy import Policy, PolicyLike
from ..v2.format.constants import FOREIGN_NUMERICS
from ..v2.write.open_recorder import open_recorder
from ..v2.write.recorder import TraceRecorder
from .errors import GoldenError
from .marker import Marker
from .names import salt

VALUES = 32 << 10
"""Bytes of tensors of the first and the last step that a golden file of digests holds, to say how far they moved."""

OPS = 12 << 10
"""Bytes of digests of ops that a golden file of another framework holds, those of the first step in any case."""

STATE_EVERY = 4096
"""After how many of its steps the state is digested, where it is large."""


class GoldenRecording:
    """Records one run to a file, as small and as much alike as may be.

    A policy that compares bits needs digests alone, every other values, which are recorded. A run of another framework
    is held by values of the first and the last step alone, and one that has `rtol` and `atol` by sketches of the last
    step; and of its ops, which are many, those of the first step are kept, and of more while there is room. The salt
    follows from the name, and the time is 0, so that the same run on the same machine gives the same bytes.

    Args:
        path: of the file, which is replaced.
        name: of the golden file.
        marker: what of the run is recorded.
    """

    def __init__(self, path: Path, name: str, marker: Marker) -> None:
        self.path, self.name, self._marker = path, name, marker
        self.default_policy: PolicyLike = "bitwise"
        """How close a run must be of whose policy nothing is said: whoever computes it by other arithmetic sets it."""
        self._begun = False

    @property
    def policy(self) -> Policy:
        """How close the run must be to its golden trace."""
        return self._marker.policy or Policy.parse(self.default_policy)

    @property
    def level(self) -> str:
        """What is digested on the way: calls of ops tell drift from change."""
        return "op" if self.policy.drift else "layer"

    def open_recorder(self, run: Run) -> TraceRecorder:
        """The recorder of a run.

        Raises DomainError for a second run, and what that function raises.
        """
        if self._begun:
            raise DomainError(
                f"golden_trace: {self.name!r} has recorded a run already; call golden_trace() once for each run"
            )
        self._begun = True
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        keep = Keep(
            self.path,
            **self._kept(run),
            overwrite=True,
            commit_every=None,
            created_at=0,
            salt=salt(self.name),
        )
        return open_recorder(keep, run)

    def _kept(self, run: Run) -> dict[str, Any]:
        """What is kept of each step of a run."""
        if run.numerics != FOREIGN_NUMERICS:
            bits = self.policy.bitwise
            return {"record": "bare" if bits else "full", "ops": self._marker.ops, "values": VALUES if bits else 0}
        arrays = [*run.params.values(), *run.state.values(), *run.model_state.values()]
        nbytes = sum(array.nbytes for array in arrays)
        is_small, by_value = nbytes <= VALUES // 4, not (self.policy.bitwise or self.policy.by_norm)
        return {
            "record": "bare",
            "ops": OPS if self._marker.ops == "every" else self._marker.ops,
            "values": 4 * nbytes if by_value else VALUES if is_small else 0,
            "sketches": self.policy.by_norm,
            "state_every": 1 if by_value else None if is_small else STATE_EVERY,
        }

    def require_sealed(self) -> None:
        """Raise GoldenError if no run was recorded, or one that has not ended."""
        if not self._begun:
            raise GoldenError("nothing was recorded: give it to a run, as trace=golden_trace()")
        if not self.path.exists():
            raise GoldenError("the run was not finished, so nothing was compared")
