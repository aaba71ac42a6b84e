"""How many steps of a fit are one launch: up to the next moment when somebody looks, and not for long."""

from collections.abc import Sequence

from .watch import Watch

SECONDS = 0.05
"""How long a launch may take: what is shown, and Ctrl-C, wait for its end."""

MOST = 64
"""Steps of a launch; more save nothing."""


UNFIT = 2.0**-5
"""Of a launch that did not come about: so much is doubled from step to step before another is tried."""


class Pace:
    """The length of the next launch; no bit of a run depends on it.

    Args:
        watch: looks at some steps.
        alone: whether somebody looks at every step.
        periods: after every so many steps somebody looks.
    """

    def __init__(self, watch: Watch, *, alone: bool, periods: Sequence[int]) -> None:
        self._watch, self._alone, self._periods, self._length = watch, alone, periods, 1.0

    def room(self, steps: int) -> int:
        """How many steps may follow at once when so many are done."""
        if self._alone:
            return 1
        return max(1, min(int(self._length), self._watch.room, *[every - steps % every for every in self._periods]))

    def took(self, seconds: float, steps: int, asked: int) -> None:
        """A launch has done so many of the steps that it was asked for, and taken so long.

        What ended it early, a batch of another kind or a look, may end the next one too.
        """
        fitting = SECONDS * steps / seconds if seconds > 0 else MOST
        length = self._length if steps == asked else steps if steps > 1 else UNFIT
        self._length = min(2 * length, MOST, max(1.0, fitting))
