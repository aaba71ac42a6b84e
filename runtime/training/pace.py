"""How many steps of a fit are one launch: up to the next moment when somebody looks, and not for long."""

from collections.abc import Sequence

SECONDS = 0.05
"""How long a launch may take: what is shown, and Ctrl-C, wait for its end."""

MOST = 64
"""Steps of a launch; more save nothing."""


class Pace:
    """The length of the next launch; no bit of a run depends on it.

    Args:
        alone: whether somebody looks at every step.
        periods: after every so many steps somebody looks.
    """

    def __init__(self, *, alone: bool, periods: Sequence[int]) -> None:
        self._alone, self._periods, self._in_time = alone, periods, 1

    def room(self, steps: int, watched: int) -> int:
        """How many steps may follow at once when so many are done; ``watched`` is what the `Watch` has room for."""
        if self._alone:
            return 1
        return min(self._in_time, watched, *[period - steps % period for period in self._periods])

    def took(self, seconds: float, steps: int, asked: int) -> None:
        """A launch has done so many of the steps that it was asked for, and taken so long.

        One that did fewer met a batch or a look that ended it, and so may the next: it is not asked for many more.
        """
        fitting = int(SECONDS * steps / seconds) if seconds > 0 else MOST
        self._in_time = max(1, min(MOST, 2 * (self._in_time if steps == asked else steps), fitting))
