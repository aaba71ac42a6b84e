"""The page of two runs that part: the first difference is that of the comparison, and what is marked flows from it."""

import re
from pathlib import Path

import numpy as np
import pytest

from dgrr.base import atomic_file
from dgrr.runtime import SGD, Keep, Trainer
from dgrr.tape import nn
from dgrr.trace import Cause, OpDigests, TapeNode, compare, diff_with_model, write_diff
from dgrr.trace.comparing.losses import LossCurves
from dgrr.trace.comparing.tensors import TensorDifference

from ...browser import Browser
from .conftest import HOSTILE
from .diff_page import F, Page, batches, digests, parted, train, written


def test_settings_losses_and_tensors(runs: Path) -> None:
    found = compare(runs / "tanh", runs / "rate")
    page = written(found, runs)
    assert page.cells["settings"] == [["setting", "a", "b"], ["lr", "0.1", "0.2"]]
    assert found.losses is not None
    told = [
        [str(k), repr(x), repr(y)] for k, x, y in zip(found.losses.steps, found.losses.a, found.losses.b, strict=True)
    ]
    assert page.cells["loss"] == [["step", "a", "b"], *told]
    assert found.losses.around(0) in page.said["loss"]
    tensors = [row for row in page.cells["tensors"] if row[0] != "tensor"]
    assert [row[0] for row in tensors] == [tensor.title for tensor in found.tensors]
    assert "all 14 values are equal" in page.said["values"]
    assert f"{found.word} {found.sentence}" in page.said["summary"]


def test_every_tensor_is_on_the_page_once(tmp_path: Path) -> None:
    for count in (8, 9, 11):
        tensors = [TensorDifference(f"layer{i}.weight", "grad", (2,), "f32") for i in range(count)]
        found = parted(digests("abcdef", "abcdef"), digests("aBcdef", "abcdef"), tensors=tensors)
        page = written(found, tmp_path).text
        assert [page.count(f"'{tensor.name}'") for tensor in tensors] == [1] * count
        assert page.count(f"<summary>{count - 8} more</summary>") == (count > 8)


def strokes(page: Page, side: str) -> str:
    found = re.search(rf'<path class="{side}" d="([^"]*)"', page.text)
    assert found is not None
    return found[1]


def test_a_loss_that_is_not_finite_or_has_ended(tmp_path: Path) -> None:
    losses = LossCurves((0, 1, 2, 3, 4), (1.0, 2.0, float("nan"), 1.0, 3.0), (1.0, float("inf"), 2.0, None, None))
    page = written(parted(digests("abcdef", "abcdef"), digests("aBcdef", "abcdef"), losses=losses), tmp_path)
    assert strokes(page, "a") == "M0 100L25 50M75 100L100 0"
    assert strokes(page, "b") == "M0 100h0M50 50h0"
    assert "a line breaks where the loss is not finite" in page.said["loss"]
    assert page.cells["loss"][3:5] == [["2", "nan", "2.0"], ["3", "1.0", "ended"]]


def test_what_must_be_recorded_is_said(runs: Path) -> None:
    found = compare(runs / "first", runs / "seed")
    assert found.ops is not None
    found.step, found.ops = 2, None
    page = written(found, runs)
    assert "values" in page.said and page.rows == {}
    assert (
        "The ops of step 2 are not shown: they must be recorded in both runs, as digests of one kind. Record both with "
        'trace=Keep(path, ops=[2]), or with ops="every", and compare them again.'
    ) in page.said["values"]
    assert "No step differs, so none is shown" in written(compare(runs / "tanh", runs / "tanh"), runs).said["values"]


def test_only_the_recorded_steps_have_ops(tmp_path: Path) -> None:
    def run(name: str, last: float) -> Path:
        data = [np.ones(2), np.ones(2), np.full(2, last)]
        keep = Keep(tmp_path / name, ops="first")
        Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.1), trace=keep).fit(data, steps=3)
        return tmp_path / name

    found = compare(run("a", 1.0), run("b", 2.0))
    assert (found.cause, found.step, found.ops) == (Cause.DATA, 2, None)
    assert "ops of step 2 are not shown" in written(found, tmp_path).said["values"]


def test_a_run_that_its_model_computes_now(runs: Path, tmp_path: Path) -> None:
    loss_fn = train(tmp_path / "relu", nn.ReLU())
    found = diff_with_model(runs / "tanh", loss_fn, batches())
    page = written(found, tmp_path)
    assert found.op is not None
    assert page.marked("values", "first") == {(found.op.index, found.op.index)}
    assert "computed now" in page.said["summary"]


# ------------------------------------------------------------------ a file for a browser


