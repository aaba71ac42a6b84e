"""No pass changes a bit: random models, with every pass switched off alone and all together."""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings

from dgrr.runtime.ir.verify import SWITCH
from dgrr.runtime.lower.compile import PASSES
from dgrr.runtime.step.recipe import Recipe

from ..models import LOSSES, MODELS, MOVES, RULES, SHAPES, Model, history

pytestmark = pytest.mark.long

CHOICES: list[Sequence[str]] = [(), tuple(PASSES), *((name,) for name in PASSES)]


def check(model: Model) -> None:
    batches = [model.batch(1), model.batch(2)]
    expected = history(model.eager(), batches)
    for off in CHOICES:
        step = model.captured(off)
        assert history(step, batches) == expected, f"without {off}"
        assert step.plan.overlaps() == []
        assert step.plan.arena_bytes <= step.plan.static_bytes


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "1")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(MODELS)
def test_every_choice_of_passes_gives_the_eager_bits(model: Model) -> None:
    check(model)


@pytest.mark.parametrize("move", MOVES)
def test_every_move_alone(move: str) -> None:
    check(Model(SHAPES[3], "float32", [(move, 1, 1), ("tanh", 2, 0), (move, 3, 2)], "all", Recipe(RULES[2])))


@pytest.mark.parametrize("last", LOSSES)
def test_every_loss(last: str) -> None:
    check(Model(SHAPES[1], "float64", [("linear", 0, 0)], last, Recipe(RULES[1], clip_norm=0.1)))
