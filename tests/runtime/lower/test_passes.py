"""Each pass by itself: where it applies and does, where it must not, with the bits of the eager step."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, CapturedStep, EagerStep
from dgrr.runtime.lower.compile import PASSES, without
from dgrr.runtime.lower.program import Program
from dgrr.runtime.optim import Rule
from dgrr.runtime.recipe import Recipe
from dgrr.tape import DomainError, ops
from dgrr.tape.numerics.chain import Chain
from dgrr.tape.numerics.gemm import Product
from dgrr.tape.table import OPS

from .models import history

Loss = Callable[[Any, Any], Any]
VIEWS = ("aliases", "strides")
"""Choices without which everything is copied, so that a pass has little to see."""


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


PARAMS = {"w": normal(6, 6), "b": normal(6), "v": normal(5, 6), "s": normal(), "long": normal(9), "flat": normal(1, 6)}
BATCH = normal(5, 6)
BIG = normal(50, 60)
ANY: Mapping[str, Any] = {"big": BIG, "c": normal(60), "s": normal()}


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


# ------------------------------------------------------------------ the graph


def test_equal_expressions_are_computed_once() -> None:
    assert (
        change(lambda p, x: (ops.tanh(x @ p["w"]) * ops.tanh(x @ p["w"])).sum(), "common-subexpressions")["tanh"] == -1
    )


@pytest.mark.parametrize(
    "loss",
    [
        lambda p, x: (ops.scale(p["w"], 2.0) * ops.scale(p["w"], -2.0)).sum(),
        lambda p, x: (ops.scale(p["w"], 0.0) + ops.scale(p["w"], -0.0)).sum(),
        lambda p, x: ((p["v"] - x) * (x - p["v"])).sum(),
    ],
    ids=["other attributes", "another zero", "another order"],
)
def test_different_expressions_stay_apart(loss: Loss) -> None:
    before, after = programs(loss, "common-subexpressions")
    assert kernels(before)["scale"] + kernels(before)["sub"] == kernels(after)["scale"] + kernels(after)["sub"]


def test_what_no_result_needs_is_dropped() -> None:
    def loss(p: Any, x: Any) -> Any:
        ops.exp(p["w"])
        return (x @ p["w"]).sum()

    assert change(loss, "dead-code")["exp"] == -1


def test_checks_and_updates_are_needed() -> None:
    gone = change(lambda p, x: (x @ p["w"]).sum(), "dead-code", rule=Adam(0.1))
    assert not {"finite", "adam_step", "step_inc", "bias_corr"} & gone.keys()


# ------------------------------------------------------------------ unit factors


def test_products_by_one_are_dropped() -> None:
    """One of the model; of the backward pass, one by the loss's cotangent and one by the model's constant."""
    assert change(lambda p, x: (ops.tanh(x @ p["w"]) * 1.0 * x).sum(), "unit-factors")["mul"] == -3


@pytest.mark.parametrize(
    "loss",
    [
        lambda p, x: ((p["v"] * x)[2:4] * 1.0).sum(),
        lambda p, x: (((p["v"] * x) * 1.0)[2:4] * 1.0 * x[:2]).sum(),
        lambda p, x: ((p["v"] * x).reshape(30)[7:19] * 1.0 * x.reshape(30)[:12]).sum(),
        lambda p, x: (((p["v"] * x)[1:][1:] * 1.0)[1:] * 1.0).sum(),
    ],
    ids=["a part", "a part of a product", "a part of a view", "parts of parts"],
)
def test_a_part_times_one_is_that_part(loss: Loss) -> None:
    assert change(loss, "unit-factors")["mul"] < 0


def test_other_products_stay() -> None:
    ones = np.ones((5, 6), np.float32)
    ones[2, 3] = 2

    def loss(p: Any, x: Any) -> Any:
        return ops.reduce_mean(p["v"] * 1.5 * ones * x)

    assert "mul" not in change(loss, "unit-factors")


def test_the_gradient_of_a_product_is_no_parameter_that_is_overwritten() -> None:
    """d/da of sum(a * b) is b times 1: b as it was before the step."""
    params = {"a": normal(4), "b": normal(5)[:4]}
    for rule in (SGD(0.1), Adam(0.1)):
        programs(lambda p, x: (p["a"] * p["b"]).sum(), "unit-factors", "grouped-updates", params=params, rule=rule)


# ------------------------------------------------------------------ losses


def labelled(p: Any, batch: Any) -> Any:
    x, labels = batch
    return ops.cross_entropy(x @ p["w"], labels)


LABELS = BATCH, np.array([5, 0, 2, 2, 1])


def test_cross_entropy_and_its_gradient_are_one_call() -> None:
    assert change(labelled, "cross-entropy", batch=LABELS) == {
        "cross_entropy_rows": -1, "cross_entropy_grad": -1, "cross_entropy_rows_with_grad": 1,
    }  # fmt: skip


def test_each_cross_entropy_is_joined_with_its_own_gradient() -> None:
    def loss(p: Any, batch: Any) -> Any:
        x, labels = batch
        return labelled(p, batch) + ops.cross_entropy(x @ p["w"], labels[::-1]) + ops.cross_entropy(x + p["b"], labels)

    assert change(loss, "cross-entropy", batch=LABELS)["cross_entropy_rows_with_grad"] == 3


def test_a_weight_that_comes_later_keeps_the_gradient_apart() -> None:
    def loss(p: Any, batch: Any) -> Any:
        return labelled(p, batch) * ops.tanh(p["s"])

    assert change(loss, "cross-entropy", batch=LABELS) == {}


def test_a_loss_without_a_gradient_stays() -> None:
    def loss(p: Any, batch: Any) -> Any:
        x, labels = batch
        return ops.cross_entropy(x, labels) * p["s"]

    assert change(loss, "cross-entropy", batch=LABELS) == {}


# ------------------------------------------------------------------ epilogues


def epilogues(loss: Loss) -> Counter[str]:
    """How many products have which epilogue."""
    _, after = programs(loss, "epilogues")
    found = [op.words for op in after.ops if isinstance(op.words, Product)]
    return Counter({name: n for name in ("bias", "relu", "mask") if (n := sum(getattr(w, name) for w in found))})


FUSED: dict[str, tuple[Loss, dict[str, int]]] = {
    "bias": (lambda p, x: ops.tanh(x @ p["w"] + p["b"]).sum(), {"bias": 1}),
    "bias first": (lambda p, x: ops.tanh(p["b"] + x @ p["w"]).sum(), {"bias": 1}),
    "bias of one row": (lambda p, x: ops.tanh(x @ p["w"] + p["flat"]).sum(), {"bias": 1}),
    "relu": (lambda p, x: (ops.relu(x @ p["w"]) * x).sum(), {"relu": 1}),
    "layer": (lambda p, x: (ops.relu(ops.linear(x, p["w"], p["b"])) * x).sum(), {"bias": 1, "relu": 1}),
    "reshaped": (lambda p, x: (ops.relu((x @ p["w"]).reshape(30)) * x.reshape(30)).sum(), {"relu": 1}),
    "two layers": (
        lambda p, x: (ops.relu(ops.relu(ops.tanh(p["v"]) @ p["w"] + p["b"]) @ p["w"].T) * x).sum(),
        {"bias": 1, "relu": 2, "mask": 1},
    ),
    "relu once": (lambda p, x: (ops.relu(ops.relu(x @ p["w"])) * x).sum(), {"relu": 1}),
    "bias after relu": (lambda p, x: (ops.relu(x @ p["w"]) + p["b"]).mean(), {"relu": 1}),
    "one bias of two": (lambda p, x: ops.tanh(x @ p["w"] + p["b"] + p["flat"]).sum(), {"bias": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_what_follows_a_product_joins_it(name: str) -> None:
    loss, expected = FUSED[name]
    assert epilogues(loss) == expected


NOT_FUSED: dict[str, Loss] = {
    "another reader of the product": lambda p, x: (ops.relu(h := x @ p["w"]) * h).sum(),
    "a reader of a part of the product": lambda p, x: (ops.relu(h := x @ p["w"]) * x).sum() + h[0].sum(),
    "a part": lambda p, x: ops.relu((x @ p["w"])[1:3]).sum(),
    "reversed": lambda p, x: ops.relu((x @ p["w"])[::-1]).sum(),
    "transposed": lambda p, x: ops.relu((x @ p["w"]).T).sum(),
    "bias down the columns": lambda p, x: ops.tanh(x @ p["w"] + p["v"][:, :1]).sum(),
    "a number": lambda p, x: ops.tanh(x @ p["w"] + p["s"]).sum(),
    "a whole matrix": lambda p, x: ops.tanh(x @ p["w"] + p["v"]).sum(),
    "part of a longer row": lambda p, x: ops.tanh(x @ p["w"] + p["long"][:6]).sum(),
    "a later part of a row": lambda p, x: ops.tanh(x @ p["w"] + p["long"][3:]).sum(),
    "a row of a matrix": lambda p, x: ops.tanh(x @ p["w"] + p["w"][2]).sum(),
    "a row reversed": lambda p, x: ops.tanh(x @ p["w"] + p["b"][::-1]).sum(),
    "the product itself": lambda p, x: ops.tanh((h := x @ p["w"]) + h).sum(),
    "a bias made later": lambda p, x: ops.tanh(x @ p["w"] + ops.exp(p["b"])).sum(),
    "a mask made later": lambda p, x: OPS["where_positive"](x @ p["w"], ops.tanh(p["v"])).sum(),
    "the product is the mask": lambda p, x: OPS["where_positive"](x, (x @ p["w"])).sum() + p["s"],
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_FUSED)
def test_what_does_not_fit_stays_apart(name: str) -> None:
    assert epilogues(NOT_FUSED[name]) == {}


def test_a_mask_that_is_ready_joins() -> None:
    def loss(p: Any, x: Any) -> Any:
        mask = ops.tanh(p["v"])
        return OPS["where_positive"](x @ p["w"], mask).sum()

    assert epilogues(loss) == {"mask": 1}


def test_a_product_that_is_an_output_stays() -> None:
    """With all gradients asked for, that of a hidden layer is an output before and after its mask."""

    def loss(p: Any, x: Any) -> Any:
        return (ops.relu(x @ p["w"]) @ p["w"]).sum()

    step = CapturedStep(loss, PARAMS, Recipe(SGD(0.1)))
    step(BATCH)
    plans = step.record(BATCH)
    masks = {
        kind: [isinstance(op.words, Product) and op.words.mask for op in plans.executable(kind).bound.plan.program.ops]
        for kind in ("step", "dense")
    }
    assert (sum(masks["step"]), sum(masks["dense"])) == (1, 0)


# ------------------------------------------------------------------ chains


def chains(loss: Loss, **options: Any) -> list[list[str]]:
    """The kernels of each chain."""
    _, after = programs(loss, "chains", params=ANY, **options)
    return [[link.kernel.name for link in op.words.links] for op in after.ops if isinstance(op.words, Chain)]


def test_neighbours_over_many_elements_become_one_op() -> None:
    found = chains(lambda p, x: ops.tanh(ops.sigmoid(p["big"] * x) - x).mean(), batch=BIG)
    assert found[0] == ["mul", "sigmoid", "sub", "tanh"]


def test_what_only_a_chain_reads_has_no_memory_of_its_own() -> None:
    _, after = programs(lambda p, x: ops.relu(ops.neg(ops.neg(p["big"]))).mean(), "chains", params=ANY, batch=BIG)
    made = next(op for op in after.ops if isinstance(op.words, Chain))
    assert isinstance(made.words, Chain)
    assert (len(made.outputs), made.words.local) == (1, 2)


def test_what_others_read_is_an_output_of_the_chain() -> None:
    _, after = programs(
        lambda p, x: ops.exp(h := ops.tanh(p["big"])).mean() + h.mean(), "chains", params=ANY, batch=BIG
    )
    made = next(op for op in after.ops if isinstance(op.words, Chain))
    assert isinstance(made.words, Chain)
    assert (len(made.outputs), made.words.local) == (2, 0)


def test_few_elements_make_no_chain() -> None:
    params = {"big": normal(32, 64), "s": normal()}
    before, after = programs(lambda p, x: ops.tanh(ops.exp(p["big"])).mean(), "chains", params=params, batch=BIG)
    assert kernels(before) == kernels(after)


def test_a_chain_ends_at_what_is_no_neighbour() -> None:
    found = chains(
        lambda p, x: ops.exp(ops.tanh(p["big"]) - ops.tanh(p["big"]).sum(1, keepdims=True)).mean(), batch=BIG
    )
    assert not any("sum_rows" in chain for chain in found)
    assert not any("tanh" in chain and "exp" in chain for chain in found)


@pytest.mark.parametrize("at", [(0, 0), (49, 59), (25, 3)])
def test_an_element_of_what_a_chain_makes_is_read_behind_it(at: tuple[int, int]) -> None:
    """Its block may come after the block that reads it."""

    def loss(p: Any, x: Any) -> Any:
        y = ops.tanh(p["big"] * x)
        return (y * y[at].broadcast_to((50, 60))).mean()

    for chain in chains(loss, batch=BIG):
        assert not {"tanh", "copy"} <= set(chain)


def test_an_element_made_before_is_repeated_in_a_chain() -> None:
    found = chains(lambda p, x: ops.exp(p["big"] * p["s"].broadcast_to((50, 60))).mean(), batch=BIG)
    assert ["copy", "mul", "exp"] in [chain[:3] for chain in found]


def test_types_are_mixed_in_a_chain() -> None:
    def loss(p: Any, x: Any) -> Any:
        wide = ops.where(p["big"] > x, ops.cast(p["big"], np.float64), ops.cast(x, np.float64))
        return ops.cast(ops.exp(wide), np.float32).mean()

    assert chains(loss, batch=BIG)[0] == ["less", "to_float64", "to_float64", "where", "exp", "to_float32"]


# ------------------------------------------------------------------ grouped updates


def used(*names: str) -> Loss:
    return lambda p, x: sum(ops.cast(ops.tanh(p[name]).sum() * (i + 1), np.float64) for i, name in enumerate(names))


THREE = {"a": normal(3), "b": normal(70), "c": normal(2, 2)}


@pytest.mark.parametrize(
    ("rule", "name"), [(SGD(0.1), "sgd_step"), (Adam(0.1), "adam_step"), (SGD(0.1, 0.5), "sgd_momentum_step")]
)
def test_neighbouring_updates_and_their_checks_are_one_call(rule: Rule, name: str) -> None:
    assert change(used("a", "b", "c"), "grouped-updates", params=THREE, rule=rule) == {name: -2, "finite": -2}


@pytest.mark.parametrize(
    ("params", "loss", "calls"),
    [
        (THREE, used("a", "c"), 2),
        ({**THREE, "b": normal(4).astype(np.float64)}, used("a", "b", "c"), 3),
        ({**THREE, "b": normal(0, 4)}, used("a", "b", "c"), 3),
        ({"a": normal(3), "b": normal(3)}, lambda p, x: ops.tanh(p["a"] + p["b"]).sum(), 2),
        ({"a": normal(3, 4), "b": normal(4)}, lambda p, x: (ops.tanh(x @ p["a"].T).sum() + ops.tanh(p["b"]).sum()), 1),
        ({"a": normal(1)}, used("a"), 1),
    ],
    ids=["an unused one between", "another type between", "an empty one between", "one gradient for two",
         "a transposed gradient", "one parameter"],
)  # fmt: skip
def test_updates_that_cannot_be_joined(params: Any, loss: Loss, calls: int) -> None:
    _, after = programs(loss, "grouped-updates", params=params, batch=normal(5, 4), rule=Adam(0.1))
    assert kernels(after)["adam_step"] == calls


def test_an_unused_parameter_splits_a_group_in_two() -> None:
    params = {name: normal(3) for name in "abcde"}
    _, after = programs(used("a", "b", "d", "e"), "grouped-updates", params=params, rule=Adam(0.1))
    assert kernels(after)["adam_step"] == 2


def test_a_gradient_that_is_the_batch_is_not_moved() -> None:
    """d/da of sum(a * x) is x times 1, and the batch stays where it is."""
    params = {"a": normal(5, 4), "b": normal(5, 4)}
    batch = normal(5, 4), normal(4, 5).T
    _, after = programs(
        lambda p, x: (p["a"] * x[0]).sum() + (p["b"] * x[1]).sum(),
        "unit-factors", "grouped-updates", params=params, batch=batch,
    )  # fmt: skip
    assert kernels(after)["sgd_step"] == 2


# ------------------------------------------------------------------ names


def test_passes_are_known_by_name() -> None:
    assert without([]) == frozenset(PASSES)
    assert without(["chains"]) == frozenset(PASSES) - {"chains"}
    with pytest.raises(DomainError, match=r"^passes: expected names among common-subexpressions, .*, got 'loops'$"):
        without(["loops"])
    assert all(PASSES.values())
