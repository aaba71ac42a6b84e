"""Each pass by itself: where it applies and does, where it must not, with the bits of the eager step."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, capture
from dgrr.runtime.lower.compile import PASSES, without
from dgrr.runtime.lower.program import Program
from dgrr.runtime.optim import Rule
from dgrr.tape import DomainError, ops

from .programs import BATCH, Loss, change, kernels, normal, programs

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


# ------------------------------------------------------------------ grouped updates


def used(*names: str) -> Loss:
    return lambda p, x: sum(ops.cast(ops.tanh(p[name]).sum() * (i + 1), np.float64) for i, name in enumerate(names))


THREE = {"a": normal(3), "b": normal(70), "c": normal(2, 2)}


@pytest.mark.parametrize(
    ("rule", "name"), [(SGD(0.1), "sgd_step"), (Adam(0.1), "adam_step"), (SGD(0.1, 0.5), "sgd_momentum_step")]
)
def test_neighbouring_updates_and_their_checks_are_one_call(rule: Rule, name: str) -> None:
    assert change(used("a", "b", "c"), "grouped-updates", params=THREE, rule=rule) == {name: -2, "finite": -2}


def test_joined_calls_are_worth_threads_for_all_that_they_do() -> None:
    before, after = programs(used("a", "b", "c"), "grouped-updates", params=THREE, rule=Adam(0.1))

    def work(program: Program, name: str) -> list[int]:
        return [op.work for op in program.ops if op.kernel.name == name and op.element == np.float32]

    for name in ("adam_step", "finite"):
        assert len(work(before, name)) == 3
        assert work(after, name) == [sum(work(before, name))]


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


def test_of_parameters_with_one_gradient_the_second_is_updated_alone() -> None:
    params = {name: np.ones(5, np.float32) for name in "abcd"}
    x = normal(3, 5)

    def loss(p: Any, x: Any) -> Any:
        return ((x + p["a"] + p["b"]) * p["c"]).sum() + (p["d"] * x).sum()

    steps = [capture(loss, params, Adam(0.1), x, without_passes=names) for names in ((), ("grouped-updates",))]
    calls = [[op.kernel.name for op in step.lowered.ops].count("adam_step") for step in steps]
    assert calls == [3, 4]
    assert steps[0].replay(3).tolist() == steps[1].replay(3).tolist() and steps[0].digest() == steps[1].digest()
