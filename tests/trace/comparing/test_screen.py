"""What a comparison looks like: it fits a screen, is plain text, and is readable where there are no blocks."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.screen.curves import ASCII, BLOCKS
from dgrr.trace import Cause, Comparison, OpDifference, TapeNode, TensorDifference, Verdict, compare
from dgrr.trace.comparing.losses import LossCurves
from dgrr.trace.comparing.policy import BITWISE
from dgrr.trace.comparing.result import COLUMNS, LINES
from dgrr.trace.comparing.tensors import tensor_difference

Told = dict[str, Any]
Write = Callable[..., Path]


@pytest.fixture
def utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that shows blocks."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "utf-8"))


def test_a_whole_screen(write: Write, utf8: None) -> None:
    def changed(step: int, told: Told) -> None:
        if step == 3:
            told["loss"] = np.nextafter(told["loss"], np.float32(9))
            told["grads"]["w"] = told["grads"]["w"].copy()
            told["grads"]["w"][1, 0] += np.float32(0.5)
        told["hyper"]["lr"] = 0.125 if step < 3 else 0.25

    a, b = write("a", numerics=3), write("b", changed, numerics=3, seed=4)
    assert (
        str(compare(a, b))
        == f"""\
diverged (gradient): step 3 is the first that differs: from equal data and the equal state of step 2
  it computes another loss
  a: {a}
  b: {b}
  which op: not recorded in a and b at step 3 (Keep.ops)
loss, f32: differs by 5.96e-08, relatively 1.19e-07, 1 ULP
  a 0.5 (0x1.0000000000000p-1, bits 3f000000)
  b 0.50000006 (0x1.0000020000000p-1, bits 3f000001)
gradient of 'w', f32 (3, 2): 1 of 6 differ by up to 0.5, relatively 0.435
loss of steps 0 to 7, on a scale from 0.25 to 2:
  a █▄▃▂▂▁▁▁
  b █▄▃▂▂▁▁▁
       ^ step 3: a 0.5, b 0.50000006; before 0.666666687 in both
