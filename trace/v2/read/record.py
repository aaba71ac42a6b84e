"""What a whole frame says, checked against the declaration of its type."""

from collections.abc import Callable
from typing import Any

from ..errors import InvalidTraceError
from ..format.frames import FRAMES
from ..format.layout import BodyExtent, FrameLayout
from ..format.limits import Limits
from ..format.step import StepRecord
from ..verdict import Verdict
from .source import Frame


def read_record(
    layout: FrameLayout, limits: Limits, frame: Frame, step: Callable[[], StepRecord | None] = lambda: None
) -> tuple[Any, list[BodyExtent]]:
    """What a frame says, and the tensors of its body; nothing of a type that is not known.

    `step`: gives the STEP before it, of which it may tell more.

    Raises:
        InvalidTraceError: `corrupt`: a length is not the derived one, or a field has an impossible value.
    """
    declared = FRAMES.get(frame.type)
    if declared is None:
        return None, []
    record = declared.front(layout).decode(frame.step, frame.front, frame.offset, limits)
    try:
        extents = declared.body(layout, record, step)
        declared.holds(layout, record)
    except ValueError as error:
        raise InvalidTraceError(Verdict.CORRUPT, f"{declared.name} {frame.step}: {error}", frame.offset) from error
    expected = sum([e.nbytes for e in extents])
    if frame.body_length != expected:
        text = f"the body of {declared.name} {frame.step} has {frame.body_length} bytes, expected {expected}"
        raise InvalidTraceError(Verdict.CORRUPT, text, frame.offset)
    return record, extents
