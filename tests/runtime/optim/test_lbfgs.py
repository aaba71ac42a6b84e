"""L-BFGS: where it arrives, what it holds on to, and what it refuses. Its path against PyTorch's is tests/peers'."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import NonFiniteError, Trainer, gradients
from dgrr.runtime.optim import LBFGS
from dgrr.tape import DomainError, DTypeError, ShapeError, ops

WOLFE = LBFGS(line_search="strong_wolfe")


def valley(p: Any, _: Any) -> Any:
    """Rosenbrock's, least at ones, with a matrix that it does not reach and an array of nothing."""
    head, tail = p["a"][:-1], p["a"][1:]
    return (100.0 * ops.square(tail - head * head) + ops.square(1.0 - head)).sum()


def barrier(p: Any, _: Any) -> Any:
    """No number where a is not positive; least at 1."""
    return (p["a"] - ops.log(p["a"])).sum()


def of(loss: Any) -> Any:
    return lambda p: gradients(loss, p, ())


def start(dtype: Any = np.float64) -> dict[str, Any]:
    return {"a": np.array([-1.0, 0.5, 2.0], dtype), "none": np.zeros((0, 2), dtype), "still": np.ones((2, 2), dtype)}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_valley_is_walked_to_its_end(dtype: Any) -> None:
    params = start(dtype)
    state = WOLFE.init(params)
    losses = [WOLFE.step(params, of(valley), state) for _ in range(5)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 1e-8
    np.testing.assert_allclose(params["a"], 1, atol=1e-3 if dtype == np.float32 else 1e-5)
    assert params["a"].dtype == dtype
    assert (params["still"] == 1).all()


def test_a_run_goes_on_from_its_state_to_the_bit() -> None:
    """Also with fewer pairs than iterations, and from copies of all that it holds."""
    rule = LBFGS(line_search="strong_wolfe", max_iter=4, max_eval=20, history_size=3)
    whole, state = start(), rule.init(start())
    for _ in range(3):
        rule.step(whole, of(valley), state)
    part, kept = start(), rule.init(start())
    rule.step(part, of(valley), kept)
    part, kept = [{name: array.copy() for name, array in each.items()} for each in (part, kept)]
    for _ in range(2):
        rule.step(part, of(valley), kept)
    assert whole["a"].tobytes() == part["a"].tobytes()
    assert {key: array.tobytes() for key, array in state.items()} == {k: array.tobytes() for k, array in kept.items()}
    assert (int(state["step"]), state["steps"].shape) == (12, (3, 7))


def test_a_search_turns_back_from_where_there_is_no_number() -> None:
    params = {"a": np.array([0.5, 30.0, 1e-3])}
    with np.errstate(all="ignore"):
        WOLFE.step(params, of(barrier), WOLFE.init(params))
        state = WOLFE.init(params)
        while WOLFE.step(params, of(barrier), state) - 3 > 1e-12:
            assert state["step"] < 200
    np.testing.assert_allclose(params["a"], 1, rtol=1e-5)


def test_an_error_changes_nothing() -> None:
    params = {"a": np.array([0.5, 30.0])}
    rule = LBFGS(100.0)
    state = rule.init(params)
    before = [array.tobytes() for array in (*params.values(), *state.values())]
    with pytest.raises(NonFiniteError, match="a loss of nan; nothing was changed: lower lr"):
        rule.step(params, of(barrier), state)
    assert before == [array.tobytes() for array in (*params.values(), *state.values())]


def test_what_is_least_already_stays() -> None:
    params = {"a": np.ones(3)}
    state = WOLFE.init(params)
    assert WOLFE.step(params, of(valley), state) == 0
    assert (int(state["step"]), int(state["evaluations"]), params["a"].tolist()) == (0, 1, [1, 1, 1])


def a_of(value: Any) -> Any:
    return lambda p: (1.0, {"a": value})


@pytest.mark.parametrize(
    ("closure", "state", "error", "text"),
    [
        (a_of(np.ones(2)), {}, ShapeError, "LBFGS.step: closure: gradient of 'a': expected shape (3,), got (2,)"),
        (a_of(np.ones(3, np.float32)), {}, DTypeError, "gradient of 'a': expected float64, got float32; use astype"),
        (lambda p: (p["a"], {}), {}, DomainError, "closure: expected a loss without axes, got shape (3,)"),
        (lambda p: (1.0, {"b": p["a"]}), {}, DomainError, "expected the names of parameters ('a'), got 'b'"),
        (of(valley), {"move": np.zeros(2)}, ShapeError, "LBFGS.step: state 'move': expected shape (3,), got (2,)"),
        (of(valley), {"step": None}, DomainError, "state: expected 'step', which is missing; use init(params)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(closure: Any, state: Any, error: type[Exception], text: str) -> None:
    params = {"a": np.zeros(3)}
    given = {key: value for key, value in {**WOLFE.init(params), **state}.items() if value is not None}
    with pytest.raises(error) as raised:
        WOLFE.step(params, closure, given)
    assert text in str(raised.value)


def test_it_needs_parameters_and_is_no_rule_of_a_trainer() -> None:
    with pytest.raises(DomainError, match="LBFGS.init: params: expected at least one parameter, got none"):
        LBFGS().init({})
    given: Any = LBFGS()
    with pytest.raises(DomainError) as error:
        Trainer(valley, start(), given, trace="never.dgrr")
    assert "optimizer: LBFGS: expected a rule that makes an update of one gradient" in str(error.value)
    assert "call its step(params, lambda p: gradients(loss_fn, p, batch), state)" in str(error.value)
