"""Steps in common: what two ops begin with is computed once, and nothing else."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, EagerStep, capture
from dgrr.runtime.ir.graph import IRGraph, Role, Value
from dgrr.runtime.lower.array_layout import ArrayLayout
from dgrr.runtime.lower.passes import shared_steps as shared
from dgrr.runtime.lower.program import LoweredOp, Program, StoragePlace
from dgrr.runtime.optim.kernels import assign
from dgrr.runtime.step.recipe import Recipe
from dgrr.tape import ops
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.ops.elementwise.kernels.basic import neg
from dgrr.tape.values.spec import Spec

X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
PARAMS = {"w": np.ones((4, 4), np.float32), "v": np.full((4, 4), 0.5, np.float32)}


def kernels_of(loss_fn: Any, **options: Any) -> list[str]:
    return [op.kernel.name for op in capture(loss_fn, PARAMS, SGD(0.1), X, **options).lowered.ops]


def two_variances(p: Any, x: Any) -> Any:
    """Two ops that differ in their last division only."""
    y = ops.linear(x, p["w"])
    return ops.reduce_sum(ops.var(y, 0) + ops.var(y, 0, correction=1))


def other_rows(p: Any, x: Any) -> Any:
    return ops.reduce_sum(ops.var(ops.linear(x, p["w"]), 0) + ops.var(ops.linear(x, p["v"]), 0))


def forward(kernels: list[str]) -> int:
    """How often a mean is taken and a product formed before the sums of squares."""
    return kernels.count("mul") + kernels.count("sub")


def test_a_common_beginning_is_computed_once() -> None:
    shared, apart = kernels_of(two_variances), kernels_of(two_variances, without_passes=["shared-steps"])
    assert len(shared) < len(apart)
    assert forward(shared) < forward(apart)


def test_other_operands_share_nothing() -> None:
    assert kernels_of(other_rows) == kernels_of(other_rows, without_passes=["shared-steps"])


@pytest.mark.parametrize("loss_fn", [two_variances, other_rows])
@pytest.mark.parametrize("without", [[], ["shared-steps"]])
def test_the_bits_are_those_of_eager_steps(loss_fn: Any, without: list[str]) -> None:
    eager, step = (
        EagerStep(loss_fn, PARAMS, Recipe(SGD(0.1))),
        capture(loss_fn, PARAMS, SGD(0.1), X, without_passes=without),
    )
    for _ in range(3):
        assert eager(X) == step(X)
    assert eager.digest() == step.digest()


def test_what_an_update_overwrites_is_not_shared_across_it() -> None:
    """A value of the model's state is read before and after it was given a new value by the step itself."""

    def loss_fn(p: Any, x: Any, ctx: Any) -> Any:
        state = ctx.state["s"]
        return (ops.var(state, 0) * p["w"][0]).sum(), {"s": state * 0.5 + ops.var(state, 0, correction=1)[0]}

    state = {"s": X[:, :4].copy()}
    eager = EagerStep(loss_fn, PARAMS, Recipe(SGD(0.1)), state)
    step = capture(loss_fn, PARAMS, SGD(0.1), X, model_state=state)
    for _ in range(3):
        assert eager(X) == step(X)
    assert eager.digest() == step.digest()


def test_verify_accepts_shared_steps() -> None:
    report = capture(two_variances, PARAMS, SGD(0.1), X).verify(replays=2)
    assert report.ok, str(report)


def test_a_key_that_forgets_the_operands_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    eager, right = EagerStep(other_rows, PARAMS, Recipe(SGD(0.1))), capture(other_rows, PARAMS, SGD(0.1), X)
    whole = shared._key
    monkeypatch.setattr(shared, "_key", lambda op, inputs: (*whole(op, inputs)[:-1], ()))
    broken = capture(other_rows, PARAMS, SGD(0.1), X)
    loss = eager(X)
    assert right(X) == loss
    assert broken(X) != loss


@pytest.mark.parametrize(("between", "expected"), [(False, 1), (True, 3)])
def test_equal_calls_on_both_sides_of_an_overwriting_are_two(between: bool, expected: int) -> None:
    """Memory that was overwritten in between holds other elements, under the same place."""
    layout, dtype = ArrayLayout.dense((4,), np.dtype(np.float32)), np.dtype(np.float32)
    values = {0: Value(0, Spec((4,), dtype), Role.MODEL_STATE, "s"), 1: Value(1, Spec((4,), dtype), Role.STATIC)}
    places = {
        0: StoragePlace(0, layout),
        1: StoragePlace(0, layout),
        **{made: StoragePlace(made, layout) for made in (10, 11)},
    }

    def copied(made: int, source: int) -> LoweredOp:
        return LoweredOp(neg, dtype, (made,), (source,), Words(4), 4, 0)

    overwriting = [LoweredOp(assign, dtype, (1,), (10,), Words(4), 4, 1)] if between else []
    program = Program(
        IRGraph("step", values, (), {}, {0: 1}),
        (copied(10, 0), *overwriting, copied(11, 1)),
        places,
        frozenset(),
    )
    assert len(shared.share_steps(program).ops) == expected
