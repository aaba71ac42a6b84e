"""Following a run while it is recorded."""

import os
import time
from collections.abc import Callable

from ..file_version import TraceFileError
from ..v2.errors import InvalidTraceError
from ..v2.format.constants import PARTIAL_SUFFIX
from ..v2.verdict import Verdict
from .overview import RunOverview, overview
from .state import is_written

SECONDS = 1.0
"""Between two looks at the file; longer where a look takes long."""

_SHARE = 4
"""How many times longer than a look the pause behind it is at least."""


def follow(path: str, tell: Callable[[RunOverview], None], seconds: float = SECONDS) -> str:
    """Tell of a run whenever it has more steps, until nobody writes it any more; the path that the trace has then.

    The run is the one that is being recorded at the path, `PATH.partial`, if there is one.

    Raises:
        TraceFileError, InvalidTraceError: the trace cannot be read.
    """
    final = path.removesuffix(PARTIAL_SUFFIX)
    told = -1
    while True:
        began = time.monotonic()
        found = _look(final)
        if found is not None and found.steps != told:
            told = found.steps
            tell(found)
        if found is not None and found.state != "running" and not is_written(found.path):  # a sealed one gets its name
            return found.path
        time.sleep(max(seconds, _SHARE * (time.monotonic() - began)))


def _look(final: str) -> RunOverview | None:
    """The run as its file stands now; None while its writer has not written its head."""
    partial = final + PARTIAL_SUFFIX
    try:
        return overview(partial if os.path.exists(partial) else final, whole=False)
    except InvalidTraceError as error:
        if error.verdict is Verdict.TORN_TAIL and is_written(partial):
            return None
        raise
    except TraceFileError:
        if os.path.exists(partial) or not os.path.exists(final):
            raise
        return overview(final, whole=False)  # it has got its name meanwhile
