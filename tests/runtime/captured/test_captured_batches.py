"""Batches of all forms, several steps in one call, and memory that stays where it is."""

import gc
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, CapturedStep, EagerStep, capture
from dgrr.runtime.optim import Cosine, Rule
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import DomainError, ShapeError, ops

from ...entered import entered
from ..stepping import MODEL, RULES, Batch, batch_of, loss_fn, new_step, outcome, same_training

# ------------------------------------------------------------------ batches


def test_batches_of_another_shape_are_captured_once_and_kept() -> None:
    step, eager = new_step(Adam()), EagerStep(loss_fn, MODEL.init(0), Recipe(Adam()))
    plans = {rows: step.record(batch_of(0, rows)) for rows in (6, 5, 1)}
    assert len({id(made) for made in plans.values()}) == 3
    for k, rows in enumerate((6, 5, 6, 1, 1, 5)):
        assert step(batch_of(k, rows)).tobytes() == eager(batch_of(k, rows)).tobytes()
        assert step.record(batch_of(k, rows)) is plans[rows]
        assert step.plan is plans[rows].step.bound.plan
    assert step.digest() == eager.digest()


def test_batches_of_another_shape_can_be_refused() -> None:
    step = new_step(Adam(), on_shape_change="error")
    before = step.digest()
    step(batch_of(0))
    after = step.digest()
    with pytest.raises(ShapeError) as caught:
        step(batch_of(0, 5))
    assert str(caught.value) == (
        "step: batch: expected batch[0] float32[6, 3], batch[1] int64[6] as captured, "
        "got batch[0] float32[5, 3], batch[1] int64[5]"
    )
    assert before != after == step.digest()
    step(batch_of(1))


def test_a_batch_that_the_model_refuses_leaves_the_step_as_it_was() -> None:
    step, beside = new_step(Adam()), new_step(Adam())
    step(batch_of(0))
    beside(batch_of(0))
    for wrong in ((np.zeros((6, 5), np.float32), np.zeros(6, np.int64)), (np.zeros((6, 3), np.float32),)):
        with pytest.raises((ShapeError, ValueError)):
            step(wrong)
    assert step.replay(2).tobytes() == np.array([beside(batch_of(0)) for _ in range(2)]).tobytes()
    assert step.digest() == beside.digest()


CONVERTED: dict[str, Callable[[Batch], Any]] = {
    "int32 labels": lambda b: (b[0], b[1].astype(np.int32)),
    "uint8 labels": lambda b: (b[0], b[1].astype(np.uint8)),
    "a list of both": lambda b: [b[0], b[1]],
    "another byte order": lambda b: (b[0].astype(">f4"), b[1].astype(">i8")),
    "column-major": lambda b: (np.asfortranarray(b[0]), b[1]),
    "strided": lambda b: (np.repeat(b[0], 2, axis=0)[::2], np.repeat(b[1], 3)[::3]),
    "reversed twice": lambda b: (b[0][::-1].copy()[::-1], b[1][::-1].copy()[::-1]),
    "read-only": lambda b: tuple(np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape) for a in b),
    "a subclass of arrays": lambda b: (b[0].view(np.matrix), b[1]),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("form", CONVERTED)
def test_batches_of_other_forms_are_the_same_batch(form: str) -> None:
    step, beside = new_step(Adam()), new_step(Adam())
    for k in range(3):
        assert step(CONVERTED[form](batch_of(k))).tobytes() == beside(batch_of(k)).tobytes()
    assert step.digest() == beside.digest()
    several = [CONVERTED[form](batch_of(k)) for k in range(3)]
    assert step.steps(several).tobytes() == beside.steps([batch_of(k) for k in range(3)]).tobytes()


def nested(p: Any, batch: Any) -> Any:
    inner, scale = batch["data"], batch["scale"]
    return ops.cross_entropy(MODEL(p, inner["x"] * scale), inner["y"][0]) + inner["y"][1].mean() * p["0.bias"].mean()


def nested_batch(k: int, reverse: bool = False) -> Any:
    x, y = batch_of(k)
    inner = {"x": x, "y": [y, np.full(3, k, np.float32)]}
    batch = {"data": dict(reversed(inner.items())) if reverse else inner, "scale": np.float32(1.5)}
    return dict(reversed(batch.items())) if reverse else batch