def test_what_a_trace_says_is_text(tmp_path: Path) -> None:
    hostile = TapeNode("leaf", F, (2,), (), HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    nodes = (hostile, TapeNode(HOSTILE, F, (2,), (0,), place="<!--script-->"))
    a, b = digests("ab", "ab", nodes), digests("Ab", "ab", nodes)
    found = parted(a, b, settings={HOSTILE: (HOSTILE, None)}, notes=[HOSTILE])
    found.a = found.b = HOSTILE
    found.sentence = HOSTILE
    page = written(found, tmp_path)
    assert "img" not in page.tags and page.tags.count("script") == 1
    assert page.rows["values"][0].sides[0].count(HOSTILE) == 4
    assert page.cells["settings"][1] == [HOSTILE, HOSTILE, "none"]
    assert page.said["summary"].count(HOSTILE) >= 3


def test_nothing_is_asked_for_and_no_other_script_runs(runs: Path) -> None:
    page = written(compare(runs / "tanh", runs / "relu"), runs)
    assert "default-src 'none'" in page.text and "script-src 'sha256-" in page.text
    assert not re.search(r"(src|href)=(?!\"#first\")|url\(|@import|https?:", page.text)
    assert len(page.ids) == len(set(page.ids))
    script = page.text[page.text.index("<script>") : page.text.index("</script>")]
    assert script.count("\n") <= 40


def test_light_dark_and_paper_have_every_colour(runs: Path) -> None:
    text = written(compare(runs / "tanh", runs / "relu"), runs).text
    light, dark, paper = (set(re.findall(r"(--[\w-]+): ", block)) for block in re.findall(r":root \{([^}]*)\}", text))
    assert light == dark == paper == set(re.findall(r"var\((--[\w-]+)\)", text))


def test_two_thousand_nodes_that_all_differ(tmp_path: Path) -> None:
    place = "training/transformer.py:1234: hidden = self.attention(self.norm(hidden), mask=mask)"
    nodes = tuple(
        TapeNode("matmul", F, (16, 128, 768), (i - 1, i - 2) if i > 1 else (), "", "", f"blocks.{i}.attention", place)
        for i in range(2000)
    )
    a, b = (OpDigests(nodes, tuple([bytes([side]) * 16] * 2000), tuple([bytes([side]) * 16] * 2000)) for side in (1, 2))
    page = written(parted(a, b), tmp_path)
    assert len(page.rows["values"]) == len(page.rows["gradients"]) == 2000
    assert len(page.marked("values", "flows")) == 1998
    assert len(page.text.encode()) < 2_000_000


def test_long_stretches_of_equal_ops_are_folded(tmp_path: Path) -> None:
    nodes = tuple(TapeNode("exp", F, (2,), (i - 1,) if i else ()) for i in range(40))
    values = [bytes([i]) for i in range(40)]
    b = [*values[:20], b"other", *values[21:]]
    page = written(parted(*(OpDigests(nodes, tuple(x), (None,) * 40) for x in (values, b))), tmp_path)
    assert re.findall(r"<summary>([^<]*)</summary>", page.text) == ["18 equal ops", "17 equal ops"]
    assert "gradients" not in page.said


# ------------------------------------------------------------------ files


def test_a_trace_is_never_replaced(runs: Path) -> None:
    found = compare(runs / "tanh", runs / "relu")
    before = (runs / "relu").read_bytes()
    with pytest.raises(
        ValueError, match="write_diff: argument 'out': .*relu is one of the traces: give the page another"
    ):
        write_diff(found, runs / "relu")
    assert (runs / "relu").read_bytes() == before


def test_the_page_is_whole_or_not_there(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "page.html"
    out.write_text("before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_file.system, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_diff(compare(runs / "tanh", runs / "relu"), out)
    assert out.read_text() == "before" and [*tmp_path.iterdir()] == [out]


def test_no_page_of_what_could_not_be_read(runs: Path, tmp_path: Path) -> None:
    found = compare(runs / "tanh", tmp_path / "missing")
    expected = "write_diff: argument 'found': expected a comparison of two traces that can be read, got io: cannot open"
    with pytest.raises(ValueError, match=expected):
        write_diff(found, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


# ------------------------------------------------------------------ in a browser


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_is_read_without_scrolling_sideways(runs: Path, browser: Browser, width: int, dark: bool) -> None:
    write_diff(compare(runs / "tanh", runs / "relu"), runs / "diff.html")
    browser.open(runs / "diff.html", width=width, dark=dark)
    assert browser.console() == []
    assert browser.js("return performance.getEntriesByType('resource').length") == 0
    assert browser.js("return document.documentElement.scrollWidth") <= width
    ground = browser.js("return getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(18, 21, 25)" if dark else "rgb(245, 246, 247)")
    boxes = browser.js(
        "return [...document.querySelectorAll('#first .c')].map(c => c.getBoundingClientRect().toJSON())"
    )
    beside = boxes[0]["top"] == boxes[1]["top"] and boxes[0]["right"] <= boxes[1]["left"]
    below = boxes[0]["left"] == boxes[1]["left"] and boxes[0]["bottom"] <= boxes[1]["top"]
    assert (beside, below) == (width == 1280, width == 390)


def test_keys_go_from_difference_to_difference(runs: Path, browser: Browser) -> None:
    write_diff(compare(runs / "tanh", runs / "relu"), runs / "diff.html")
    browser.open(runs / "diff.html")
    here = "return [...document.querySelectorAll('.d')].indexOf(document.activeElement)"
    last = len(browser.all(".d")) - 1
    assert browser.js(here) == -1
    browser.press("ARROW_DOWN")  # which scrolls, where no row has the focus
    assert browser.js(here) == -1
    browser.press("j")
    assert browser.js(here) == 0 and browser.js("return document.activeElement.id") == "first"
    browser.press("j", "ARROW_DOWN", "ARROW_UP")
    assert browser.js(here) == 1
    assert browser.find("#where").text == f"2 of {last + 1}"
    browser.press("k", "k")
    assert browser.js(here) == 0
    browser.find("#on").click()
    assert browser.js(here) == 1
    browser.press(*"j" * (last + 3))
    assert browser.js(here) == last
    stops = "return [...document.querySelectorAll('.d')].filter(row => row.tabIndex == 0).length"
    assert browser.js(stops) == 1
