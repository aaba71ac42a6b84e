"""Steps of several ranks: the bits of one process, for every rule, number of ranks and way to run; and their memory."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import SGD, Adam, AdamW, EagerStep
from dgrr.runtime.optim import (
    LAMB,
    Adadelta,
    Adafactor,
    Adagrad,
    Adamax,
    Cosine,
    Lion,
    Muon,
    NAdam,
    RAdam,
    RMSprop,
    Rule,
    ops_rule,
)
from dgrr.runtime.ranks.ranked_step import RankedStep
from dgrr.runtime.ranks.shards import Shards
from dgrr.runtime.step.recipe import Recipe
from dgrr.runtime.step.training_step import StateError
from dgrr.tape import DomainError, NonFiniteError, ops
from dgrr.tape.values.spec import Spec

from ..fake_ranks import FakeRank, run_ranks

RNG = np.random.default_rng(11)
M = 9
SIZES = (1, 2, 3, 4, 5, 8)
PARAMS: dict[str, npt.NDArray[Any]] = {
    "a": RNG.standard_normal((3, 5)).astype(np.float32),
    "b": RNG.standard_normal((40, 3)).astype(np.float32),  # cut in two at least, where a rule allows it
    "c": RNG.standard_normal((40, 2)),
    "scale": np.array(0.5, np.float32),
    "none": np.zeros((0, 3), np.float32),
    "unused": np.ones(3),
    "frozen": np.ones(4, np.float32),
}
STATE: dict[str, npt.NDArray[Any]] = {"mean": np.zeros(40, np.float32), "kept": np.ones(2), "count": np.array(7)}
BATCHES = [tuple(RNG.standard_normal((2, 40)).astype(np.float32) for _ in range(M)) for _ in range(2)]


def loss_fn(p: Any, x: Any, ctx: Any) -> Any:
    """Parameters of two dtypes, draws of each micro-batch's own, a running mean and a metric."""
    ctx.update("mean", ctx.state["mean"] * 0.5 + ops.reduce_mean(x, 0) * 0.5)
    h = ops.tanh(ops.matmul(ctx.random.dropout(x, 0.25) - ctx.state["mean"], p["b"])) @ p["a"]
    wide = ops.reduce_mean(ops.matmul(ops.cast(x, "float64"), p["c"]) ** 2.0)
    loss = ops.reduce_mean(h * h) * p["scale"] + ops.cast(wide, "float32") + ops.reduce_sum(p["none"])
    return loss, ctx.state, {"wide": wide}


@ops_rule("shape_minded@1")
def ShapeMinded(p: Any, g: Any, *, lr: Any = 0.1) -> Any:  # noqa: N802
    """A rule of a user's own, which is given whole parameters: its step depends on their size."""
    return p - lr * g / float(max(1, p.value.size))


def one_process(recipe: Recipe) -> tuple[list[float], str, EagerStep]:
    step = EagerStep(loss_fn, PARAMS, recipe, STATE, seed=3)
    return [float(step(batch)) for batch in BATCHES], step.digest(), step


def of_ranks(recipe: Recipe, size: int, *, eager: bool = False) -> list[tuple[list[float], str, RankedStep]]:
    def run(rank: FakeRank) -> tuple[list[float], str, RankedStep]:
        step = RankedStep(loss_fn, PARAMS, recipe, rank, model_state=STATE, seed=3)
        step = step.op_by_op() if eager else step
        losses = [float(step(batch[step.own.start : step.own.stop])) for batch in BATCHES]
        return losses, step.digest(), step

    return run_ranks(size, run)


RULES: Mapping[str, Any] = {
    "sgd": SGD(0.1),
    "momentum": SGD(Cosine(0.1, 5), momentum=0.9, nesterov=True),
    "sgd@2": SGD(0.1, momentum=0.9, maximize=True),
    "adam": Adam(0.01),
    "adamw": AdamW(0.01),
    "adadelta": Adadelta(0.1),
    "adafactor": Adafactor(),
    "adagrad": Adagrad(0.1),
    "adamax": Adamax(),
    "lamb": LAMB(0.01),
    "lion": Lion(),
    "muon": {"[abc]": Muon(), "*": Adam(0.1)},
    "nadam": NAdam(),
    "radam": RAdam(),
    "rmsprop": RMSprop(0.01, momentum=0.5, centered=True),
    "own": ShapeMinded(),
    "groups": {"[bc]": Adam(0.01), "a": LAMB(), "*": SGD(0.5, momentum=0.5)},
}


