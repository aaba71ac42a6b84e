"""Choices in plans: the plans of two sides, each a loop of one turn, of which one is run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...tape.numerics.engine.kernel import Kernel
from ...tape.numerics.prepared.choice import ChoiceWords, choice
from ...tape.numerics.sizes import Sizes
from .loop import LoopPlan
from .program import RepeatedCalls


@dataclass(frozen=True, eq=False)
class ChoicePlan(RepeatedCalls):
    """The sides take the same inputs, behind the truth, give the same results, and work in the same memory."""

    on_true: LoopPlan
    on_false: LoopPlan

    kernel = choice

    @property
    def sides(self) -> tuple[LoopPlan, LoopPlan]:
        """Both."""
        return self.on_true, self.on_false

    @property
    def versions(self) -> list[tuple[Kernel, np.dtype[Any]]]:
        """The kernels of both sides, each with its element type."""
        return [version for side in self.sides for version in side.versions]

    @property
    def work(self) -> int:
        """How long the side takes that takes longer."""
        return max(side.work for side in self.sides)

    @property
    def flops(self) -> int:
        """Arithmetic operations of the side that has more."""
        return max(side.flops for side in self.sides)

    @property
    def shared(self) -> bool:
        """Whether any call has more than one part."""
        return any(side.shared for side in self.sides)

    def with_kernels(self, kernels: Mapping[Kernel, Kernel]) -> "ChoicePlan":
        """The same choice with other kernels in the place of some."""
        return ChoicePlan(*[side.with_kernels(kernels) for side in self.sides])

    def scratch(self, strides: tuple[Sizes, ...], parts: int) -> int:
        """Bytes of the larger arena of a side."""
        return max(side.scratch(strides, parts) for side in self.sides)

    def words(self, strides: tuple[Sizes, ...]) -> ChoiceWords:
        """The words of the choice; compiles the kernels of both sides or loads them from disk."""
        on_true, on_false = [side.words(strides) for side in self.sides]
        return ChoiceWords(on_true, on_false, len(self.on_true.results))
