"""Traces that were begun and hold no step."""

from ....base.system import FilePath
from ...file_version import TraceFileError
from ..errors import InvalidTraceError
from ..verdict import Verdict
from .reader import open_reader


def is_without_steps(path: FilePath) -> bool:
    """Whether a trace was begun there of a run that ended before its first step: by an error in its loss, or killed."""
    try:
        with open_reader(path, mode="tolerate_tail") as trace:
            return len(trace) == 0
    except InvalidTraceError as error:
        return error.verdict is Verdict.TORN_TAIL
    except TraceFileError:
        return False