def test_nested_batches() -> None:
    batches = [nested_batch(k, reverse=k % 2 == 1) for k in range(6)]
    same_training(nested, MODEL.init(0), batches, Adam(0.1))
    step = capture(nested, MODEL.init(0), Adam(0.1), batches[0])
    eager = EagerStep(nested, MODEL.init(0), Recipe(Adam(0.1)))
    together = [nested_batch(k) for k in range(3)]
    assert step.steps(together).tobytes() == np.array([eager(batch) for batch in together]).tobytes()
    assert step.replay(2).tobytes() == np.array([eager(together[-1]) for _ in range(2)]).tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_order_of_names_in_a_batch_does_not_matter(dtype: str) -> None:
    x, y = np.arange(3).astype(dtype), np.arange(3, 6).astype(dtype)
    batches = [{"x": x, "y": y}, {"y": y, "x": x}, {"x": y, "y": x}, {"y": x, "x": y}]
    same_training(lambda p, b: (p["w"] * (b["x"] - b["y"] * b["y"])).sum(), {"w": x}, batches, SGD(0.1))


@pytest.mark.parametrize("batch", [(), {}, [], ((), {"x": ()})], ids=str)
def test_a_batch_without_arrays(batch: Any) -> None:
    params = {"w": np.linspace(1, 2, 3)}
    step = same_training(lambda p, b: (p["w"] * p["w"]).sum(), params, [batch] * 3, Adam(0.1))
    beside = EagerStep(step.loss_fn, step.params, Recipe(SGD(0.1)))
    again = capture(step.loss_fn, step.params, SGD(0.1), batch)
    assert again.steps([batch] * 2).tobytes() == np.array([beside(batch) for _ in range(2)]).tobytes()


def test_a_batch_of_one_array_and_of_a_number() -> None:
    params = {"w": np.linspace(1, 2, 3)}
    same_training(lambda p, x: (p["w"] * x).sum(), params, [np.arange(3.0), np.ones(3)], Adam(0.1))
    same_training(lambda p, x: (p["w"] * x).sum(), params, [2.0, np.float64(3), np.array(4.0)], Adam(0.1))


def weighted(p: Any, batch: Any) -> Any:
    x, y = batch.values() if isinstance(batch, dict) else batch
    return (p["w"] * (x - y * y)).sum()


FLAT: dict[str, Callable[[Any, Any], Any]] = {
    "tuple": lambda x, y: (x, y),
    "list": lambda x, y: [x, y],
    "dict": lambda x, y: {"x": x, "y": y},
}


@pytest.mark.parametrize("form", FLAT)
def test_flat_batches_are_checked_in_compiled_code(form: str) -> None:
    """They are not walked in Python, whatever holds the arrays."""
    x, y, make = np.arange(3.0), np.arange(3.0, 6.0), FLAT[form]
    step, beside = (capture(weighted, {"w": x}, SGD(0.1), make(x, y)) for _ in range(2))
    expected = [beside(make(a, b)) for a, b in ((x, y), (y, x))]
    with patch.object(step, "bind", side_effect=AssertionError("walked in Python")):
        assert [step(make(a, b)) for a, b in ((x, y), (y, x))] == expected
        for wrong in (make(x[:2], y), make(x, [3.0, 4.0, 5.0]), make(x, None), make(x[::-1], y)):
            with pytest.raises(AssertionError, match="walked in Python"):
                step(wrong)
    assert step.digest() == beside.digest()


def test_names_in_another_order_are_another_batch() -> None:
    x, y = np.arange(3.0), np.arange(3.0, 6.0)
    step = capture(weighted, {"w": x}, SGD(0.1), {"x": x, "y": y})
    eager = EagerStep(weighted, {"w": x}, Recipe(SGD(0.1)))
    for batch in ({"x": x, "y": y}, {"y": y, "x": x}, {"x": y, "y": x}):
        assert step(batch).tobytes() == eager(batch).tobytes()
    assert step.digest() == eager.digest()


# ------------------------------------------------------------------ several steps


@pytest.mark.parametrize("rule", [*RULES, Adam(Cosine(0.1, steps=5))], ids=["sgd", "adam", "scheduled"])
def test_replays_and_steps_are_single_steps(rule: Rule) -> None:
    step, beside = new_step(rule), new_step(rule)
    assert step.replay(3).tobytes() == np.array([beside(batch_of(0)) for _ in range(3)]).tobytes()
    several = [batch_of(k) for k in range(4)]
    assert step.steps(several).tobytes() == np.array([beside(batch) for batch in several]).tobytes()
    assert step.replay(2).tobytes() == np.array([beside(batch_of(3)) for _ in range(2)]).tobytes()
    assert step.steps(iter(several[:1])).shape == (1,)
    beside(several[0])
    assert step.digest() == beside.digest()


