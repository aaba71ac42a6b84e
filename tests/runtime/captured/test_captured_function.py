"""Captured functions of arrays: the bits of the function op by op, and results that stay."""

from typing import Any

import numpy as np
import pytest

from dgrr.runtime import capture_function
from dgrr.tape import Tape, TapeError, nn, ops

MODEL = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
PARAMS = MODEL.init(0)
X = np.random.default_rng(1).standard_normal((6, 3)).astype(np.float32)


def eager(x: Any) -> Any:
    tape: Tape[Any] = Tape()
    return MODEL(tape.params(PARAMS), tape.const(x)).numpy()


@pytest.mark.parametrize("examples", [(), (X,)], ids=["none", "one"])
def test_a_model_over_arrays_of_its_parameters(examples: Any) -> None:
    predict = capture_function(lambda x: MODEL(PARAMS, x), *examples)
    for x in (X, X[:2], X[::2], X[::-1], X.astype(np.float32, order="F"), X):
        assert predict(x).tobytes() == eager(x).tobytes()


def test_several_arguments_and_nested_ones() -> None:
    def function(p: Any, x: Any, scale: Any) -> Any:
        return {"out": MODEL(p, x) * scale, "both": (x.sum(), [scale])}

    captured = capture_function(function)
    for scale in (2.0, 3.0):
        made = captured(PARAMS, X, np.float32(scale))
        assert made["out"].tobytes() == (eager(X) * np.float32(scale)).tobytes()
        assert made["both"][1][0] == scale


def test_results_stay_and_are_the_callers() -> None:
    double = capture_function(lambda x: x * 2.0, np.zeros(2))
    first, second = double(np.ones(2)), double(np.full(2, 5.0))
    first[0] = 7
    assert (first.tolist(), second.tolist(), double(np.ones(2)).tolist()) == ([7, 2], [10, 10], [2, 2])


def test_arrays_from_elsewhere_are_read_where_they_lie() -> None:
    weights = np.ones(2)
    times = capture_function(lambda x: x * weights, np.zeros(2))
    assert times(np.full(2, 3.0)).tolist() == [3, 3]
    weights[:] = 9
    assert times(np.full(2, 3.0)).tolist() == [27, 27]


def test_it_is_recorded_once_for_each_signature() -> None:
    calls = list[Any]()

    def function(x: Any) -> Any:
        calls.append(x.dtype)
        return ops.exp(x)

    captured = capture_function(function, X)
    assert calls == [np.float32] * 2  # and once more to compare
    captured(X.astype(np.float64))
    assert calls.count(np.dtype(np.float64)) == 2
    before = len(calls)
    captured(X)
    captured(X)
    assert len(calls) - before <= 2  # looks alone


def test_a_value_cannot_be_read() -> None:
    with pytest.raises(TapeError, match="was read while the step is being recorded"):
        capture_function(lambda x: x if x.sum().item() else -x, X)
