"""The first step is the right one, by a second account: what the loss function itself has noted of each step."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Keep
from dgrr.trace import NotRecordedError, RebuildError, at, open_trace, when
from dgrr.trace.replaying import travel

from .noted import BATCHES, FIGURES, STEPS, Note, loss_fn, notes_of, records, trainer

KINDS = ("plain", "groups")
MODES = ("digest", "grads", "full")


@pytest.fixture(scope="module")
def notes() -> dict[str, list[Note]]:
    return {kind: notes_of(kind)[:-1] for kind in KINDS}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    folder = tmp_path_factory.mktemp("runs")
    for kind in KINDS:
        for mode in MODES:
            keep: Any = Keep(folder / f"{kind}-{mode}.dgrr", record=mode, keyframe_every=10)  # type: ignore[arg-type]
            trainer(kind, keep).fit(BATCHES, steps=STEPS, progress=False)
    return {(kind, mode): folder / f"{kind}-{mode}.dgrr" for kind in KINDS for mode in MODES}


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_step(runs: Any, notes: Any, kind: str, mode: str, figure: str) -> None:
    signs = {sign: records(FIGURES[figure], notes[kind], sign) for sign in (1, -1)}
    assert any(signs.values()) or (figure, kind) == ("lr", "plain")
    for sign, found in signs.items():
        for step, threshold in {found[0], found[-1]} if found and (mode == "digest" or sign > 0) else ():
            condition = f"{'-' if sign < 0 else ''}({figure}) > {threshold!r}"
            answer = when(runs[kind, mode], condition, loss_fn, BATCHES)
            assert (answer.step, answer.first, answer.last, answer.untried) == (step, 0, step, 0), condition
            assert bool(answer)


@pytest.mark.parametrize("figure", ["loss", 'absmax("0.weight")', "absmax(h)"])
@pytest.mark.parametrize("mode", MODES)
def test_what_never_holds(runs: Any, mode: str, figure: str) -> None:
    answer = when(runs["plain", mode], f"{figure} > 1e300", loss_fn, BATCHES)
    assert (answer.step, answer.last, answer.untried, bool(answer)) == (None, STEPS - 1, 0, False)
    assert (answer.node, dict(answer.figures)) == (None, {})


@pytest.mark.parametrize("figure", ["norm(wide)", "norm(grad(h))", 'absmax(update("4.bias"))'])
@pytest.mark.parametrize("first", [0, 7, 30])
def test_op_by_op_and_from_a_step_on(runs: Any, notes: Any, figure: str, first: int) -> None:
    """Before `first` nothing is looked at: the first step from there on, in either mode."""
    values = [max(FIGURES[figure](note)) for note in notes["groups"]]
    threshold = (max(values[first:]) + sorted(values[first:])[-2]) / 2
    expected = next(step for step in range(first, STEPS) if values[step] > threshold)
    for mode in ("eager", "replay"):
        more: dict[str, Any] = {"first": first, "mode": mode}
        answer = when(runs["groups", "digest"], f"{figure} > {threshold!r}", loss_fn, BATCHES, **more)
        assert (answer.step, answer.first) == (expected, first)


def test_last(runs: Any) -> None:
    path = runs["plain", "digest"]
    assert when(path, "step > 5", last=5).step is None
    assert when(path, "step > 5", last=6).step == 6
    assert when(path, "step > 5", first=-2).step == STEPS - 2
    with pytest.raises(ValueError, match=r"trace\.when: argument 'last': expected a step from 4 on, got 3"):
        when(path, "step > 5", first=4, last=3)
    with pytest.raises(IndexError, match=f"expected a step from 0 to {STEPS - 1}, got {STEPS}"):
        when(path, "step > 5", first=STEPS)


def test_the_micro_batch_is_named(runs: Any, notes: Any) -> None:
    """Of two, the one whose value it is."""
    second = [step for step, note in enumerate(notes["groups"]) if np.ptp([x.max() for x in note.values["h"]]) > 0]
    step = second[0]
    maxima = [float(x.max()) for x in notes["groups"][step].values["h"]]
    more: dict[str, Any] = {"first": step, "last": step}
    answer = when(runs["groups", "digest"], f"max(h) > {sum(maxima) / 2!r}", loss_fn, BATCHES, **more)
    assert answer.step == step and answer.node is not None
    assert answer.node.micro_batch == int(np.argmax(maxima))
    assert answer.figures == {"max(h)": max(maxima)}
    assert ("micro-batch 1" in str(answer)) == (answer.node.micro_batch == 1)


def test_what_is_told_of_a_node(runs: Any) -> None:
    answer = when(runs["plain", "digest"], "max(wide) > 0", loss_fn, BATCHES)
    assert answer.node is not None
    found = answer.to_dict()["node"]
    assert found["line"].endswith("wide = ops.exp(h * 0.5)") and "noted.py:" in found["line"]
    assert {k: v for k, v in found.items() if k != "line"} == {
        "op": "exp",
        "name": "wide",
        "layer": "",
        "shape": [6, 2],
        "micro_batch": 0,
    }
    assert repr(answer) == f"<{answer.path}: max(wide) > 0: first at step 0>"


def test_an_open_trace(runs: Any) -> None:
    with open_trace(runs["plain", "grads"]) as trace:
        assert when(trace, "step > 3").step == 4
        assert when(trace, 'norm("0.weight") > 0').step == 0


@pytest.mark.parametrize("mode", ["digest", "grads"])
def test_another_model_is_found_out(runs: Any, mode: str) -> None:
    def other(p: Any, batch: Any, ctx: Any) -> Any:
        loss, state, shown = loss_fn(p, batch, ctx)
        return loss * 2.0, state, shown

    with pytest.raises(RebuildError, match=r"trace\.when: gradient: step 0, 'loss': ") as raised:
        when(runs["plain", mode], 'max(node("exp")) > 1e9', other, BATCHES)
    assert raised.value.finding.step == 0
    with pytest.raises(RebuildError, match=r"trace\.when: data: step 0: the batch is not the one"):
        when(runs["plain", mode], "max(h) > 1e9", loss_fn, BATCHES[1:])


def test_a_change_on_the_way_is_found_out(runs: Any) -> None:
    """Captured steps that are not the recorded ones any more are done again op by op, and the answers stay right."""
    flaws = iter([*[0.0] * 4, *[1.0] * 1000])

    def wanders(p: Any, batch: Any, ctx: Any) -> Any:
        loss, state, shown = loss_fn(p, batch, ctx)
        return loss + next(flaws), state, shown

    with pytest.raises(RebuildError, match=r"trace\.when: gradient: step \d+, 'loss': "):
        when(runs["plain", "digest"], "max(h) > 1e9", wanders, BATCHES)


def test_a_loss_function_with_a_state_of_its_own(runs: Any, notes: Any) -> None:
    """It cannot be captured: step by step it is done op by op, with the right answer."""
    calls = 0

    def counting(p: Any, batch: Any, ctx: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % 7 == 0:
            (p["0.weight"] * 1.0).sum()  # a node more, which nothing depends on
        return loss_fn(p, batch, ctx)

    step, threshold = records(FIGURES["max(noisy)"], notes["plain"])[-1]
    assert when(runs["plain", "digest"], f"max(noisy) > {threshold!r}", counting, BATCHES).step == step


@pytest.mark.parametrize("figure", ["absmax(h)", 'mean("4.bias")', "top"])
def test_a_run_that_was_resumed(tmp_path: Path, notes: Any, figure: str) -> None:
    """A finished trace that goes on, behind whole epochs."""
    run = trainer("plain", Keep(tmp_path / "run.dgrr", record="digest", keyframe_every=10))
    run.fit(BATCHES, steps=25, progress=False)
    run.fit(BATCHES, steps=STEPS - 25, progress=False)
    sign = next(sign for sign in (1, -1) if records(FIGURES[figure], notes["plain"], sign))
    step, threshold = records(FIGURES[figure], notes["plain"], sign)[-1]
    condition = f"{'-' if sign < 0 else ''}({figure}) > {threshold!r}"
    assert when(tmp_path / "run.dgrr", condition, loss_fn, BATCHES).step == step


def test_a_run_that_goes_on_from_another(runs: Any, notes: Any, tmp_path: Path) -> None:
    """Its steps count from 0; what it draws goes on."""
    past = at(runs["plain", "digest"], 20, loss_fn, BATCHES)
    past.continue_with(steps=15, trace=tmp_path / "child")
    values = [max(FIGURES["max(noisy)"](note)) for note in notes["plain"][20:35]]
    threshold = (max(values) + sorted(values)[-2]) / 2
    found = when(tmp_path / "child", f"max(noisy) > {threshold!r}", loss_fn, BATCHES)
    assert found.step == int(np.argmax(values))


def test_a_trace_without_states(tmp_path: Path) -> None:
    trainer("plain", Keep(tmp_path / "run", record="bare")).fit(BATCHES, steps=3, progress=False)
    assert when(tmp_path / "run", "step > 1").step == 2
    with pytest.raises(NotRecordedError, match=r"trace\.when: a trace of record mode 'bare' holds no state"):
        when(tmp_path / "run", "max(h) > 1", loss_fn, BATCHES)


def test_another_numerics_version(runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(travel, "NUMERICS", 99)
    with pytest.raises(RebuildError, match=r"trace\.when: numerics: step 0: recorded under numerics version \d+, this"):
        when(runs["plain", "digest"], "max(h) > 1", loss_fn, BATCHES)


def test_arguments(runs: Any) -> None:
    with pytest.raises(ValueError, match=r"trace\.when: mode: expected 'replay' or 'eager', got 'fast'"):
        when(runs["plain", "digest"], "step > 1", mode="fast")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rules: expected classes of rules"):
        when(runs["plain", "digest"], "step > 1", rules=[3])  # type: ignore[list-item]
