"""What is trained, as a recorder gets it before the first step."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, NamedTuple, TypeAlias, get_args

from ..arrays import Array, Arrays
from ..errors import DomainError

OnNonfinite: TypeAlias = Literal["stop", "record"]
"""Whether a loss or gradient that is not finite ends the run before it is applied, or is a value like others."""


class RuleGroup(NamedTuple):
    """A rule of an optimizer, and what it updates.

    Args:
        rule: its name and version, such as ``adam@1``.
        hyperparameters: the names of its values in ``hyper`` of each step.
        tensors: the names of the params and optimizer state that it updates; None: all of them.
    """

    rule: str
    hyperparameters: tuple[str, ...] = ()
    tensors: tuple[str, ...] | None = None


class Parent(NamedTuple):
    """The trace that a run continues: its last file chain digest, and how many of its steps come before the run."""

    root: bytes
    steps: int


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What is trained: a recorder gets it before the first step, or when it resumes. `CapturedStep.as_run` makes it.

    Args:
        params: name → float32 or float64 array, as it is now.
        state: name → array of the optimizer's state, as it is now.
        rules: what updates them, group by group: one group without ``tensors`` is a rule for all.
        numerics: the version of the arithmetic that computes the run.
        model_state: name → array of what the model keeps besides its params.
        clip_value: bound of every element of the gradients, which were clipped before they are handed over.
        seed: of the run, for people.
        on_nonfinite: whether a loss or gradient that is not finite is recorded, or raises NonFiniteStepError.
        calls: whether calls of ops are told of steps, too.
        additive: whether what is told of the way is digested by additive digests.
        parent: the trace whose run this one goes on from.
        generators: gives the state of random generators, which a keyframe keeps: at most 64 KiB.

    Raises DomainError for a bound below 0, or another choice.

    >>> import numpy as np
    >>> Run({"w": np.ones(2)}, {"step": np.array(0)}, [RuleGroup("sgd@1", ("lr",))], numerics=1).on_nonfinite
    'stop'
    """

    params: Arrays
    state: Arrays
    rules: Sequence[RuleGroup]
    _: KW_ONLY
    numerics: int
    model_state: Arrays = field(default_factory=dict[str, Array])
    clip_value: float | None = None
    seed: int = 0
    on_nonfinite: OnNonfinite = "stop"
    calls: bool = False
    additive: bool = False
    parent: Parent | None = None
    generators: Callable[[], bytes] = bytes

    def __post_init__(self) -> None:
        if self.clip_value is not None and not self.clip_value >= 0:
            raise DomainError(
                f"Run: argument 'clip_value': expected a number of at least 0 or None, got {self.clip_value!r}"
            )
        if self.on_nonfinite not in get_args(OnNonfinite):
            raise DomainError(f"Run: argument 'on_nonfinite': expected 'stop' or 'record', got {self.on_nonfinite!r}")
