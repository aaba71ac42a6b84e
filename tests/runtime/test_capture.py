"""A training step on its own copy of the parameters: nothing lost, nothing half done, restored to the bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import SGD, Adam, CapturedStep, NonFiniteError, StateError, capture, gradients, state_digest
from dgrr.runtime.optim import Rule
from dgrr.tape import ShapeError, nn, ops

Arrays = dict[str, npt.NDArray[Any]]
Batch = tuple[npt.NDArray[Any], npt.NDArray[Any]]
MODEL = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
RULES = [SGD(0.1, momentum=0.9), Adam(0.01)]


def loss_fn(p: Any, batch: Any) -> Any:
    inputs, labels = batch
    return ops.cross_entropy(MODEL(p, inputs), labels)


def batch_of(number: int) -> Batch:
    rng = np.random.default_rng(number)
    return rng.standard_normal((6, 3)).astype(np.float32), rng.integers(0, 2, 6)


def new_step(rule: Rule, seed: int = 0) -> CapturedStep:
    return capture(loss_fn, MODEL.init(seed), rule, batch_of(0))


def copied(arrays: Arrays) -> Arrays:
    return {name: array.copy() for name, array in arrays.items()}


def bits(arrays: Arrays) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_capture_trains_nothing(rule: Rule) -> None:
    params = MODEL.init(0)
    before = bits(params)
    step = capture(loss_fn, params, rule, batch_of(0))
    assert bits(params) == bits(step.params) == before
    assert not any(array.any() for array in step.state.values())
    assert step.digest() == state_digest(MODEL.init(0), rule.init(MODEL.init(0)))


def test_the_callers_arrays_stay_as_they_are() -> None:
    params = MODEL.init(0)
    before = bits(params)
    step = capture(loss_fn, params, Adam(), batch_of(0))
    step(batch_of(1))
    assert bits(params) == before
    assert not any(np.shares_memory(params[name], step.params[name]) for name in params)
    assert all(np.any(params[name] != step.params[name]) for name in params)


def test_capture_tries_the_model_on_the_example() -> None:
    with pytest.raises(ShapeError, match="linear: argument 'w'"):
        capture(loss_fn, MODEL.init(0), Adam(), (np.zeros((6, 5), np.float32), np.zeros(6, np.int64)))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_step_is_gradients_then_the_rule(rule: Rule) -> None:
    step, params = new_step(rule), MODEL.init(0)
    state = rule.init(params)
    for k in range(4):
        loss, grads = gradients(loss_fn, params, batch_of(k))
        assert bits(step.grads(batch_of(k))) == bits(grads)
        assert step(batch_of(k)).tobytes() == loss.tobytes()
        rule.step(params, grads, state)
        assert bits(step.params) == bits(params)
        assert bits(step.state) == bits(state)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_non_finite_step_changes_nothing(rule: Rule) -> None:
    step = new_step(rule)
    step(batch_of(1))
    before = step.digest()
    inputs, labels = batch_of(2)
    inputs[3, 1] = np.nan
    with pytest.raises(NonFiniteError, match="the first non-finite value is node 4"):
        step((inputs, labels))
    assert step.digest() == before


def test_gradients_are_taken_without_an_update() -> None:
    step = new_step(Adam())
    before = step.digest()
    step.grads(batch_of(1))
    step.evaluate(batch_of(1))
    assert step.digest() == before


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("seed", [0, 1], ids=["the same step", "a step from another start"])
def test_a_state_dict_restores_to_the_bit(rule: Rule, seed: int) -> None:
    step = new_step(rule)
    for k in range(3):
        step(batch_of(k))
    saved, digest = step.state_dict(), step.digest()
    losses = [step(batch_of(k)).tobytes() for k in range(3, 7)]
    end = step.digest()
    resumed = step if seed == 0 else new_step(rule, seed)
    resumed.load_state_dict(saved)
    assert resumed.digest() == digest != end
    assert [resumed(batch_of(k)).tobytes() for k in range(3, 7)] == losses
    assert resumed.digest() == end


def test_a_state_dict_is_a_copy_and_loading_keeps_the_arrays() -> None:
    step = new_step(Adam())
    step(batch_of(1))
    digest, arrays = step.digest(), [*step.params.values(), *step.state.values()]
    saved = step.state_dict()
    step.load_state_dict(saved)
    for part in saved.values():
        for array in part.values():
            array[...] = 7
    assert step.digest() == digest
    kept = [*step.params.values(), *step.state.values()]
    assert all(now is then for now, then in zip(kept, arrays, strict=True))


def without_weight(saved: dict[str, Arrays]) -> None:
    del saved["params"]["0.weight"]


def renamed(saved: dict[str, Arrays]) -> None:
    saved["params"] = {f"model.{name}": value for name, value in saved["params"].items()}


def reordered(saved: dict[str, Arrays]) -> None:
    saved["state"] = dict(reversed(saved["state"].items()))


def without_state(saved: dict[str, Arrays]) -> None:
    del saved["state"]


def transposed(saved: dict[str, Arrays]) -> None:
    saved["params"]["0.weight"] = saved["params"]["0.weight"].T


def widened(saved: dict[str, Arrays]) -> None:
    saved["state"]["m/2.bias"] = saved["state"]["m/2.bias"].astype(np.float64)


def scalar(saved: dict[str, Arrays]) -> None:
    saved["state"]["step"] = np.zeros(1, np.int64)


NAMES = "['0.weight', '0.bias', '2.weight', '2.bias']"
STATE = f"['step', 'corrections', {', '.join(repr(f'{b}/{n}') for b in 'mv' for n in MODEL.init(0))}]"
REFUSED: list[tuple[Callable[[dict[str, Arrays]], None], str]] = [
    (without_weight, f"params: expected the names {NAMES}, got ['0.bias', '2.weight', '2.bias']"),
    (renamed, f"params: expected the names {NAMES}, got ['model.0.weight', 'model.0.bias', "),
    (reordered, f"state: expected the names {STATE}, got ['v/2.bias', "),
    (without_state, f"state: expected the names {STATE}, got []"),
    (transposed, "params '0.weight': expected float32[4, 3], got float32[3, 4]"),
    (widened, "state 'm/2.bias': expected float32[2], got float64[2]"),
    (scalar, "state 'step': expected int64[], got int64[1]"),
]


@pytest.mark.parametrize(("spoil", "text"), REFUSED)
def test_a_state_dict_that_does_not_fit_changes_nothing(spoil: Callable[[dict[str, Arrays]], None], text: str) -> None:
    step, other = new_step(Adam()), new_step(Adam(), seed=1)
    for k in range(2):
        other(batch_of(k))
    saved, before = other.state_dict(), step.digest()
    spoil(saved)
    with pytest.raises(StateError) as caught:
        step.load_state_dict(saved)
    assert str(caught.value).startswith(f"load_state_dict: {text}")
    assert step.digest() == before


def test_the_state_of_another_rule_does_not_fit() -> None:
    step = new_step(SGD(0.1))
    with pytest.raises(StateError, match=r"expected the names \['step'\], got \['step', 'corrections'"):
        step.load_state_dict(new_step(Adam()).state_dict())
