"""The first step at which two traces differ: by bisection where their chains allow it, else step by step."""

from collections.abc import Callable

from .steps import Pair, StepDifference


def first_divergent(pair: Pair) -> tuple[int, StepDifference] | None:
    """The first step that differs, and what differs in it.

    Two traces of one digest and one `state_every` are bisected along their state chains if no bit may differ: O(log N)
    reads, which trust the stored links. A part of a run has a chain of its own.
    """
    a, b = pair.a, pair.b
    if pair.policy.bitwise and pair.one_digest and a.header.state_every == b.header.state_every and not pair.first:
        step = bisect(len(pair.steps), lambda k: a[k].link != b[k].link)
        return None if step is None else (step, pair.step(step))
    return next(((k, found) for k in pair.steps if (found := pair.step(k))), None)


def bisect(length: int, differs: Callable[[int], bool]) -> int | None:
    """The first number below `length` for which `differs`, which stays true once it is.

    >>> bisect(10, lambda k: k >= 7), bisect(10, lambda k: False)
    (7, None)
    """
    if not length or not differs(length - 1):
        return None
    low, high = 0, length - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if differs(middle) else (middle + 1, high)
    return low
