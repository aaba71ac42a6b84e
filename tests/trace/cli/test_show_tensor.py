"""``dgrr show --tensor``: pictures of what is recorded, and what is said where it is not."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace.cli import main
from dgrr.trace.v2.repair.forge import flip_bit

from .test_show import Running

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Said:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code, (out, err) = main(["show", *arguments]), capsys.readouterr()
        return code, out, err

    return run


def recorded(name: str, steps: int = 3, **options: Any) -> list[Any]:
    """A sealed run, and `w` before each step and after the last."""
    run = Running(Path(name), [4.0] * steps, **options)
    seen = [run.params["w"].copy()]
    for k in range(steps):
        run.on(w=(3.0 + k, -4.0, 0.0))
        seen.append(run.params["w"].copy())
    run.recorder.seal()
    return seen


def shown(said: Said, *arguments: str) -> dict[str, Any]:
    code, out, err = said(*arguments, "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)["result"]
    assert (result["run"], result["runs"]) == (None, None)
    found: dict[str, Any] = result["tensor"]
    return found


def test_a_gradient_of_the_last_step_in_characters(said: Said) -> None:
    recorded("a run.dgrr")
    assert said("a run.dgrr", "--tensor", "w") == (
        0,
        "a run.dgrr: gradient of w at step 2\n"
        "(3,) float64: -4 to 5, mean 0.3333; 1 of 3 zero, all finite\n"
        "██≡≡··\n"
        "-~=≡ to -5, · 0, ░▒▓█ to 5\n",
        "",
    )


def test_a_gradient_of_a_step_as_json(said: Said) -> None:
    recorded("run.dgrr")
    assert shown(said, "run.dgrr", "--tensor", "w", "--step", "1") == {
        "name": "w",
        "what": "grad",
        "step": 1,
        "shape": [3],
        "dtype": "float64",
        "elements": 3,
        "min": -4.0,
        "max": 4.0,
        "mean": 0.0,
        "zeros": 1,
        "nan": 0,
        "infinite": 0,
    }


def test_values_are_those_before_the_step_and_at_the_end(said: Said) -> None:
    seen = recorded("run.dgrr", record="full")
    asked = ("run.dgrr", "--tensor", "w", "--what", "value")
    found = [shown(said, *asked, "--step", str(step)) for step in range(4)]
    assert [(each["step"], each["min"], each["max"]) for each in found] == [
        (step, w.min(), w.max()) for step, w in enumerate(seen)
    ]
    assert shown(said, *asked) == found[-1]
    title, *_ = said("run.dgrr", "--tensor", "w", "--what", "value")[1].splitlines()
    assert title == "run.dgrr: value of w after the last step"
    title, *_ = said("run.dgrr", "--tensor", "w", "--what", "value", "--step", "2")[1].splitlines()
    assert title == "run.dgrr: value of w before step 2"


def test_an_update_is_what_the_step_added(said: Said) -> None:
    seen = recorded("run.dgrr", record="full")
    added = [after - before for before, after in pairwise(seen)]
    asked = ("run.dgrr", "--tensor", "w", "--what", "update")
    found = [shown(said, *asked, "--step", str(step)) for step in range(3)]
    assert [(each["min"], each["max"], each["zeros"]) for each in found] == [(x.min(), x.max(), 1) for x in added]
    assert shown(said, *asked) == found[-1]
    assert said("run.dgrr", "--tensor", "w", "--what", "update")[1].startswith("run.dgrr: update of w at step 2\n")


def test_without_a_step_the_last_value_that_is_recorded_is_shown(said: Said) -> None:
    seen = recorded("run.dgrr", 5, keyframe_every=2, state_every=1)
    found = shown(said, "run.dgrr", "--tensor", "w", "--what", "value")
    assert (found["step"], found["max"]) == (4, seen[4].max())


@pytest.mark.parametrize(
    ("options", "arguments", "error"),
    [
        (
            {"record": "grads"},
            ("--what", "update", "--step", "1"),
            "the update of 'w' at step 1 is not recorded (record mode 'grads'): it is the difference of the "
            'values before and after the step, which Keep(..., record="full") records',
        ),
        (
            {"record": "digest"},
            (),
            "trace.tensor: no gradient of 'w' is recorded at step 2 (record mode 'digest'): expected a param that was "
            "updated, in a trace recorded with record='grads'",
        ),
        (
            {"record": "digest"},
            ("--what", "value", "--step", "1"),
            "trace.tensor: 'w' before step 1 is not recorded (record mode 'digest'); dgrr.trace.state_after "
            "recomputes it from the gradients, or record with record='full'",
        ),
        (
            {"record": "bare"},
            ("--what", "value"),
            "trace.tensor: 'w' before step 0 is not recorded (record mode 'bare'); dgrr.trace.state_after "
            "recomputes it from the gradients, or record with record='full'",
        ),
    ],
)
def test_what_is_not_recorded_is_not_made_up(said: Said, options: Any, arguments: Any, error: str) -> None:
    recorded("run.dgrr", **options)
    assert said("run.dgrr", "--tensor", "w", *arguments) == (6, "", f"dgrr: run.dgrr: {error}\n")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--tensor", "W"), "argument --tensor: run.dgrr has no tensor 'W': it has w, b, step; did you mean 'w'?"),
        (("--tensor", "w", "--step", "3"), "argument --step: run.dgrr has no step 3: it has steps 0 to 2"),
        (("--tensor", "w", "--step", "4", "--what", "value"), "run.dgrr has no step 4: it has steps 0 to 2"),
        (("--tensor", "w", "--follow"), "argument --tensor: it takes one run, and no --follow"),
        (("run.dgrr", "--tensor", "w"), "argument --tensor: it takes one run, and no --follow"),
        (("--step", "0"), "argument --step: it requires --tensor"),
        (("--what", "grad"), "argument --what: it requires --tensor"),
        (("--tensor", "w", "--what", "loss"), "argument --what: invalid choice: 'loss'"),
    ],
)
def test_wrong_command_lines(said: Said, arguments: tuple[str, ...], error: str) -> None:
    recorded("run.dgrr")
    code, out, err = said("run.dgrr", *arguments)
    assert (code, out) == (1, "")
    assert error in err


def test_of_a_run_without_steps_there_is_the_state_it_begins_with_in_no_step(said: Said) -> None:
    recorded("run.dgrr", 0)
    assert said("run.dgrr", "--tensor", "w") == (
        1,
        "",
        "dgrr: argument --step: run.dgrr has no step 0: it has no steps\n",
    )


def test_an_unfinished_run_is_shown_as_far_as_it_is(said: Said) -> None:
    run = Running(Path("run.dgrr"), [4.0, 2.0])
    run.on(w=(1.0, 2.0, 3.0))
    assert shown(said, "run.dgrr", "--tensor", "w")["max"] == 3.0
    run.recorder.close()


def test_a_damaged_tensor_is_refused(said: Said) -> None:
    recorded("run.dgrr")
    data = Path("run.dgrr").read_bytes()
    flip_bit("run.dgrr", "flipped.dgrr", data.rindex(np.array([5.0, -4.0, 0.0]).tobytes()), 0)
    code, out, err = said("flipped.dgrr", "--tensor", "w")
    assert (code, out) == (3, "")
    assert "corrupt" in err


@pytest.mark.parametrize("dtype", ["bool", "uint8"])
def test_updates_of_whole_numbers_have_signs(said: Said, dtype: str) -> None:
    from dgrr.runtime import SGD
    from dgrr.tape import NUMERICS
    from dgrr.trace import CompletedStep

    from ...keeping import recorder_of

    rule, params, state = SGD(0.5), {"w": np.ones(1)}, SGD(0.5).init({"w": np.ones(1)})
    law: Any = {"rule": rule.rule, "hyperparameters": list(rule.hyperparameters()), "numerics": NUMERICS}
    before, after = (np.array(values, dtype) for values in ([1, 0], [0, 1]))
    recorder = recorder_of(
        Path("run.dgrr"), params=params, state=state, model_state={"seen": before}, record="full", **law
    )
    grads = {"w": np.ones(1)}
    rule.step(params, grads, state)
    told: Any = {"step": 0, "loss": np.array(1.0), "hyper": rule.hyperparameters(), "grads": grads}
    recorder.step(CompletedStep(**told, batch=np.ones(1), params=params, state=state, model_state={"seen": after}))
    recorder.seal()
    found = shown(said, "run.dgrr", "--tensor", "seen", "--what", "update")
    assert (found["dtype"], found["min"], found["max"], found["mean"]) == ("int64", -1, 1, 0.0)
