"""When the whole state is written: after so many steps or so much time, within a budget of bytes."""

import sys
from datetime import timedelta
from time import monotonic

from ....base.runs.keep import KeyframeEvery


class KeyframeSchedule:
    """Says before which steps a keyframe is due.

    With a budget, half of the keyframes that it has room for stand at the distance `every`, half of the rest at twice
    that, and so on: a long run stays within it, and a short one does not wait for its end to have them.

    Args:
        every: the distance; steps are rounded up to a multiple of `state_every`.
        budget: how many bytes all keyframes but the first may take; None: any number.
        nbytes: of one keyframe.
        state_every: a keyframe may stand only before its multiples.
        last: the step before which the last one stands; -1: none.
        written: how many were written already.
    """

    def __init__(
        self,
        every: KeyframeEvery,
        budget: int | None,
        *,
        nbytes: int,
        state_every: int,
        last: int = -1,
        written: int = 0,
    ) -> None:
        whole = every if isinstance(every, timedelta) else -(-every // state_every) * state_every
        self._every: KeyframeEvery = whole
        self._state_every = state_every
        self._left = None if budget is None else budget // max(nbytes, 1)
        self._phase = 0 if self._left is None else -(-self._left // 2)
        self._last, self._since = last, monotonic()
        for _ in range(written - 1):
            self._spend()

    def is_due(self, steps: int) -> bool:
        """Whether a keyframe is to be written now, after so many steps."""
        if self._last < 0:
            return True
        if steps % self._state_every or steps == self._last or self._left == 0:
            return False
        if isinstance(self._every, timedelta):
            return monotonic() - self._since >= self._every.total_seconds()
        return steps - self._last >= self._every

    def room(self, steps: int) -> int:
        """How many steps may be done at once, after so many, before a keyframe is due; those by the clock can wait."""
        if self._left == 0 or isinstance(self._every, timedelta):
            return sys.maxsize
        return max(1, self._last + self._every - steps)

    def wrote(self, steps: int) -> None:
        """A keyframe was written."""
        if self._last >= 0:
            self._spend()
        self._last, self._since = steps, monotonic()

    def _spend(self) -> None:
        if self._left is None:
            return
        self._left -= 1
        self._phase -= 1
        if not self._phase:
            self._every, self._phase = 2 * self._every, -(-self._left // 2)
