"""Segments of the arena are exchanged as soon as they are whole: with the same bits, and before all is computed."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, EagerStep
from dgrr.runtime.ir.graph import IRGraph
from dgrr.runtime.ir.passes import add_early
from dgrr.runtime.lower.bind import Bound
from dgrr.runtime.ranks import shards
from dgrr.runtime.ranks.ranked_step import RankedStep
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import ops

from ..runtime.fake_ranks import FakeRank, run_ranks

M, LAYERS = 7, 6
RNG = np.random.default_rng(2)
PARAMS = {f"w{i}": RNG.standard_normal((16, 16)) / 4 for i in range(LAYERS)}
BATCHES = [tuple(RNG.standard_normal((3, 16)) for _ in range(M)) for _ in range(3)]
RECIPE = Recipe(Adam(0.01), M, order="tree", clip_norm=0.5)
CUT = Recipe(Adam(0.01), M, order="tree")
"""A recipe by which parameters may be cut."""


def loss_fn(p: Any, x: Any) -> Any:
    for i in range(LAYERS):
        x = ops.tanh(x @ p[f"w{i}"])
    return ops.reduce_mean(x * x)


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters of 12 KiB lie in four segments."""
    monkeypatch.setattr(shards, "SEGMENT", 2048)


def train(
    rank: FakeRank, recipe: Recipe = RECIPE, *, overlap: bool = True, eager: bool = False
) -> tuple[list[float], str]:
    rank.overlap = overlap
    step = RankedStep(loss_fn, PARAMS, recipe, rank)
    step = step.op_by_op() if eager else step
    return [float(step(batch[step.own.start : step.own.stop])) for batch in BATCHES], step.digest()


@pytest.mark.parametrize("recipe", [RECIPE, CUT], ids=["clipped", "cut"])
@pytest.mark.parametrize("options", [{}, {"overlap": False}, {"eager": True}], ids=["overlap", "none", "eager"])
def test_segments_change_no_bit(recipe: Recipe, options: dict[str, bool]) -> None:
    """The norm of all gradients too, which adds those of the parameters in their order."""
    alone = EagerStep(loss_fn, PARAMS, recipe)
    expected = [float(alone(batch)) for batch in BATCHES], alone.digest()
    for size in (1, 2, 5):
        assert run_ranks(size, lambda rank: train(rank, recipe, **options)) == [expected] * size


def test_the_exchange_of_the_last_layers_begins_while_the_first_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(rank: FakeRank) -> list[Any]:
        told = list[Any]()
        run_plan, scatter = Bound.run, rank.scatter
        first: list[int] = []

        def noted_run(self: Bound, begin: int = 0, stop: int | None = None) -> None:
            first.append(begin)
            run_plan(self, begin, stop)

        def noted_scatter(*given: Any) -> Any:
            told.append(first[-1])
            return scatter(*given)

        monkeypatch.setattr(rank, "scatter", noted_scatter, raising=True)
        monkeypatch.setattr(Bound, "run", noted_run)
        train(rank)
        return told

    (begun,) = run_ranks(1, run)
    assert len(begun) == 4 * len(BATCHES)
    stretches = begun[:4]
    assert stretches == sorted(stretches) and len(set(stretches)) == 4  # each behind another stretch of the plan


def test_an_addition_stands_behind_the_last_of_its_terms() -> None:
    text = """graph "late"
  %0: float32[] input "x"
  #0 %1: float32[] = neg(%0)
  #1 %2: float32[] = exp(%0)
  #2 %3: float32[] = log(%0)
  #3 %4: float32[] = add(%1, %2)
  #4 %5: float32[] = add(%4, %0)
  #5 %6: float32[] = add(%5, %3)
  output "y" = %6"""
    early = add_early(IRGraph.parse(text))
    assert [node.id for node in early.nodes] == [0, 1, 3, 4, 2, 5]