def test_several_steps_on_batches_that_lie_otherwise_are_single_steps() -> None:
    step, beside = new_step(Adam()), new_step(Adam())
    several: list[Any] = [batch_of(0), list(batch_of(1)), batch_of(2)]
    several += [(np.asfortranarray(x), y.astype(np.int32)) for x, y in [batch_of(3)]]
    assert step.steps(several).tobytes() == np.array([beside(batch) for batch in several]).tobytes()
    assert step.digest() == beside.digest()


def test_a_step_enters_few_functions() -> None:
    step, batch = new_step(Adam()), batch_of(0)
    step.replay(100)  # behind which the next look at the loss function is far away
    step.steps([batch] * 2)
    step(batch)
    alone = entered(lambda: step(batch))[1:]
    assert len(alone) <= 6, alone
    few, many = (entered(lambda n=n: step.steps([batch] * n)) for n in (2, 12))
    assert len(many) - len(few) <= 20, many  # two for each batch more


def test_no_steps_are_none() -> None:
    step = new_step(Adam())
    before = step.digest()
    assert step.replay(0).shape == step.steps([]).shape == (0,)
    assert step.digest() == before


def test_losses_of_several_steps_are_of_the_losss_type() -> None:
    step = capture(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.1), np.ones(2))
    assert step.replay(2).dtype == step.steps([np.ones(2)]).dtype == np.float64
    assert new_step(Adam()).replay(1).dtype == np.float32


def test_steps_of_unlike_batches_are_refused() -> None:
    step = new_step(Adam())
    before = step.digest()
    expected = r"^steps: batch 1: expected batch\[0\] float32\[6, 3\], .*, got batch\[0\] float32\[5, 3\], .*$"
    with pytest.raises(ShapeError, match=expected):
        step.steps([batch_of(0), batch_of(1, 5)])
    assert step.digest() == before


@pytest.mark.parametrize("kind", ["infinite", "out of range"])
def test_steps_that_fail_in_the_middle_keep_those_before(kind: str) -> None:
    step, beside = new_step(Adam()), new_step(Adam())
    x, y = batch_of(2)
    bad = (x * np.float32(np.inf), y) if kind == "infinite" else (x, y + 7)
    got = outcome(step, "steps", [batch_of(0), batch_of(1), bad, batch_of(3)])
    for k in range(2):
        beside(batch_of(k))
    assert got == outcome(beside, "__call__", bad)
    assert step.digest() == beside.digest()
    assert step(batch_of(4)).tobytes() == beside(batch_of(4)).tobytes()


def test_a_step_without_a_batch_has_nothing_to_replay() -> None:
    step = CapturedStep(loss_fn, MODEL.init(0), Recipe(Adam()))
    ways: dict[str, Callable[[], Any]] = {
        "replay": step.replay,
        "graph": lambda: step.graph,
        "loss": lambda: step.loss,
        "consumed": lambda: step.consumed,
    }
    for what, use in ways.items():
        with pytest.raises(DomainError, match=f"^{what}: expected a batch to be bound, got none; call step"):
            use()


def _traced_after(step: CapturedStep, batch: Batch, n: int) -> int:
    """Bytes that Python holds after n single steps and n in one call."""
    for _ in range(n):
        step(batch)
    step.replay(n)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.long
def test_nothing_is_allocated_by_replays() -> None:
    """Neither addresses nor Python's memory change over thousands of steps."""
    step, batch = new_step(Adam(), clip_norm=1.0), batch_of(0)
    for _ in range(10):
        step(batch)
    bound = step.record(batch).step.bound
    addresses = [memory.ctypes.data for memory in bound.memory.values()]
    table = bound.rows.tobytes()
    gc.collect()
    tracemalloc.start()
    try:
        sizes = [_traced_after(step, batch, 1000) for _ in range(8)]
    finally:
        tracemalloc.stop()
    # Not a byte for each step. The interpreter's own lists of spare objects fill slowly, and stop.
    assert min(b - a for a, b in pairwise(sizes)) < 1000
    assert [memory.ctypes.data for memory in bound.memory.values()] == addresses
    assert bound.rows.tobytes() == table
    assert step.state["step"] == 16010


def test_a_profile_trains_nothing() -> None:
    step = new_step(Adam())
    step(batch_of(0))
    before = step.digest()
    profile = step.profile(batch_of(1))
    assert step.digest() == before
    assert [call.kernel for call in profile.calls] == [op.kernel.name for op in step.lowered.ops]
