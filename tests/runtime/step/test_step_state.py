"""The state of a step: a copy of everything that training changes, restored to the bit."""

from collections.abc import Callable

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, StateError  # fmt: skip
from dgrr.runtime.optim import Rule

from ..stepping import MODEL, RULES, Arrays, batch_of, new_step

pytestmark = pytest.mark.quick

# ------------------------------------------------------------------ state


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


def test_the_parts_of_a_step_are_a_dict_of_the_callers_own() -> None:
    step = new_step(SGD(0.1))
    digest = step.digest()
    step.arrays.clear()
    assert step.digest() == digest
