"""A Python function that a launch calls, as part of a program."""

from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int64, c_void_p, cast

from .prepared_calls import Row

_IN_C = CFUNCTYPE(c_int64, *[c_int64] * 4)
"""What a row calls."""


class Called:
    """A function without arguments; where it raises, the status is 1, and `require_done` raises that.

    >>> from .prepared_calls import PreparedCalls
    >>> numbers = [3, 0]
    >>> called = Called(lambda: 6 // numbers.pop(0))
    >>> program = PreparedCalls(called)
    >>> program.run(), program.run()
    (0, 1)
    >>> called.require_done()
    Traceback (most recent call last):
    ZeroDivisionError: integer division or modulo by zero
    """

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self._raised: BaseException | None = None
        self._in_c = _IN_C(self._call)

    def rows(self) -> list[Row]:
        """The call."""
        return [[cast(self._in_c, c_void_p).value or 0, 0, 0, 1]]

    def require_done(self) -> None:
        """Raise what the last call raised."""
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised

    def _call(self, *_: int) -> int:
        try:
            self._function()
        except BaseException as error:  # whatever it is, no compiled code lets it through
            self._raised = error
            return 1
        return 0
