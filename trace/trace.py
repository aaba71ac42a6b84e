"""A trace as people hold it: what its reader reads, and how it shows itself, travels and becomes a table."""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..base.arrays import Array
from ..base.printed import facts, panel
from ..base.system import FilePath
from ..screen.curves import sparkline
from ..screen.named_arrays import NamedArrays
from ..screen.panels import folded, grid
from ..screen.plotting import curve
from ..screen.showing import counted, listed, shown_rows
from .exporting import files, frames
from .exporting.tables import Form
from .v2.format.limits import Limits
from .v2.read.locate import ReadMode
from .v2.read.reader import TraceReader, opened

_CURVE = 400
"""Steps whose losses stand for all where a trace shows itself."""


class Trace(TraceReader):
    """An open trace; made by `open_trace`. `len(trace)` steps, `trace[i]` one of them.

    `header` and `schema` say what is recorded; `sealed` whether the run was finished; `damage` is what ended
    the reading of a damaged file in the modes that allow it, or, in mode `salvage`, the first that is wrong with it.
    """

    def at(self, step: int, loss_fn: Any = None, batches: Iterable[Any] | None = None, **options: Any) -> Any:
        """The whole tape of a past step, rebuilt to the bit: a `PastStep`. See `dgrr.trace.at`."""
        from .replaying.travel import at  # numba stands behind it, which readers do without

        return at(self, step, loss_fn, batches, **options)

    def gradients(self, step: int) -> dict[str, Array]:
        """All recorded gradients of a step by name. Raises NotRecordedError in mode `digest`."""
        return NamedArrays(super().gradients(step))

    def buffers(self, step: int) -> dict[str, Array]:
        """All buffers after a step by name; empty in mode `digest`."""
        return NamedArrays(super().buffers(step))

    def keyframe(self, step: int) -> dict[str, Array]:
        """The whole state before `step` by name. Raises NotRecordedError where there is no keyframe."""
        return NamedArrays(super().keyframe(step))

    def to_pandas(self, form: Form = "wide") -> Any:
        """What is recorded of the steps, as a `pandas.DataFrame`.

        Args:
            form: "wide", a row for each step: `step`, `loss`, each hyperparameter, `clip_norm` and `clip_scale` if any
                step was clipped by norm, `micro_batches`, `nonfinite`, each metric and each figure of a validation (as
                `metric NAME` and `validation NAME` where a column has the name), NaN where a step has none; or "long",
                a row for each number: `step`, `tensor`, `statistic`, `value`. These are, without a tensor, what the
                wide form has, and then the `norm`, `min`, `max`, `zeros` and `non-finite` elements of each `gradient`,
                and of the `value` of each tensor after the step, where they are recorded.

        Raises:
            DomainError: another form.
            ModuleNotFoundError: pandas is not installed (extra `pandas`).
            InvalidTraceError: a step cannot be read.
        """
        return frames.to_pandas(self, form)

    def to_arrow(self, form: Form = "wide") -> Any:
        """The same as a `pyarrow.Table` (extra `arrow`)."""
        return frames.to_arrow(self, form)

    def to_polars(self, form: Form = "wide") -> Any:
        """The same as a `polars.DataFrame` (extra `polars`)."""
        return frames.to_polars(self, form)

    def to_parquet(self, path: FilePath, form: Form = "wide") -> None:
        """Write the same to a file, as `dgrr.trace.export(trace, path, "parquet")` does."""
        files.export(self, path, "parquet", form=form)

    def __str__(self) -> str:
        return listed(repr(self)[1:-1], self._about())

    def _repr_html_(self) -> str:
        """Its loss and what it is of, in a notebook."""
        tensors = [(t.role.name.lower(), t.dtype, str(t.shape), t.name) for t in self.schema.tensors]
        first, last = shown_rows(len(tensors))
        rows = tensors[: first.stop], tensors[last.start :] if last else [], last.start - first.stop
        table = grid(("role", "dtype", "shape", "name"), *rows)
        return panel(repr(self)[1:-1], facts(self._about()), folded(counted(len(tensors), "tensor"), table))

    def _about(self) -> dict[str, object]:
        found: dict[str, object] = {}
        steps = list(self._locator.there)
        if steps:
            places = sorted({steps[int(i)] for i in np.linspace(0, len(steps) - 1, min(len(steps), _CURVE))})
            losses = [float(self[i].loss) for i in places]
            found["loss"] = f"{losses[0]:.6g} to {losses[-1]:.6g}  {sparkline(losses)}"
        found["rules"] = ", ".join(f"{g.rule} ({', '.join(g.hyperparameters)})" for g in self.schema.rules)
        found["seed"] = self.header.seed
        found["digest"] = f"{self.header.algorithm.name}, state every {counted(self.header.state_every, 'step')}"
        return found | ({"root": self.root.hex()} if self.sealed else {})

    def plot(self, ax: Any = None) -> Any:
        """The loss of every step as a plot; gives matplotlib's axes.

        Args:
            ax: axes to draw on; None makes new ones. Runs are drawn over each other on the axes of the first.

        Raises ModuleNotFoundError where matplotlib is not installed, which comes with ``pip install "dgrr[plot]"``.
        """
        ax = curve("Trace.plot", self.loss, ax, label=os.path.basename(self.path))
        ax.set_ylabel("loss")
        ax.legend()
        return ax


def open_trace(path: FilePath, *, limits: Limits | None = None, mode: ReadMode = "strict") -> Trace:
    """Open a trace of version 2 for reading; use it in a `with` statement.

    If PATH is missing, `PATH.partial` is read, with a warning; or, if that is sealed and its writer was killed before
    renaming it, it is renamed now. `strict` refuses damage, `tolerate_tail` reads up to a torn tail, `point_in_time` up
    to any damage. `salvage` reads all that is intact, also after damage: steps keep their numbers, `Trace.missing`
    lists the missing ones, asking for one of these raises NotRecordedError, and `Trace.chained` says which belong
    together. This mode proves nothing: `validate` and `replay` judge the file as it is, and `compare` refuses it.

    Raises:
        InvalidTraceError: the file is damaged or of another version; in mode `salvage` only if header or SCHEMA are.
        TraceFileError: the file cannot be opened.
    """
    return Trace(*opened(path, limits, mode))
