"""What names stand for: variables, layers, ops; one node or several; what a step has nothing of."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Keep, Trainer
from dgrr.tape import nn, ops
from dgrr.trace import ConditionError, Watchpoint, when

X = np.array([[1.0, -2.0], [3.0, 0.5]])
MODEL = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm(2), nn.ReLU())
PARAMS = {**MODEL.init(0, dtype=np.float64), "w": np.array([2.0, 3.0]), "unused": np.ones(1), "cold": np.ones(2)}


def loss_fn(p: Any, x: Any, ctx: Any) -> Any:
    h = x * p["w"]
    for _ in range(2):
        h = h * 2.0 + 0.0 * h
    y = z = MODEL(p, h, ctx)
    if (late := ops.exp(z * 0.0)) is None:
        raise AssertionError
    v, u = y * 3.0, late * 4.0
    return (v * late + u + p["cold"] * 0.0).sum(), ctx.state


@pytest.fixture
def run(tmp_path: Path) -> Path:
    keep, frozen = Keep(tmp_path / "run", record="digest"), ["cold"]
    rest: dict[str, Any] = {"model_state": MODEL.init_state(np.float64), "trace": keep, "frozen": frozen}
    Trainer(loss_fn, PARAMS, SGD(1e-3), **rest).fit([X], steps=3, progress=False)
    return tmp_path / "run"


def at_step_0(run: Path, condition: str) -> Watchpoint:
    return when(run, condition, loss_fn, [X], last=0)


H = X * PARAMS["w"]


@pytest.mark.parametrize(
    ("condition", "op", "name", "layer"),
    [
        (f"max(h) == {H.max()}", "mul", "h", ""),
        (f"max(h) == {2 * H.max()}", "add", "h", ""),
        (f"max(h) == {4 * H.max()}", "add", "h", ""),
        ('min("2") == 0', "relu", "y", "2"),
        ("min(y) == 0", "relu", "y", "2"),
        ("max(late) == 1", "exp", "late", ""),
        ('max("1") > 0', "batch_norm", "", "1"),
        ('max(node("exp")) > 0', "exp", "late", ""),
        ('max(node("batch_*")) > 0', "batch_norm", "", "1"),
        ("max(node(late)) > 0", "exp", "late", ""),
        ('max(node("0")) > 0', "linear", "", "0"),
        ('any(grad("2") == 3)', "relu", "y", "2"),
        ("any(grad(node(relu)) == 3)", "relu", "y", "2"),
        ("absmax(h) + absmax(grad(h)) > 0", "mul", "h", ""),
    ],
)
def test_names(run: Path, condition: str, op: str, name: str, layer: str) -> None:
    answer = at_step_0(run, condition)
    assert answer.step == 0 and answer.node is not None
    assert (answer.node.op, answer.node.name, answer.node.layer) == (op, name, layer)


def test_every_node(run: Path) -> None:
    """Also what nothing takes, and what is inside of a layer; no leaf."""
    first = at_step_0(run, f'max(node("*")) == {4 * H.max()}').node
    assert first is not None and (first.op, first.name, first.line.split(": ")[1]) == (
        "mul",
        "",
        "h = h * 2.0 + 0.0 * h",
    )
    assert not at_step_0(run, 'any(isnan(node("*")))')


def test_parameters_and_states_come_before_variables(run: Path) -> None:
    assert at_step_0(run, "max(w) == 3").node is None
    assert at_step_0(run, "step == 0").node is None


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("max(hh) > 1", "a step has no 'hh': it has h, "),
        ('max(node("conv*")) > 1', "a step has no 'conv*': it has h, "),
        ("max(h) + max(node('*')) > 1", "expected as many nodes for each name, got: h is 3 nodes, node('*') is "),
        ("max(grad(cold)) > 1", "grad: 'cold' is frozen; expected "),
        ('max(grad("1.running_mean")) > 1', "grad: '1.running_mean' is no parameter; expected "),
        ("max(update(h)) > 1", "update: expected a tensor of the run: "),
        ("max(grad(loss)) > 1", "a step has no 'loss': it has "),
    ],
)
def test_what_a_step_has_not(run: Path, condition: str, error: str) -> None:
    with pytest.raises(ConditionError) as raised:
        at_step_0(run, condition)
    assert str(raised.value).startswith(f"condition: {error}")
    assert "; at character " in str(raised.value)


def test_what_never_arrives_is_not_tried(run: Path) -> None:
    answer = when(run, "max(grad(unused)) > 1", loss_fn, [X])
    assert (answer.step, answer.untried) == (None, 3)
    assert str(answer).splitlines()[1] == "  not tried  at 3 steps, which lack a name in it"


def test_of_batches_of_several_shapes(tmp_path: Path) -> None:
    """Each has a recording of its own, and a name may be missing in some of them."""

    def changing(p: Any, x: Any) -> Any:
        h = x * p["w"]
        if x.shape[0] == 2:
            pair = h * 2.0
            return pair.sum()
        return h.sum()

    batches = [np.ones((2, 2)), np.ones((3, 2)), np.ones((2, 2)) * 5]
    fit = Trainer(changing, {"w": np.ones(2)}, SGD(0.0), trace=Keep(tmp_path / "run", record="digest"))
    fit.fit(batches, steps=40, progress=False)
    for mode in ("replay", "eager"):
        answer = when(tmp_path / "run", "max(pair) > 9", changing, batches, mode=mode)  # type: ignore[arg-type]
        assert (answer.step, answer.untried) == (2, 1)
        assert when(tmp_path / "run", "max(h) > 4", changing, batches, mode=mode).step == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["replay", "eager"])
def test_a_view_of_a_parameter_is_as_it_was_before_the_update(tmp_path: Path, mode: Any) -> None:
    def views(p: Any, x: Any) -> Any:
        flat = p["w"].reshape((4,))
        return (flat * x).sum()

    fit = Trainer(views, {"w": np.ones((2, 2))}, SGD(1.0), trace=Keep(tmp_path / "run", record="digest"))
    fit.fit([np.ones(4)], steps=40, progress=False)
    assert when(tmp_path / "run", "max(flat) < 0", views, [np.ones(4)], mode=mode).step == 2