def test_ranks_run_what_comes_seldom_op_by_op_with_the_bits_of_one_process() -> None:
    recipe = Recipe(SGD(0.1), 2, order="tree")
    batches = [tuple(np.full((n, 40), 0.5 + k, np.float32) for k in range(2)) for n in (1, 2, 3, 4)] * 2
    alone = EagerStep(loss_fn, PARAMS, recipe, STATE, seed=3)
    expected = [float(alone(batch)) for batch in batches], alone.digest(), 2

    def run(rank: FakeRank) -> tuple[list[float], str, int]:
        step = RankedStep(loss_fn, PARAMS, recipe, rank, model_state=STATE, seed=3)
        losses = [float(step(batch[step.own.start : step.own.stop])) for batch in batches]
        return losses, step.digest(), len(step._known)

    assert run_ranks(2, run) == [expected] * 2


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_any_number_of_ranks_ends_with_the_bits_of_one_process(rule: Rule) -> None:
    recipe = Recipe(rule, M, order="tree", frozen=["frozen"])
    losses, digest, _ = one_process(recipe)
    for size in SIZES:
        found = of_ranks(recipe, size, eager=size != 3)  # captured once, as that takes longer
        assert {(tuple(each), end) for each, end, _ in found} == {(tuple(losses), digest)}, size


@pytest.mark.parametrize(
    "more", [{"clip_norm": 0.05}, {"clip_value": 0.01, "ema": 0.9}, {"clip_norm": float("inf"), "clip_value": 0.1}]
)
@pytest.mark.parametrize("eager", [True, False])
def test_clipping_averages_and_what_is_told_of_a_step_are_those_of_one_process(more: Any, eager: bool) -> None:
    recipe = Recipe(Adam(0.01), M, order="tree", frozen=["frozen"], **more)
    losses, digest, one = one_process(recipe)
    for size in (2, 5):
        for found, end, step in of_ranks(recipe, size, eager=eager):
            assert (found, end) == (losses, digest)
            assert (step.norm, step.scale, step.metrics) == (one.norm, one.scale, one.metrics)
            assert step.loss.tobytes() == one.loss.tobytes() and step.is_finite


def test_the_optimizer_state_is_shared_out() -> None:
    """Of an elementwise rule each of n ranks holds 1/n but for the ends of lines."""
    params = {"w": np.zeros((64, 100), np.float32), "v": np.zeros(300, np.float32)}
    whole = 2 * sum(a.nbytes for a in params.values())

    def run(rank: FakeRank) -> int:
        step = RankedStep(lambda p, x: ops.reduce_sum(p["w"]), params, Recipe(Adam(), M, order="tree"), rank)
        return sum(array.nbytes for name, array in step.state.items() if "/" in name)

    for size in SIZES:
        held = run_ranks(size, run)
        assert sum(held) == whole
        assert max(held) <= whole / size + 2 * 64


def test_shards_are_cut_at_lines_or_at_the_nearer_end_of_what_must_stay_whole() -> None:
    specs = {"w": Spec((100,), np.dtype(np.float32)), "x": Spec((9,), np.dtype(np.float64))}  # 448 and 128 bytes
    assert Shards(specs, lambda name: True, 3).bounds == [0, 192, 384, 576]
    assert Shards(specs, lambda name: name == "x", 3).bounds == [0, 0, 448, 576]
    assert Shards(specs, lambda name: False, 4).bounds == [0, 0, 448, 448, 576]
    pieces = [Shards(specs, lambda name: True, 3).pieces(rank) for rank in range(3)]
    assert pieces == [[("w", 0, 48, False)], [("w", 48, 96, False)], [("w", 96, 100, False), ("x", 0, 9, True)]]


def test_a_value_that_is_not_finite_stops_all_ranks_before_anything_is_changed() -> None:
    bad = list(BATCHES[0])
    bad[7] = bad[7] * np.float32(np.nan)

    def run(rank: FakeRank) -> tuple[str, bool]:
        step = RankedStep(loss_fn, PARAMS, Recipe(Adam(), M, order="tree"), rank, model_state=STATE)
        before = step.digest()
        with pytest.raises(NonFiniteError) as error:
            step(tuple(bad)[step.own.start : step.own.stop])
        return str(error.value), step.digest() == before

    first, second, third = run_ranks(3, run)
    assert first == second and first[1] and third[1]
    assert first[0] == "a value or gradient of another rank's micro-batches, or a mean over all, is not finite"
    assert third[0].endswith("80 NaN of 80 elements"), "the rank that had it names the value"


