"""What records calls of bodies, by the name of the op."""

from collections.abc import Callable, Mapping
from typing import Any

from .scan import scan

RECORDS: Mapping[str, Callable[..., Any]] = {"scan": scan}


def record_call(tape: Any, op: str, *call: Any) -> Any:
    """What an op that runs bodies does on a tape."""
    return RECORDS[op](tape, *call)
