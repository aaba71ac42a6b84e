"""Dropout: what it keeps and how much of it, what keys it, and what it needs."""

import re
from typing import Any

import numpy as np
import pytest

from dgrr.tape import Context, DomainError, Random, Tape, gradcheck, nn, ops
from dgrr.tape.numerics.math.random import uniform

X = np.random.default_rng(0).standard_normal((300, 40)).astype(np.float32)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_kept_is_divided_by_the_probability_to_keep(run_with: Any, p: float, dtype: Any) -> None:
    x = X.astype(dtype)
    y, _ = run_with(nn.Dropout(p), {}, x, seed=4, step=6)
    kept = uniform(x.shape, np.float32, seed=4, step=6) >= np.float32(p)
    assert y.tobytes() == np.where(kept, x * dtype(1 / (1 - p)), dtype(0)).tobytes()
    assert np.mean(kept) == pytest.approx(1 - p, abs=5 * (p * (1 - p) / x.size) ** 0.5)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_the_expectation_is_kept(run_with: Any, p: float) -> None:
    """The mean of n elements that are 1 / (1 - p) or 0 has the deviation sqrt(p / (1 - p) / n)."""
    ones = np.ones((500, 400))
    y, _ = run_with(nn.Dropout(p), {}, ones)
    assert abs(float(y.mean()) - 1) < 5 * (p / (1 - p) / ones.size) ** 0.5


def test_seed_and_step_decide(run_with: Any) -> None:
    def drawn(**key: int) -> bytes:
        y: Any = run_with(nn.Dropout(), {}, X, **key)[0]
        return bytes(y.tobytes())

    assert drawn(seed=1, step=2) == drawn(seed=1, step=2)
    assert len({drawn(), drawn(seed=1), drawn(step=1), drawn(seed=1, step=1)}) == 4


def test_each_dropout_of_a_step_draws_numbers_of_its_own(run_with: Any) -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.Residual(nn.Dropout(0.5)))
    y, _ = run_with(model, {}, np.ones((100, 100)))
    assert {float(value) for value in np.unique(y)} == {0.0, 2.0, 6.0}
    assert np.mean(y == 6) == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("layer", [nn.Dropout(0.5), nn.Dropout(1.0), nn.Dropout(0.0)])
def test_evaluation_changes_nothing(run_with: Any, layer: nn.Layer) -> None:
    y, _ = run_with(layer, {}, X, training=False)
    assert y.tobytes() == X.tobytes()


def test_the_two_ends(run: Any, run_with: Any) -> None:
    assert not run_with(nn.Dropout(1.0), {}, X)[0].any()
    assert run_with(nn.Dropout(0.0), {}, X)[0].tobytes() == X.tobytes()
    assert run(nn.Dropout(0.0), {}, X).tobytes() == X.tobytes()


def test_no_probability_draws_nothing() -> None:
    tape: Tape[Any] = Tape()
    ctx = Context(training=True, random=Random(tape.const(np.array(0))))
    x = tape.const(X)
    nn.Dropout(0.0)({}, x, ctx)
    first = nn.Dropout(0.5)({}, x, ctx)
    assert first.numpy().tobytes() == ops.dropout(x, tape.const(np.array(0)), 0.5).numpy().tobytes()


def test_gradients() -> None:
    def function(x: Any) -> Any:
        return nn.Dropout(0.3)({}, x, Context(training=True, random=Random(x.tape.const(np.array(3)))))

    assert gradcheck(function, X[:5, :4].astype(np.float64)).ok


def test_a_context_is_needed(run: Any) -> None:
    layer = nn.Dropout(0.5)
    with pytest.raises(DomainError) as caught:
        run(layer, {}, X)
    assert str(caught.value) == (
        "Dropout(p=0.5): argument 'ctx': expected a Context, got None; "
        "write loss_fn(p, batch, ctx) and call the model as model(p, x, ctx)"
    )
    tape: Tape[Any] = Tape()
    with pytest.raises(DomainError, match="^Context: argument 'random': expected a Random to draw from, got None$"):
        layer({}, tape.const(X), Context(training=True))
    attention = nn.MultiHeadAttention(4, 2, dropout=0.1)
    with pytest.raises(DomainError, match=rf"^{re.escape(repr(attention))}: argument 'ctx': expected a Context"):
        run(attention, attention.init(0), X[:, :4])
