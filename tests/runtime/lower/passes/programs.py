"""Programs of small losses with some passes and without, which train as the eager step does."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dgrr.runtime import SGD, CapturedStep, EagerStep
from dgrr.runtime.lower.compile import PASSES
from dgrr.runtime.lower.program import Program
from dgrr.runtime.optim import Rule
from dgrr.runtime.step.recipe import Recipe

from ..models import history

Loss = Callable[[Any, Any], Any]
VIEWS = ("aliases", "strides")
"""Choices without which everything is copied, so that a pass has little to see."""


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


PARAMS = {"w": normal(6, 6), "b": normal(6), "v": normal(5, 6), "s": normal(), "long": normal(9), "flat": normal(1, 6)}
BATCH = normal(5, 6)


def programs(
    loss: Loss, *passes: str, params: Mapping[str, Any] = PARAMS, batch: Any = BATCH, rule: Rule | None = None
) -> tuple[Program, Program]:
    """The program with views alone, and with some passes besides; both checked against the eager step."""
    recipe = Recipe(rule or SGD(0.1))
    expected = history(EagerStep(loss, params, recipe), [batch, batch])
    assert not any(isinstance(seen[0], type) for seen in expected), "the model must train"
    made: list[Program] = []
    for on in (set(VIEWS), {*VIEWS, *passes}):
        step = CapturedStep(loss, params, recipe, without_passes=set(PASSES) - on)
        assert history(step, [batch, batch]) == expected
        assert step.plan.overlaps() == []
        made.append(step.lowered)
    return made[0], made[1]


def kernels(program: Program) -> Counter[str]:
    return Counter(op.kernel.name for op in program.ops)


def change(loss: Loss, *passes: str, **options: Any) -> dict[str, int]:
    """How many more (or fewer) calls of each kernel there are with some passes."""
    before, after = map(kernels, programs(loss, *passes, **options))
    return {name: after[name] - before[name] for name in before | after if after[name] != before[name]}
