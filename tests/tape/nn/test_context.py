"""A context: its step, its draws in their order, its parts."""

import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from dgrr.tape import Context, DomainError, DTypeError, GradientError, Random, Tape, nn, ops


def test_a_context_made_by_hand_has_the_step_that_it_is_given() -> None:
    step = Tape().const(7)
    ctx = Context(step=step)
    assert ctx.step is step
    assert ctx.scope("part.").step is step


def test_a_context_without_a_step_says_so() -> None:
    for ctx in (Context(), Context(training=True, random=Random(Tape().const(0)))):
        with pytest.raises(DomainError) as caught:
            _ = ctx.step
        assert str(caught.value) == (
            "Context: argument 'step': expected a Var that counts the steps before, got None; "
            "write Context(step=tape.const(0))"
        )


def test_every_draw_has_an_ordinal_of_its_own() -> None:
    step = Tape().const(4)
    key = {"seed": 9, "micro_batch": 2}
    random = Random(step, **key)
    drawn = [
        random.uniform((5,)),
        random.normal((5,), np.float64, 1.0, 2.0),
        random.bernoulli(0.5, (40,)),
        random.integers(-3, 30, (5,)),
        random.permutation(20),
        random.dropout(ops.cast(step, "float32"), 0.5),
        random.normal((5,), std=3.0),
    ]
    expected = [
        ops.uniform(step, (5,), ordinal=0, **key),
        ops.normal(step, (5,), "float64", 1.0, 2.0, ordinal=1, **key),
        ops.bernoulli(step, 0.5, (40,), ordinal=2, **key),
        ops.integers(step, -3, 30, (5,), ordinal=3, **key),
        ops.permutation(step, 20, ordinal=4, **key),
        ops.dropout(ops.cast(step, "float32"), step, 0.5, ordinal=5, **key),
        ops.normal(step, (5,), "float32", std=3.0, ordinal=6, **key),
    ]
    for found, made in zip(drawn, expected, strict=True):
        assert found.dtype == made.dtype
        assert found.numpy().tobytes() == made.numpy().tobytes()


NO_DRAWS: list[tuple[Callable[[Random], Any], type[Exception], str]] = [
    (
        lambda random: random.normal((2,), np.int64),
        DTypeError,
        "normal: argument 'dtype': expected float32 or float64, got int64",
    ),
    (
        lambda random: random.uniform((2,), np.float16),
        DTypeError,
        "uniform: argument 'dtype': expected float32 or float64, got 'float16'",
    ),
    (
        lambda random: random.normal((2,), std=-1.0),
        DomainError,
        "normal: argument 'std': expected at least 0, got -1.0",
    ),
    (
        lambda random: random.bernoulli(1.5, (2,)),
        DomainError,
        "bernoulli: argument 'p': expected a probability from 0 to 1, got 1.5",
    ),
    (
        lambda random: random.bernoulli(cast(Any, Tape().const(0.5)), (2,)),
        GradientError,
        "bernoulli: argument 'p': expected a number, got a Var, whose gradient would be lost; give a number",
    ),
    (
        lambda random: random.permutation(cast(Any, 2.5)),
        DTypeError,
        "permutation: argument 'n': expected a whole number, got 2.5",
    ),
    (
        lambda random: random.integers(5, 5, (2,)),
        DomainError,
        "integers: argument 'high': expected more than low, 5, got 5",
    ),
    (
        lambda random: random.permutation(-1),
        DomainError,
        "permutation: argument 'n': expected an integer from 0 to 8589934591, got -1",
    ),
    (
        lambda random: random.uniform(cast(Any, 3)),
        DTypeError,
        "uniform: argument 'shape': expected a tuple of whole numbers, got 3",
    ),
    (
        lambda random: random.normal(cast(Any, 64), cast(Any, 2)),
        DTypeError,
        "normal: argument 'dtype': expected float32 or float64, got 2; a shape is one tuple: (64, 2)",
    ),
    (
        lambda random: random.uniform(cast(Any, 64), cast(Any, 2)),
        DTypeError,
        "uniform: argument 'dtype': expected float32 or float64, got 2; a shape is one tuple: (64, 2)",
    ),
]


@pytest.mark.parametrize(("draw", "error", "text"), NO_DRAWS)
def test_what_a_draw_cannot_be(draw: Callable[[Random], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        draw(Random(Tape().const(0)))


def test_a_layer_in_a_layer_sees_the_step() -> None:
    class Annealed(nn.Layer):
        def __call__(self, p: Any, x: Any, ctx: Any = None) -> Any:
            return x * ops.cast(ctx.step, np.float64)

    tape: Tape[Any] = Tape()
    model = nn.Sequential(nn.Residual(Annealed()))
    assert model({}, tape.const(np.float64(2.0)), Context(step=tape.const(3))).item() == 8.0
