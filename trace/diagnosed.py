"""What is worth a look in a recorded run: what its trainer says of it, as far as the trace has what that is said of."""

from contextlib import suppress

import numpy as np

from ..base.diagnosis import Looks, Remark, clipping, is_looked_at
from .v2.errors import InvalidTraceError, NotRecordedError
from .v2.read.reader import TraceReader


def diagnosed(trace: TraceReader) -> tuple[Remark, ...]:
    """What is worth a look; nothing of a step that is damaged, and of gradients nothing where none are recorded."""
    found = list[Remark]()
    with suppress(InvalidTraceError, NotRecordedError):  # what is wrong with the file, `validate` says
        found += _of_gradients(trace)
    with suppress(InvalidTraceError, NotRecordedError):
        scales = [1.0 if view.clip is None else view.clip[1] for view in trace]
        found += clipping(np.array(scales))
    return tuple(found)


def _of_gradients(trace: TraceReader) -> list[Remark]:
    if not (trace.header.mode.has_gradients and len(trace)):
        return []
    frozen = trace.schema.frozen
    start = trace.keyframe(0)
    names = [spec.name for spec in trace.schema.tensors[: trace.schema.params] if spec.name not in frozen]
    looks = Looks({name: start[name] for name in names})
    for step in range(len(trace)):
        if is_looked_at(step):
            looks.add(step, trace.gradients(step))
    return looks.findings()
