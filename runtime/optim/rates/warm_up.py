"""A rise in front of another schedule."""

from dataclasses import dataclass

from ....tape import ops
from ....tape.record.kinds.values import Values
from ..kinds import COUNT, FRACTION
from .functions import FunctionSchedule
from .held import HeldRate
from .schedules import Rise, Schedule

OF_FORMULA = Values(
    "a schedule of a formula (others stand behind a Linear in Joined)",
    lambda given: given.formula is not None and not given.is_set,
    [FunctionSchedule(ops.sqrt), HeldRate(0.1)],
)


@dataclass(frozen=True)
class WarmUp(Schedule, kinds={"schedule": OF_FORMULA, "steps": COUNT, "start": FRACTION}):
    """A linear rise to the first rate of another schedule, which begins after it::

        count < steps:  schedule(0) * (start + (1 - start) * count / steps)
        otherwise:      schedule(count - steps)

    So the wrapped schedule's count is 0 at count ``steps``. Warm-ups may be nested.

    Source: Goyal and others (2017), arXiv:1706.02677; torch.optim.lr_scheduler.SequentialLR of a LinearLR and the
        schedule; optax.warmup_cosine_decay_schedule.

    Args:
        schedule: what follows: one of a formula, as `Cosine`; others follow a rise in `Joined`.
        steps: steps of the rise (``total_iters`` in PyTorch's LinearLR).
        start: the share of the rate at count 0 (``start_factor`` in PyTorch's LinearLR).

    >>> from dgrr.runtime.optim import Cosine, WarmUp
    >>> schedule = WarmUp(Cosine(1.0, steps=10), steps=4)
    >>> [schedule(count) for count in (0, 1, 4, 9, 14)]
    [0.0, 0.25, 1.0, 0.5, 0.0]
    """

    schedule: Schedule
    steps: int
    start: float = 0.0

    @property
    def within(self) -> tuple[Schedule, list[Rise]]:
        """As `Schedule.within`, behind its own rise."""
        schedule, rises = self.schedule.within
        return schedule, [Rise(self.steps, self.start), *rises]
