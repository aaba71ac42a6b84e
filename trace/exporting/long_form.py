"""The table of a trace that has a row for each number of each tensor."""

from collections.abc import Iterator

import numpy as np

from ...tape.values.tables import statistics
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from .columns import Coded, Columns, wide

_STATISTICS = ("norm", "min", "max", "zeros", "non-finite")
_WHAT = ("gradient", "value")
TOGETHER = 1 << 20
"""As many rows of the long form are made at once, but for the last step of them."""


class Long:
    """The long form: `step`, `tensor`, `statistic`, `value`.

    Of each step the columns of its row in the wide form, without a tensor; then the statistics of each gradient as the
    optimizer took it, and of each tensor after the step, where they are recorded.
    """

    def __init__(self, trace: TraceReader) -> None:
        self._trace = trace
        self._of_step = {name: column for name, column in wide(trace).items() if name != "step"}
        self._tensors = tuple(spec.name for spec in trace.schema.tensors)
        kinds = tuple(f"{what} {name}" for what in _WHAT for name in _STATISTICS)
        self._statistics = (*self._of_step, *kinds)
        self._tensor_code = {name: i for i, name in enumerate(self._tensors)}
        self._code = {name: i for i, name in enumerate(self._statistics)}

    def pieces(self) -> Iterator[Columns]:
        """The rows, in pieces of so many steps as make about `TOGETHER` of them; at least one."""
        rows = list[tuple[int, int, int, float]]()
        begun = False
        for place, view in enumerate(self._trace):
            rows += self._rows(place, view)
            if len(rows) >= TOGETHER:
                yield self._columns(rows)
                rows, begun = [], True
        if rows or not begun:
            yield self._columns(rows)

    def _rows(self, place: int, view: StepView) -> Iterator[tuple[int, int, int, float]]:
        for name, column in self._of_step.items():
            assert not isinstance(column, Coded)
            yield view.step, -1, self._code[name], float(column[place])
        grads = view.gradients() if self._trace.header.mode.has_gradients else {}
        for what, arrays in (("gradient", grads), ("value", view.after())):
            for tensor, array in arrays.items():
                for name, value in statistics(array).items():
                    number = np.nan if value is None else float(value)
                    yield view.step, self._tensor_code[tensor], self._code[f"{what} {name}"], number

    def _columns(self, rows: list[tuple[int, int, int, float]]) -> Columns:
        steps, tensors, kinds, values = zip(*rows, strict=True) if rows else ((), (), (), ())
        return {
            "step": np.array(steps, np.int64),
            "tensor": Coded(np.array(tensors, np.int32), self._tensors),
            "statistic": Coded(np.array(kinds, np.int32), self._statistics),
            "value": np.array(values, np.float64),
        }
