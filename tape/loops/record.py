"""What records calls of bodies, by the name of the op."""

from collections.abc import Callable, Mapping
from typing import Any

from .record_once import checkpoint, cond
from .scan import scan
from .while_loop import while_loop

RECORDS: Mapping[str, Callable[..., Any]] = {
    "scan": scan,
    "while_loop": while_loop,
    "cond": cond,
    "checkpoint": checkpoint,
}


def record_call(tape: Any, op: str, *call: Any) -> Any:
    """What an op that runs bodies does on a tape."""
    return RECORDS[op](tape, *call)