settings that differ (a -> b):
  seed: 0 -> 4
  lr: 0.125 -> 0.25"""
    )


def test_an_equal_answer_says_what_was_not_read(write: Write) -> None:
    a, b = write("a"), write("b")
    note = "  by the last links of both; not read: earlier links and recorded values (proven=True reads them)"
    assert str(compare(a, b)).splitlines() == ["ok: equal to the bit: 8 steps", f"  a: {a}", f"  b: {b}", note]
    note = "  step by step; not read: values whose digests agree (proven=True reads them)"
    assert str(compare(a, b, policy="ulp=2")).splitlines() == [
        "ok: equal within ulp=2: 8 steps",
        f"  a: {a}",
        f"  b: {b}",
        note,
    ]


def tensors(count: int) -> list[TensorDifference]:
    rng = np.random.default_rng(0)
    found = []
    for i in range(count):
        a = rng.standard_normal((1, 30))
        b = (a.view(np.uint64) + np.arange(1, 31, dtype=np.uint64)).view(np.float64)
        found.append(tensor_difference(f"blocks.{i}.query.w", "grad", "f64", a, b, BITWISE))
    return [tensor for tensor in found if tensor is not None]


def crowded(count: int) -> Comparison:
    """All that a comparison can say at once."""
    node = TapeNode("linear", "float64", (4, 2), (0,), scope="blocks.0.attention", place="train.py:7: h = f(p, x)")
    wide = {f"key {i}": ("x" * 50, "y" * 50) for i in range(count)}
    return Comparison(
        "a.dgrr",
        "b.dgrr",
        Verdict.DIVERGED,
        "step 3 is the first that differs: from equal state and data it computes another loss",
        Cause.GRADIENT,
        3,
        tensors(count),
        OpDifference("changed", 3, node, 9, was=TapeNode("exp", "float64", (4, 2), (0,))),
        settings=wide,
        environment=wide,
        losses=LossCurves(tuple(range(40)), tuple([1.0] * 40), tuple([2.0] * 40), 1.0, (1.0, 2.0)),
        notes=["a is not sealed: its run was not finished"],
    )


@pytest.mark.parametrize("count", [1, 4, 5, 6, 40])
def test_it_fits_a_screen(count: int) -> None:
    lines = str(crowded(count)).splitlines()
    assert len(lines) <= LINES, lines
    assert max(map(len, lines)) <= COLUMNS, max(lines, key=len)
    assert lines[-1].startswith("  key ") or lines[-1].endswith(" more keys differ")
    assert "environment that differ (a -> b):" in "\n".join(lines)


def test_at_most_five_tensors_in_full_and_the_rest_counted() -> None:
    text = str(crowded(40))
    assert [f"gradient of 'blocks.{i}.query.w', f64" in text for i in range(6)] == [True] * 5 + [False]
    assert text.count("  ULP 1: 1   2-3: 2   4-7: 4   8-15: 8   16-31: 15") == 5
    assert "also different: gradient of 'blocks.5.query.w'" in text
    assert "and 31 more" in text.replace("\n ", "")


def test_curves_have_one_scale() -> None:
    curves = LossCurves((0, 1, 2, 3), (8.0, 6.0, 4.0, None), (8.0, 1.0, float("nan"), float("inf")))
    assert curves.lines(None, ASCII) == [
        "loss of steps 0 to 3, on a scale from 1 to 8:",
        "  a #%= ".replace("=", ASCII[round(3 / 7 * 7)]).replace("%", ASCII[round(5 / 7 * 7)]),
        "  b #_!!",
    ]
    assert LossCurves((), (), ()).lines(None, ASCII) == []


def test_curves_of_losses_of_many_sizes_are_logarithmic() -> None:
    curves = LossCurves((0, 1, 2), (1e6, 1e3, 1.0), (1e6, 1e3, 1.0))
    assert curves.lines(None, ASCII)[:2] == ["loss of steps 0 to 2, on a logarithmic scale from 1 to 1e+06:", "  a #+_"]
    extreme = LossCurves((0, 1, 2), (1.7e308, 0.0, -1.7e308), (1.0, 1.0, 1.0))
    assert extreme.lines(None, ASCII)[1] == "  a #+_"
    assert LossCurves((0,), (3.0,), (3.0,)).lines(None, ASCII)[1] == "  a _"


def test_long_runs_have_forty_columns_and_the_step_is_marked(write: Write) -> None:
    def changed(step: int, told: Told) -> None:
        told["loss"] = told["loss"] + np.float32(step == 60)

    found = compare(write("a", steps=100, record="digest"), write("b", changed, steps=100, record="digest"))
    assert found.losses is not None
    assert (len(found.losses.steps), found.losses.steps[0], found.losses.steps[-1]) == (40, 0, 99)
    *_, a, b, marked = str(found).splitlines()
    assert (len(a), len(b)) == (44, 44)
    column = marked.index("^") - 4
    assert found.losses.steps[column] <= 60 < found.losses.steps[column + 1]
    assert "step 60: a 0.0327868834, b 1.03278685; before 0.0333333351 in both" in marked


def test_losses_that_differ_in_the_last_digits_are_told_apart() -> None:
    curves = LossCurves((0,), (1.0,), (1.0,), None, (1.0, 1.0000000000000002))
    assert curves.lines(0, ASCII)[-1] == "    ^ step 0: a 1, b 1.0000000000000002"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "no such"])
def test_without_blocks(write: Write, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    found = compare(write("a"), write("b", steps=5))

    class Terminal:
        pass

    terminal = Terminal()
    terminal.encoding = encoding  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "stdout", terminal)
    text = str(found)
    monkeypatch.undo()
    assert text.isascii()
    assert "  a #=-.." in text
    assert not set(BLOCKS) & set(text)


def test_a_tensor_in_one_trace_alone_is_told(write: Write) -> None:
    def changed(step: int, told: Told) -> None:
        if step == 3:
            told["loss"] = told["loss"] + 1
            del told["grads"]["b"]

    assert "gradient of 'b', f32 (2,): in a only" in str(compare(write("a"), write("b", changed))).splitlines()
