"""What is recorded of the steps as columns: a row for each step, or one for each number of each tensor.

Numbers are widened to float64, which changes none.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias, get_args

import numpy as np

from ...arrays import Array
from ...tape.values.tables import statistics
from ..v2.read.reader import Form, StepView, Trace

_STATISTICS = ("norm", "min", "max", "zeros", "non-finite")
_WHAT = ("gradient", "value")
_TOGETHER = 1 << 20
"""As many rows of the long form are made at once, but for the last step of them."""


class Coded(NamedTuple):
    """A column of words: the place of each in `words`, -1 for none."""

    codes: Array
    words: tuple[str, ...]

    def tolist(self) -> list[str | None]:
        """The word of each row."""
        return [None if code < 0 else self.words[code] for code in self.codes.tolist()]


Columns: TypeAlias = dict[str, Array | Coded]
"""Name → its numbers or words, one for each row."""


def require_form(call: str, form: str) -> None:
    """Raise ValueError for what is no form."""
    if form not in get_args(Form):
        raise ValueError(f"{call}: argument 'form': expected 'wide' or 'long', got {form!r}")


def tables(trace: Trace, form: Form) -> Iterator[Columns]:
    """The table of a form, in pieces of bounded size, at least one; all have the same columns and words."""
    if form == "wide":
        yield wide(trace)
    else:
        yield from _Long(trace).pieces()


def wide(trace: Trace) -> Columns:
    """A row for each step: its loss, its hyperparameters and what else it was told.

    Columns: `step`; `loss`; each hyperparameter, as a step's `hyper` calls it; `clip_norm` and `clip_scale`, NaN where
    gradients were not clipped by norm, if any step was; `micro_batches`; `nonfinite`.
    """
    views = list(trace)
    clips = [view.clip or (np.nan, np.nan) for view in views]
    names = list(views[0].hyper) if views else []
    hyper = [view.hyper for view in views]
    columns: Columns = {
        "step": np.array([view.step for view in views], np.int64),
        "loss": np.array([float(view.loss) for view in views], np.float64),
        **{name: np.array([told[name] for told in hyper], np.float64) for name in names},
    }
    if any(view.clip for view in views):
        columns["clip_norm"], columns["clip_scale"] = np.array(clips, np.float64).T.copy()
    columns["micro_batches"] = np.array([view.micro_batches for view in views], np.int64)
    columns["nonfinite"] = np.array([view.nonfinite for view in views], np.bool_)
    return columns


class _Long:
    """The long form: `step`, `tensor`, `statistic`, `value`.

    Of each step the columns of its row in the wide form, without a tensor; then the statistics of each gradient as the
    optimizer took it, and of each tensor after the step, where they are recorded.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._of_step = {name: column for name, column in wide(trace).items() if name != "step"}
        self._tensors = tuple(spec.name for spec in trace.schema.tensors)
        kinds = tuple(f"{what} {name}" for what in _WHAT for name in _STATISTICS)
        self._statistics = (*self._of_step, *kinds)
        self._tensor_code = {name: i for i, name in enumerate(self._tensors)}
        self._code = {name: i for i, name in enumerate(self._statistics)}

    def pieces(self) -> Iterator[Columns]:
        rows = list[tuple[int, int, int, float]]()
        begun = False
        for place, view in enumerate(self._trace):
            rows += self._rows(place, view)
            if len(rows) >= _TOGETHER:
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
