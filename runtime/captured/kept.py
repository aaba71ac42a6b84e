"""Which plans are kept, by the signature of their batches, and which batches are worth a plan of their own."""

import warnings
from collections.abc import Iterator
from typing import Generic, Protocol

from typing_extensions import TypeVar

from ...tape import DomainError
from ..step.batch import BatchSignature

PLAN_BYTES = 1 << 30
"""Bytes that the plans of a step may take, where nobody says how many."""

AT_ONCE = 2
"""Signatures that are captured at their first batch: full batches, and the rest of an epoch."""

OFTEN = 32
"""Batches of another signature that run op by op before it is captured: about as long as capturing takes."""

MANY = 32
"""Signatures above which there is a warning."""


class ManyShapesWarning(UserWarning):
    """Batches have so many shapes that most of them run op by op."""


class Plan(Protocol):
    """What was captured for batches of one signature."""

    @property
    def nbytes(self) -> int:
        """Of its arena and its input buffers."""
        ...


P = TypeVar("P", bound=Plan)


class KeptPlans(Generic[P]):
    """Plans by signature: as many as ``most_bytes`` hold, those that were used last.

    The first signatures are worth a plan at once, others when they have come often; and where memory is full, only in
    the place of a plan that was not used since they came first. So no two shapes push each other out in turn.
    """

    def __init__(self, what: str, most_bytes: int) -> None:
        if isinstance(most_bytes, bool) or most_bytes != int(most_bytes) or most_bytes < 0:
            raise DomainError(
                f"{what}: argument 'plan_bytes': expected a whole number of at least 0, got {most_bytes!r}"
            )
        self.most_bytes = int(most_bytes)
        self._plans, self._used = dict[BatchSignature, P](), dict[BatchSignature, int]()
        self._times, self._first = dict[BatchSignature, int](), dict[BatchSignature, int]()
        self._clock, self._warned = 0, False

    def __len__(self) -> int:
        return len(self._plans)

    def __iter__(self) -> Iterator[P]:
        return iter(self._plans.values())

    @property
    def nbytes(self) -> int:
        """What all plans take."""
        return sum(plan.nbytes for plan in self)

    def get(self, key: BatchSignature) -> P | None:
        """The plan of a signature, which is used now."""
        plan = self._plans.pop(key, None)
        if plan is not None:
            self._clock += 1
            self._plans[key], self._used[key] = plan, self._clock
        return plan

    def put(self, key: BatchSignature, plan: P) -> None:
        """Keep another plan, and drop those that were used longest ago until there is room."""
        while self._plans and self.nbytes + plan.nbytes > self.most_bytes:
            self.drop(next(iter(self._plans)))
        self._plans[key] = plan
        self.get(key)
        self._count(key)

    def drop(self, key: BatchSignature) -> None:
        """Forget a plan."""
        self._plans.pop(key, None)

    def clear(self) -> None:
        """Forget all of them."""
        self._plans.clear()

    def is_worth(self, key: BatchSignature) -> bool:
        """Whether a batch of this signature, which has come, is to run as captured."""
        if key in self._plans or len(self._plans) < AT_ONCE:
            return True
        self._count(key)
        return self._times[key] > OFTEN and self._has_room(key)

    def _has_room(self, key: BatchSignature) -> bool:
        """Whether another plan fits, or the one used longest ago was not used since this signature came first."""
        total = self.nbytes
        if total + total // len(self) <= self.most_bytes:
            return True
        return self._used[next(iter(self._plans))] < self._first[key]

    def _count(self, key: BatchSignature) -> None:
        self._clock += 1
        self._first.setdefault(key, self._clock)
        self._times[key] = self._times.get(key, 0) + 1
        if len(self._times) > MANY and not self._warned:
            self._warned = True
            warnings.warn(
                f"capture: batches of {len(self._times)} shapes have come; each is captured after {OFTEN} batches, "
                f"within plan_bytes={self.most_bytes}, and runs op by op before; pad them to a few lengths with "
                "dgrr.runtime.data.buckets",
                ManyShapesWarning,
                stacklevel=2,
            )