def test_values_that_are_not_finite_may_be_recorded() -> None:
    def grown(p: Any, x: Any) -> Any:
        return ops.reduce_sum(p["w"] * x)

    recipe = Recipe(SGD(1.0), 2, order="tree", on_nonfinite="record")

    def run(rank: FakeRank) -> tuple[bool, float]:
        step = RankedStep(grown, {"w": np.ones(40, np.float32)}, recipe, rank)
        step((np.full(40, 1e38, np.float32) * 3,))
        return step.is_finite, float(step.params["w"][0])

    assert run_ranks(2, run) == [(False, -np.inf)] * 2


def test_ranks_that_compute_different_things_are_told_so() -> None:
    def routed(p: Any, batch: Any) -> Any:
        return ops.reduce_sum(p[next(iter(batch))] * next(iter(batch.values())))

    params = {"a": np.ones(2), "b": np.ones(2)}

    def run(rank: FakeRank) -> str:
        step = RankedStep(routed, params, Recipe(SGD(0.1), 2, order="tree"), rank)
        with pytest.raises(DomainError) as error:
            step(({"ab"[rank.rank]: np.ones(2)},))
        return str(error.value)

    assert run_ranks(2, run) == [
        f"ranks: rank {rank}: expected gradients, changes of the model's state and metrics of the same names on every "
        f"rank, got here [['{name}'], [], []]; let the loss of each micro-batch give the same ones"
        for rank, name in enumerate("ab")
    ]


def test_of_a_single_micro_batch_the_state_is_what_it_leaves_and_must_be_of_floats_too() -> None:
    recipe = Recipe(Adam(0.01), 1, order="tree")
    one = EagerStep(loss_fn, PARAMS, recipe, STATE, seed=3)
    step = RankedStep(loss_fn, PARAMS, recipe, FakeRank.alone(), model_state=STATE, seed=3)
    assert one(BATCHES[0][0]) == step(BATCHES[0][:1])
    assert one.model_state["mean"].any() and one.digest() == step.digest()

    def counting(p: Any, x: Any, ctx: Any) -> Any:
        ctx.update("count", ops.cast(ops.cast(ctx.state["count"], "float64") + 1.0, "int64"))
        return ops.reduce_sum(p["a"]), ctx.state

    step = RankedStep(counting, PARAMS, recipe, FakeRank.alone(), model_state=STATE)
    with pytest.raises(DomainError, match="^order='tree': model state 'count': expected float32 or float64"):
        step(BATCHES[0][:1])


def test_a_chain_too_many_ranks_and_other_batches_are_refused() -> None:
    with pytest.raises(DomainError) as error:
        RankedStep(loss_fn, PARAMS, Recipe(SGD(0.1), 4), FakeRank.alone())
    assert str(error.value) == (
        "ranks: expected order='tree', which gives the same bits on any number of ranks, got 'chain'; write "
        "Trainer(…, accumulate=4, order='tree', ranks=…)"
    )
    step = RankedStep(loss_fn, PARAMS, Recipe(SGD(0.1), 2, order="tree"), FakeRank.alone(), model_state=STATE)
    with pytest.raises(DomainError, match="^batch: expected a tuple of this rank's 2 micro-batches, got 1$"):
        step(BATCHES[0][:1])
    with pytest.raises(StateError, match="state: expected the names"):
        step.load_state_dict({"params": step.params, "state": {}, "model_state": step.model_state})


@pytest.mark.long
def test_a_state_of_any_number_of_ranks_is_taken_over_by_any_other() -> None:
    recipe = Recipe({"[bc]": Adam(0.01), "*": NAdam()}, M, order="tree", ema=0.5)
    one = EagerStep(loss_fn, PARAMS, recipe, STATE, seed=3)
    for batch in BATCHES:
        one(batch)

    def half(rank: FakeRank) -> Any:
        step = RankedStep(loss_fn, PARAMS, recipe, rank, model_state=STATE, seed=3)
        step(BATCHES[0][step.own.start : step.own.stop])
        return step.state_dict()

    for first, then in ((2, 3), (4, 1), (1, 5)):
        saved = run_ranks(first, half)[0]

        def rest(rank: FakeRank, saved: Any = saved) -> tuple[str, dict[str, bytes]]:
            step = RankedStep(loss_fn, PARAMS, recipe, rank, model_state=STATE, seed=3)
            step.load_state_dict(saved)
            for batch in BATCHES[1:]:
                step(batch[step.own.start : step.own.stop])
            return step.digest(), {name: array.tobytes() for name, array in step.averages().items()}

        averages = {name: one.state[f"ema/{name}"].tobytes() for name in PARAMS}
        assert run_ranks(then, rest) == [(one.digest(), averages)] * then
