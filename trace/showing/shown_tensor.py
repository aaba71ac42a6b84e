"""A recorded tensor of one step as people look at it: a value, a gradient, or what the step added to a value."""

from dataclasses import asdict, dataclass, field

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from ...base.arrays import Array
from ...screen.pictures import Picture
from ..json_value import Plain
from ..v2.errors import NotRecordedError
from ..v2.read.reader import TraceReader
from ..watching.expression import What


@dataclass(frozen=True)
class ShownTensor(Plain):
    """A tensor of a trace: its value before a step - that before no step stands after the last -, the gradient that the
    step was done with, or what the step added to the value.
    """

    path: str
    name: str
    what: What
    step: int
    steps: int
    """That the trace has."""
    array: Array = field(repr=False)

    @classmethod
    def of(cls, trace: TraceReader, name: str, what: What, step: int | None = None) -> "ShownTensor":
        """Of a step, else the last that is recorded.

        Raises:
            NotRecordedError: the trace holds no such tensor.
            InvalidTraceError: the file is damaged there.
        """
        found = _READ[what](trace, name, step)
        return cls(trace.path, name, what, found[0], len(trace), found[1])

    @property
    def title(self) -> str:
        """What it is of."""
        if self.what == "value":
            where = f"before step {self.step}" if self.step < self.steps else "after the last step"
            return f"{self.path}: value of {self.name} {where}"
        return f"{self.path}: {'gradient' if self.what == 'grad' else 'update'} of {self.name} at step {self.step}"

    def _told(self) -> dict[str, object]:
        return {"name": self.name, "what": self.what, "step": self.step, **asdict(Picture(self.array).summary)}

    def screen(self) -> RenderableType:
        """Its picture for a rich console."""
        return Group(Text(self.title, "bold"), Picture(self.array))


def _value(trace: TraceReader, name: str, step: int | None) -> tuple[int, Array]:
    """Before a step; else at the end, or in the last keyframe where nothing later is recorded."""
    if step is not None:
        return step, _before(trace, name, step)
    try:
        return len(trace), _before(trace, name, len(trace))
    except NotRecordedError:
        step = trace.last_keyframe(len(trace))
        return step, _before(trace, name, step)


def _before(trace: TraceReader, name: str, step: int) -> Array:
    if step < len(trace):
        return trace.tensor(name, step=step, what="before")
    return trace.tensor(name, step=step - 1, what="after")


def _grad(trace: TraceReader, name: str, step: int | None) -> tuple[int, Array]:
    step = len(trace) - 1 if step is None else step
    return step, trace.tensor(name, step=step, what="grad")


def _update(trace: TraceReader, name: str, step: int | None) -> tuple[int, Array]:
    step = len(trace) - 1 if step is None else step
    try:
        before, after = (trace.tensor(name, step=step, what=what) for what in ("before", "after"))
    except NotRecordedError:
        mode = trace.header.mode.name.lower()
        raise NotRecordedError(
            f"the update of {name!r} at step {step} is not recorded (record mode {mode!r}): it is the difference of "
            f'the values before and after the step, which Keep(..., record="full") records'
        ) from None
    if before.dtype.kind in "biu":
        return step, after.astype(np.int64) - before.astype(np.int64)
    with np.errstate(invalid="ignore", over="ignore"):
        return step, np.asarray(after - before)


_READ = {"value": _value, "grad": _grad, "update": _update}
