"""Whatever a user prints says what it is: no address, never all of many values, and in a notebook closed HTML."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Adam, EarlyStopping, Trainer, capture, capture_function, data, evaluate
from dgrr.tape import AnyVar, Tape, nn, ops
from dgrr.tape.inspect import compare as comparing
from dgrr.tape.transforms.gradcheck import gradcheck
from dgrr.tape.values.tables import PlainTable
from dgrr.trace import Verdict, at, compare, open_trace, recover, replay
from dgrr.trace.auditing.audit import audit

from .closed_html import Balanced

MODEL = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
PARAMS = MODEL.init(seed=0)
BATCH = (np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3), np.ones((5, 1), np.float32))


def loss_fn(p: Any, batch: Any) -> AnyVar:
    inputs, targets = batch
    return ops.mse_loss(MODEL(p, inputs), targets)


def taped() -> dict[str, Any]:
    tape: Tape[Any] = Tape()
    x = tape.leaf(np.linspace(0, 1, 3000).reshape(1000, 3), name="<x>")
    y = (x * np.inf).sum()
    grads = tape.backward_dense(y)
    other: Tape[Any] = Tape()
    other.leaf(np.zeros((1000, 3)), name="<x>")
    return {
        "tape": tape,
        "empty tape": Tape(),
        "var": x,
        "hook": x.register_hook(lambda g: g),
        "grads": grads,
        "node": tape.node(x),
        "table": grads.table(),
        "explain": tape.explain(x, grads),
        "non-finite": tape.first_nonfinite(),
        "difference": comparing.compare_tapes(tape, other),
        "gradcheck": gradcheck(ops.tanh, np.ones(2)),
        "model": MODEL,
        "parameter": MODEL.parameters()["0.weight"],
    }


def trained(path: str) -> dict[str, Any]:
    batches, rule = [BATCH] * 3, Adam(1e-3)
    fresh = Trainer(loss_fn, PARAMS, {"*.bias": rule, "*": rule}, accumulate=2, clip_norm=1.0, frozen=["0.bias"])
    trainer = Trainer(loss_fn, PARAMS, rule, trace=path, mode="eager", ema=0.9)
    result = trainer.fit(batches, steps=3, validation=[BATCH])
    step = capture(loss_fn, PARAMS, rule, BATCH)
    past = at(path, 1, loss_fn, batches)
    return {
        "fresh trainer": fresh,
        "trainer": trainer,
        "result": result,
        "history": result.history,
        "steps": result.history.steps,
        "captured step": step,
        "graph": step.graph,
        "kernel calls": step.lowered,
        "plan": step.plan,
        "profile": step.profile(BATCH),
        "verification": step.verify(1),
        "captured gradients": step.grads(BATCH),
        "evaluation": evaluate(loss_fn, PARAMS, BATCH),
        "function": capture_function(lambda x: ops.tanh(x), BATCH[0]),
        "past step": past,
        "continuation": past.continue_with(steps=2),
        "callback": EarlyStopping(),
        "data": data.digits()[0],
        "replayed": replay(path),
        "comparison": compare(path, path),
        "audit": audit(path, loss_fn, batches, sample=1, nonce=b"1"),
        "recovery": recover(path, f"{path}.new"),
    }


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    path = str(tmp_path_factory.mktemp("prints") / "run.dgrr")
    with ExitStack() as stack:
        found = taped() | trained(path)
        trace = stack.enter_context(open_trace(path))
        yield found | {"trace": trace, "step": trace[0], "verdict": Verdict.OK}


IN_TEXT_ONLY = {"node", "hook", "parameter", "function", "callback", "data", "step", "verdict"}
"""Of which notebooks show what they show of everything: the line that stands for them."""


def test_nothing_prints_an_address_or_all_that_it_holds(things: dict[str, Any]) -> None:
    for name, thing in things.items():
        for text in (str(thing), repr(thing)):
            assert " at 0x" not in text, name
            assert 0 < len(text) < 12_000 and text.count("\n") < 70, name
            assert "np.float32(" not in text or name == "step", name


def test_notebooks_show_closed_html(things: dict[str, Any]) -> None:
    for name, thing in things.items():
        if name in IN_TEXT_ONLY:
            assert not hasattr(thing, "_repr_html_"), name
            continue
        html = thing._repr_html_()
        Balanced(html)
        assert html.startswith(("<div", "<pre")), name
        assert "<x>" not in html, name
        assert len(html) < 60_000, name


def test_verdicts_and_differences_are_tables_in_a_notebook(things: dict[str, Any]) -> None:
    report, html = things["replayed"], things["replayed"]._repr_html_()
    assert html.startswith("<div") and f"<strong>{report.path}: ok (version 2, 3 steps)</strong>" in html
    rows = dict(re.findall(r"<tr><th[^>]*>(.*?)</th><td[^>]*>(.*?)</td></tr>", html))
    assert rows == {
        "structure": "proven",
        "chain": "proven",
        "update": "proven",
        "gradient": "not proven",
        "data": "not proven",
        "notes": "<br>".join(map(escape, report.notes)),
    }
    html = things["comparison"]._repr_html_()
    assert html.startswith("<div") and "<strong>ok: " in html and "<summary>as text</summary>" in html


def test_a_difference_names_its_tensors_and_settings_in_a_notebook(tmp_path: Path) -> None:
    for name, rate in (("a", 0.1), ("b", 0.2)):
        Trainer(loss_fn, PARAMS, Adam(rate), trace=tmp_path / name).fit([BATCH] * 3, steps=3)
    found = compare(tmp_path / "a", tmp_path / "b")
    html = found._repr_html_()
    Balanced(html)
    tables = [re.findall(r"<tr>(.*?)</tr>", table) for table in re.findall(r"<thead>(.*?)</table>", html)]
    cells = [[re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in table] for table in tables]
    assert cells[0][0] == ["differs at step 0", "dtype", "shape", "by how much"]
    assert [row[0] for row in cells[0][1:]] == [escape(tensor.title) for tensor in found.tensors]
    assert cells[0][1][3] == escape(found.tensors[0].figures())
    assert cells[1][0] == ["setting", "a", "b"]
    assert {row[0]: row[1:] for row in cells[1][1:]} == {
        key: [str(a), str(b)] for key, (a, b) in found.settings.items()
    }


def shown(things: dict[str, Any], name: str) -> str:
    return str(things[name])


def test_a_tape_shows_its_totals_and_nodes(things: dict[str, Any]) -> None:
    title, *_ = lines = shown(things, "tape").splitlines()
    assert title.endswith(": 4 nodes, 72.0 kB, 3,000 elements to train")
    assert [line.split("│")[3].strip() for line in lines if line.startswith("│")] == [
        "leaf",
        "leaf",
        "mul",
        "reduce_sum",
    ]


def test_gradients_show_where_they_are_not_finite(things: dict[str, Any]) -> None:
    assert shown(things, "grads").startswith("gradients: 3 of 4 nodes reached, the first not finite at node 0\n")
    assert repr(things["grads"]) == "<gradients of 4 nodes, 3 reached>"
    assert shown(things, "captured gradients").splitlines()[0].endswith(" reached, all finite")


def facts(things: dict[str, Any], name: str) -> tuple[str, dict[str, str]]:
    title, *rows = shown(things, name).splitlines()
    pairs = (row.strip().split("  ", 1) for row in rows)
    return title, {key: value.strip() for key, value in pairs}


def test_a_trainer_says_what_it_trains(things: dict[str, Any]) -> None:
    title, said = facts(things, "fresh trainer")
    assert title == "Trainer: 21 parameters, 0 steps done"
    rule = repr(Adam(1e-3))
    assert said["optimizer"] == f"*.bias: {rule}, *: {rule}"
    assert (said["group *.bias"], said["group *"]) == ("1 tensor: 2.bias", "2 tensors: 0.weight, 2.weight")
    assert (said["frozen"], said["accumulate"], said["clip norm"]) == ("1 tensor: 0.bias", "2", "1.0")
    assert (said["parameters"], said["captured"], said["mode"]) == ("21 in 4 tensors", "not yet", "replay")
    title, said = facts(things, "trainer")
    assert title == "Trainer: 21 parameters, 3 steps done"
    assert (said["mode"], said["averages"], said["steps done"]) == ("eager", "0.9", "3")
    assert said["trace"].endswith("run.dgrr")
    assert float(said["last loss"]) == pytest.approx(things["result"].losses[-1], rel=1e-5)
    assert repr([things["trainer"]]) == f"[<{title}>]"


def test_a_result_says_how_it_went(things: dict[str, Any]) -> None:
    result = things["result"]
    title, said = facts(things, "result")
    assert title.startswith("Result: 3 steps in ")
    assert said["best loss"] == f"{result.losses.min():.6g} at step {result.losses.argmin()}"
    assert said["state digest"] == result.state_digest
    assert float(said["validation_loss"]) == pytest.approx(result.history.epochs["validation_loss"][-1], rel=1e-5)
    assert said["loss"].startswith(f"{result.losses[0]:.6g} to {result.losses[-1]:.6g}")


def test_a_captured_step_says_what_it_is_made_of(things: dict[str, Any]) -> None:
    step = things["captured step"]
    _, said = facts(things, "captured step")
    assert said["graph"] == f"{len(step.graph.nodes)} nodes, {len(step.graph.values)} values"
    assert said["kernel calls"].startswith(f"{len(step.lowered.ops)} of ")
    html = step._repr_html_()
    assert all(f"<summary>{part}</summary>" in html for part in ("graph", "kernel calls", "memory"))


def test_a_trace_says_what_it_holds(things: dict[str, Any]) -> None:
    title, said = facts(things, "trace")
    assert title.endswith("run.dgrr: 3 steps, sealed, mode grads, 18 tensors")
    assert said["rules"].startswith("adam@1 (lr, beta1, beta2, eps, weight_decay)")
    assert len(said["root"]) == 32
    assert "<summary>18 tensors</summary>" in things["trace"]._repr_html_()


# ------------------------------------------------------------------ many nodes


@pytest.fixture(scope="module")
def long() -> tuple[Tape[Any], Any]:
    """2,002 nodes, made at three places."""
    tape: Tape[Any] = Tape()
    y = x = tape.leaf(np.ones(4), name="x")
    for _ in range(2000):
        y = ops.scale(y, 0.999)
    return tape, tape.backward_dense((y * x).sum())


@pytest.mark.parametrize(
    ("rows", "make"),
    [
        (2003, lambda tape, grads: tape),
        (2003, lambda tape, grads: grads),
        (2003, lambda tape, grads: grads.table()),
        (2003, lambda tape, grads: tape.summary()),
        (2003, lambda tape, grads: tape.explain("x", grads)),
    ],
)
def test_many_rows_are_counted_not_shown(long: Any, rows: int, make: Callable[..., Any]) -> None:
    lines = str(make(*long)).splitlines()
    ids = [int(line.split("│")[1]) for line in lines if line.startswith("│") and "⋮" not in line]
    assert ids == [*range(30), *range(rows - 10, rows)]
    assert lines[-1] == f"… {rows - 40:,} more"
    assert f"… {rows - 40:,} more" in make(*long)._repr_html_()


def test_all_rows_where_they_are_asked_for(long: Any) -> None:
    text = PlainTable("all", ("id", "what"), [{"id": n, "what": "word " * 20} for n in range(100)]).to_string(width=80)
    assert [int(line[:2]) for line in text.splitlines()[3:] if line[:2].strip()] == list(range(100))
    assert "more" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_what_is_not_shown_is_not_computed(long: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever prints gradients does not wait for the statistics of those that are not shown."""
    looked: list[int] = []
    monkeypatch.setattr("dgrr.tape.graph.backward.statistics", lambda array: looked.append(1) or _NONE)
    str(long[1])
    assert len(looked) == 40
    repr(long[1])
    assert len(looked) == 40


_NONE = {"norm": 0.0, "min": 0.0, "max": 0.0, "zeros": 0, "non-finite": 0}


def test_a_line_of_the_program_is_read_once(long: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from dgrr.tape.location import Location

    read: list[Any] = []
    of = Location.of
    monkeypatch.setattr(Location, "of", lambda place: read.append(place) or of(place))
    assert len(long[0].explain("x", long[1])) == 2003
    assert len(read) == 4
