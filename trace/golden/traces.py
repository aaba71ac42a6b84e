"""What a test is given as ``golden_trace``: it makes recordings, one for each golden file of the test."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.arrays import Arrays
from ...base.errors import DomainError
from .claims import claim
from .marker import Marker
from .names import SUFFIX, checked_name
from .recording import GoldenRecording


@dataclass(frozen=True, slots=True)
class GoldenTest:
    """A test that has golden traces.

    Args:
        id: the test, as the test runner names it.
        folder: of its module's golden files, below the folder of all of them.
        stem: the name of its golden file.
        present: where the traces of the run at hand are kept.
        claims: where the tests of the run note which golden files are theirs.
    """

    id: str
    folder: str
    stem: str
    present: Path
    claims: Path


class GoldenTraces:
    """Golden traces of one test: ``Trainer(…, trace=golden_trace())``.

    The golden file has the name of the test, a second one ends in ``.2``; or the name that is given. Once the test
    has come to its end, each run is held against its golden file.
    """

    def __init__(self, test: GoldenTest, marker: Marker) -> None:
        self._test, self._marker = test, marker
        self._made: dict[str, GoldenRecording] = {}
        self._unnamed = 0

    def __call__(self, name: str | None = None) -> GoldenRecording:
        """What a trainer takes as ``trace=``, for one run.

        Raises DomainError for a name that is no name of a file, or that this test or another one has used already.
        """
        stem = self._next_stem() if name is None else checked_name(name)
        whole = f"{self._test.folder}/{stem}"
        owner = claim(self._test.claims, whole, self._test.id)
        if owner != self._test.id or whole.casefold() in self._made:
            other = "this test" if owner == self._test.id else owner
            raise DomainError(
                f"golden_trace: {whole!r} is one golden file, and {other} has it already; give each a name of its own"
            )
        recording = GoldenRecording(self._test.present / f"{whole}{SUFFIX}", whole, self._marker)
        self._made[whole.casefold()] = recording
        return recording

    def _next_stem(self) -> str:
        self._unnamed += 1
        return self._test.stem if self._unnamed == 1 else f"{self._test.stem}.{self._unnamed}"

    def __iter__(self) -> Iterator[GoldenRecording]:
        """The recordings made so far."""
        return iter(self._made.values())

    def check_step(
        self,
        loss_fn: Callable[..., Any],
        params: Arrays,
        batch: Any,
        *,
        model_state: Arrays | None = None,
        seed: int = 0,
        name: str | None = None,
    ) -> None:
        """One step without an update: the loss, and the value and the gradient of every node of its tape.

        Arguments are those of `dgrr.runtime.Trainer`. Raises what ``loss_fn`` raises, and NonFiniteError for a loss
        or gradient that is not finite.
        """
        from .runs import record_step

        record_step(self(name), loss_fn, params, batch, model_state=model_state or {}, seed=seed)

    def check(self, fn: Callable[..., Any], *arrays: npt.ArrayLike, name: str | None = None) -> None:
        """A function of arrays: every value on its tape, and the gradients that arrive.

        ``fn`` takes a Var for each array and returns Vars, one or nested. Of an output that is no scalar, the
        gradient is that of the sum of its elements: its cotangent is one everywhere. Floating arrays have gradients,
        others have none.

        Raises what ``fn`` raises, GradientError if no output depends on a floating array, and NonFiniteError for an
        output or a gradient that is not finite.
        """
        from .runs import record_function

        record_function(self(name), fn, [np.asarray(array) for array in arrays])

    def steps(self, step: Any, batches: Iterable[Any], *, name: str | None = None) -> npt.NDArray[np.floating[Any]]:
        """Train a captured step on batches; the losses. Raises what the step raises."""
        from .runs import record_steps

        return record_steps(self(name), step, batches)
