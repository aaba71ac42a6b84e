"""In which order what micro-batches give is added, and which consecutive ones of them a rank computes.

The tree over m micro-batches is made level by level: neighbours (0, 1), (2, 3), … are added, then the sums likewise;
an odd one at the end of a level passes up unchanged. So each of its sums spans ``[i * w, (i + 1) * w)``, cut off at m,
with w a power of two, and consecutive micro-batches make only few sums that are whole.
"""

from collections.abc import Callable
from typing import Any, Generic

from typing_extensions import TypeVar

from ...base.runs.completed_step import Order
from ...tape.errors import DomainError
from ...tape.record.op import OPS

T = TypeVar("T", default=Any)


def added(a: Any, b: Any) -> Any:
    """The sum of two Vars or tensors, by the kernel of `add`."""
    return OPS["add"](a, b)


class Sums(Generic[T]):
    """Sums of what consecutive micro-batches give, each made as soon as both of its parts are there.

    Args:
        order: "tree" keeps at most about ``2 * log2(count)`` sums, "chain" one.
        count: the micro-batches of a step.
        first: the first of those that are given here.
        add: what adds.
    """

    def __init__(self, order: Order, count: int, first: int = 0, add: Callable[[T, T], T] = added) -> None:
        self._chain, self._count, self._add, self._next = order == "chain", count, add, first
        self._kept: list[tuple[int, T]] = []
        self._stops: list[int] = []

    def put(self, term: T, stop: int | None = None) -> None:
        """What the next micro-batch gives, or the sum of what all up to ``stop`` give."""
        start, self._next = self._next, self._next + 1 if stop is None else stop
        self._kept.append((start, term))
        while len(self._kept) > 1 and self._joins(self._kept[-2][0], self._kept[-1][0]):
            _, right = self._kept.pop()
            left, before = self._kept.pop()
            self._kept.append((left, self._add(before, right)))

    def _joins(self, left: int, right: int) -> bool:
        """Whether the sum from ``left`` on and the last one, from ``right`` on, are the two parts of one."""
        width = right - left
        return self._chain or (left % (2 * width) == 0 and self._next == min(left + 2 * width, self._count))

    @property
    def partials(self) -> list[T]:
        """The sums that are not parts of another yet, in order."""
        return [term for _, term in self._kept]

    @property
    def spans(self) -> list[range]:
        """Of which micro-batches each of them is the sum."""
        starts = [start for start, _ in self._kept]
        return [range(*pair) for pair in zip(starts, [*starts[1:], self._next], strict=True)]

    @property
    def total(self) -> T:
        """The sum of all, once all are there."""
        (total,) = self.partials
        return total


def range_of(count: int, rank: int, size: int) -> range:
    """Which of ``count`` micro-batches rank ``rank`` of ``size`` computes: ``count * rank // size`` up to the next's.

    Raises DomainError for more ranks than micro-batches, which would leave some without any.

    >>> [list(range_of(5, rank, 2)) for rank in range(2)]
    [[0, 1], [2, 3, 4]]
    """
    if not 1 <= size <= count:
        raise DomainError(f"ranks: expected 1 to {count} of them, one for each of accumulate={count}, got {size}")
    return range(count * rank // size, count * (rank + 1) // size)


def spans_of(count: int, own: range) -> list[range]:
    """The sums of the tree over ``count`` micro-batches that a range makes whole: its maximal aligned subtrees.

    >>> spans_of(8, range(1, 7))
    [range(1, 2), range(2, 4), range(4, 6), range(6, 7)]
    """
    sums = Sums[None]("tree", count, own.start, lambda a, b: None)
    for _ in own:
        sums.put(None)
    return sums.spans
