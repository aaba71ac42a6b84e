"""Plots: what is drawn on which axes, and what is said where matplotlib is missing."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.tape import Tape, ops
from dgrr.trace import open_trace


def fitted(steps: int = 6, trace: Path | None = None) -> Any:
    def loss_fn(p: Any, x: Any) -> Any:
        return (p["w"] * x).sum()

    trainer = Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.1), trace=trace)
    return trainer.fit([np.ones(2)] * 3, steps=steps, epochs=steps, validation=[np.ones(2)])


def gradients() -> Any:
    tape: Tape[Any] = Tape()
    x, dead, huge = tape.leaf(2.0, name="x"), tape.leaf(1.0), tape.leaf(1.0)
    return tape.backward_dense(ops.scale(x, 3.0) + ops.scale(dead, 0.0) + huge * np.inf)


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    result = fitted(trace=tmp_path / "run.dgrr")
    with open_trace(tmp_path / "run.dgrr") as trace:
        calls = {"Result.plot": result.plot, "Trace.plot": trace.plot, "DenseGrads.plot": gradients().plot}
        for name, plot in calls.items():
            with pytest.raises(ModuleNotFoundError) as caught:
                plot()
            assert str(caught.value) == f"{name}: expected matplotlib to be installed: pip install 'dgrr[plot]'"


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Any:
    """matplotlib, drawing to nothing."""
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'dgrr[plot]'")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def lines(ax: Any) -> dict[str, list[float]]:
    return {line.get_label(): np.asarray(line.get_ydata()).tolist() for line in ax.get_lines()}


def test_a_result_is_its_losses_and_its_validations(figures: Any) -> None:
    result = fitted()
    ax = result.plot()
    shown = lines(ax)
    assert shown["loss"] == result.losses.tolist()
    assert len(shown["validation_loss"]) == 2
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "loss")
    assert result.plot(ax) is ax
    ax.figure.canvas.draw()


def test_a_long_run_has_a_running_mean_and_marks_what_is_not_finite(figures: Any) -> None:
    from dgrr.screen.plotting import curve

    losses = np.linspace(2000.0, 1.0, 1000)
    losses[10] = np.nan
    ax = curve("here", losses)
    shown = lines(ax)
    assert shown["loss, mean of 20 steps"][100] == pytest.approx(losses[81:101].mean())
    assert shown["loss, mean of 20 steps"][10] == pytest.approx(losses[:10].mean())
    assert shown["not finite"] == [0.0]
    assert ax.get_yscale() == "log"


def test_traces_are_drawn_over_each_other(figures: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        fitted(trace=tmp_path / name)
    with open_trace(tmp_path / "a") as a, open_trace(tmp_path / "b") as b:
        ax = b.plot(a.plot())
        assert lines(ax) == {"a": a.loss.tolist(), "b": b.loss.tolist()}


def test_gradients_by_kind(figures: Any) -> None:
    ax = gradients().plot()
    shown = lines(ax)
    assert shown["leaves"] == [3.0]
    assert shown["zero"] == [0.0]
    assert shown["not finite"] == [0.0]
    assert ax.get_yscale() == "log"
    assert all(np.isfinite(y).all() for y in shown.values())
    assert [(name.get_text(), name.xy) for name in ax.texts[:3]] == [
        ("leaf", (2, 0)),
        ("leaf", (1, 0)),
        ("x", (0, 3.0)),
    ]
    assert {name.get_text() for name in ax.texts[3:]} == {"scale", "add", "mul"}


def test_names_of_points_do_not_cover_each_other(figures: Any) -> None:
    from dgrr.screen.plotting import LOOKED_AT, Norm, norms

    rng = np.random.default_rng(0)
    points = [Norm(i, 10.0 ** rng.uniform(-6, 0), "leaves" if i < 90 else "ops", f"block.{i}") for i in range(300)]
    points[100] = Norm(100, float("nan"), "ops", "broken")
    points[299] = Norm(299, 0.0, "ops", "a rather long name of a node at the end")
    ax = norms("here", points)
    ax.figure.canvas.draw()
    boxes = {name.get_text(): name.get_window_extent() for name in ax.texts}
    assert 15 < len(boxes) == len(ax.texts) <= LOOKED_AT
    assert {"broken", "a rather long name of a node at the end", "block.0"} <= boxes.keys()
    found = list(boxes.values())
    assert not [1 for i, a in enumerate(found) for b in found[:i] if a.shrunk(0.9, 0.7).overlaps(b.shrunk(0.9, 0.7))]
    inside = ax.get_window_extent()
    assert all(inside.x0 - 2 <= box.x0 and box.x1 <= inside.x1 + 2 for box in found)
