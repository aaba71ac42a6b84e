"""Rows of which one of two lists is run."""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false
from typing import Any

import numpy as np

from ..engine.intrinsics import put_word, word
from ..engine.kernel import kernel, vector
from .loop import LoopWords, NestedWords, run_turns
from .places import address_of

ON_TRUE, ON_FALSE, TRUTH, RAN = range(4)
"""The words of the loop where the truth holds, and where not; which array of the table it is; where it is told which
ran."""


@kernel
def choice(table, ints, part, parts):
    """One of two loops on the same table, whose type is that of truths. ``part`` is the machine's control."""
    side = ON_FALSE if vector(table, word(ints, TRUTH), 0, 1)[0] == 0 else ON_TRUE
    put_word(word(ints, RAN), 0, side)
    return run_turns(table, word(ints, side), part)


class ChoiceWords(NestedWords):
    """The words of `choice`: those of its two loops, and which array of the table says which of them runs."""

    __slots__ = ("_ran", "inner")

    def __init__(self, on_true: LoopWords, on_false: LoopWords, truth: int) -> None:
        self.inner, self._ran = (on_true, on_false), np.zeros(1, np.int64)
        super().__init__(on_true.address, on_false.address, truth, address_of(self._ran))

    @property
    def ran(self) -> int:
        """Which of them ran last."""
        return int(self._ran[0])

    @property
    def content(self) -> list[Any]:
        """As that of all such words."""
        return [int(self.values[TRUTH]), *[words.content for words in self.inner]]
