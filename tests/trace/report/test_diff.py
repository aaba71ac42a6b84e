"""The page of two runs that part: the first difference is that of the comparison, and what is marked flows from it."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base import atomic_file
from dgrr.runtime import SGD, Adam, Keep, Trainer
from dgrr.tape import nn, ops
from dgrr.trace import (
    Cause,
    Comparison,
    OpDifference,
    OpDigests,
    TapeNode,
    Verdict,
    compare,
    diff_with_model,
    write_diff,
)
from dgrr.trace.comparing.losses import LossCurves
from dgrr.trace.comparing.ops import aligned, first_op
from dgrr.trace.comparing.tensors import TensorDifference

from ...browser import Browser
from .conftest import HOSTILE

F = "float32"


def batches() -> list[Any]:
    return [np.random.default_rng(step).standard_normal((4, 3)).astype(np.float32) for step in range(3)]


def train(path: Path, activation: Any, *, rate: float = 0.1, keep: Any = "every", seed: int = 0) -> Any:
    """A run of two branches that meet in the loss; the activation stands in the first."""
    model = nn.Sequential(nn.Linear(3, 5), activation, nn.Linear(5, 2))
    params = {**model.init(seed), "other": np.ones((4, 3), np.float32)}

    def loss_fn(p: Any, x: Any) -> Any:
        own = {name: p[name] for name in params if name != "other"}
        return model(own, x).sum() + ops.exp(x * p["other"]).sum()

    Trainer(loss_fn, params, Adam(rate), trace=Keep(path, ops=keep)).fit(batches(), steps=3)
    return loss_fn


@dataclass
class Shown:
    """A row of the page: its classes, and the text of its mark and of each side."""

    classes: set[str]
    place: str = ""
    mark: str = ""
    sides: list[str] = field(default_factory=list[str])

    @property
    def at(self) -> tuple[int | None, int | None]:
        """The positions in both runs; an equal row that says both at once has one side."""
        found = [int(number[1]) if (number := re.search(r"#(\d+) ", side)) else None for side in self.sides]
        return found[0], found[-1]


class Page(HTMLParser):
    """A page as a browser takes it apart: rows by section, tables, texts; every element that is opened is closed."""

    VOID = ("meta", "path", "br")

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.rows: dict[str, list[Shown]] = {}
        self.cells: dict[str, list[list[str]]] = {}
        self.said: dict[str, str] = {}
        self.tags = list[str]()
        self.ids = list[str]()
        self._open = list[tuple[str, str]]()
        self._section = ""
        self.feed(self.text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        classes = given.get("class", "")
        if tag == "section":
            self._section = given["id"]
        if tag == "tr":
            self.cells.setdefault(self._section, []).append([])
        if tag in ("td", "th"):
            self.cells[self._section][-1].append("")
        if "r" in classes.split():
            self.rows.setdefault(self._section, []).append(Shown(set(classes.split()), given.get("id", "")))
        if "c" in classes.split():
            self.rows[self._section][-1].sides.append("")
        if tag not in self.VOID:
            self._open.append((tag, classes))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        inside = [classes for _, classes in self._open]
        if "mark" in inside:
            self.rows[self._section][-1].mark += data
        elif any("c" in classes.split() for classes in inside):
            self.rows[self._section][-1].sides[-1] += data
        elif any(tag in ("td", "th") for tag, _ in self._open):
            self.cells[self._section][-1][-1] += data
        else:
            self.said[self._section] = self.said.get(self._section, "") + data

    def marked(self, section: str, mark: str) -> set[tuple[int | None, int | None]]:
        return {row.at for row in self.rows[section] if mark in row.classes}


def written(found: Comparison, folder: Path) -> Page:
    assert write_diff(found, folder / "diff.html") == (folder / "diff.html").stat().st_size
    return Page(folder / "diff.html")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    train(folder / "tanh", nn.Tanh())
    train(folder / "relu", nn.ReLU())
    train(folder / "longer", nn.Sequential(nn.Tanh(), nn.Tanh()))
    train(folder / "rate", nn.Tanh(), rate=0.2)
    train(folder / "first", nn.Tanh(), rate=0.2, keep="first")
    train(folder / "seed", nn.Tanh(), seed=1)
    return folder


# ------------------------------------------------------------------ what is marked


def downstream(nodes: Any, start: set[int]) -> set[int]:
    """All that takes one of these, and what takes that: forward along the recorded inputs."""
    found, waiting = set[int](), list(start)
    while waiting:
        position = waiting.pop()
        if position not in found:
            found.add(position)
            waiting += [taker for taker, node in enumerate(nodes) if position in node.parents]
    return found


def upstream_of_gradients(nodes: Any, grads: Any, values: set[int], start: set[int]) -> set[int]:
    """The nodes whose gradients are computed from these values or gradients."""
    found, arrived = set(start), {i for i, grad in enumerate(grads) if grad is not None}
    while True:
        reads = {i for i in arrived if i in found or i in values or values & set(nodes[i].parents)}
        new = {p for i in reads for p in nodes[i].parents} - found
        if not new:
            return found
        found |= new


def ops_of(found: Comparison) -> tuple[OpDigests, OpDigests]:
    assert found.ops is not None
    return found.ops


def test_the_first_difference_and_what_flows_from_it(runs: Path) -> None:
    found = compare(runs / "tanh", runs / "relu")
    page, (a, b) = written(found, runs), ops_of(found)
    assert found.op is not None
    (first,) = [row for row in page.rows["values"] if row.place == "first"]
    assert first.at == (found.op.index, found.op.index)
    assert first.mark == f"first difference: {found.op.short}, another op"
    assert "tanh" in first.sides[0] and "relu" in first.sides[1]
    for line in found.op.lines():
        assert line in page.said["summary"]
    reached = downstream(b.nodes, {found.op.index})
    differ = {i for i in range(len(b.nodes)) if a.values[i] != b.values[i]}
    assert {j for _, j in page.marked("values", "flows")} == (reached & differ) - {found.op.index}
    assert page.marked("values", "beside") == set()
    assert len(page.rows["values"]) == len(b.nodes) > len(reached)
    back = upstream_of_gradients(b.nodes, b.grads, reached, set())
    other = {i for i in range(len(b.nodes)) if a.grads[i] != b.grads[i]}
    assert {j for _, j in page.marked("gradients", "flows")} == back & other == other
    assert [row.at[1] for row in page.rows["gradients"]] == [
        i for i in reversed(range(len(b.nodes))) if b.grads[i] is not None
    ]
    quiet = [row for row in page.rows["gradients"] if "d" not in row.classes]
    assert any("exp" in row.sides[0] for row in quiet)  # the other branch


def test_an_op_that_was_added_and_one_that_was_removed(runs: Path) -> None:
    for pair, only, side in ((("tanh", "longer"), "b", 1), (("longer", "tanh"), "a", 0)):
        found = compare(*(runs / name for name in pair))
        page, nodes = written(found, runs), ops_of(found)[side].nodes
        assert found.op is not None
        (first,) = [row for row in page.rows["values"] if row.place == "first"]
        assert first.mark == f"first difference: {found.op.short}, only in {only}"
        assert (first.at[side], first.sides[1 - side]) == (found.op.index, "–")
        flows = {at[side] for at in page.marked("values", "flows")}
        assert flows == downstream(nodes, {found.op.index}) - {found.op.index}
        takers = [row.mark for row in page.rows["values"] if row.mark.endswith("other inputs")]
        assert takers == ["follows from the first, other inputs"]


CHAIN = (
    TapeNode("leaf", F, (2,), name="w"),
    TapeNode("exp", F, (2,), (0,)),
    TapeNode("tanh", F, (2,), (0,)),
    TapeNode("sin", F, (2,), (1,)),
    TapeNode("add", F, (2,), (2, 3)),
    TapeNode("sum", F, (), (4,)),
)


def digests(values: str, grads: str, nodes: tuple[TapeNode, ...] = CHAIN) -> OpDigests:
    return OpDigests(nodes, tuple(c.encode() for c in values), tuple(None if c == "." else c.encode() for c in grads))


def parted(a: OpDigests, b: OpDigests, op: OpDifference | None = None, **more: Any) -> Comparison:
    given: dict[str, Any] = {"op": op or first_op(a, b), "ops": (a, b), **more}
    return Comparison("a.dgrr", "b.dgrr", Verdict.DIVERGED, "step 7 is the first", Cause.GRADIENT, 7, **given)


@pytest.mark.parametrize(
    ("values", "grads", "first", "flows", "beside", "flows_back", "beside_back"),
    [
        ("aBcdef", "abcdef", 1, set(), set(), set(), set()),  # what differs is lost in the next op
        ("aBcDeF", "abcdef", 1, {3, 5}, set(), set(), set()),
        ("aBCDef", "abcdef", 1, {3}, {2}, set(), set()),  # a second difference, of another branch
        ("abCdef", "AbCdef", 2, set(), set(), {0}, {2}),  # add's backward reads that value: it gives to tanh and sin
    ],
)
def test_values_that_do_not_flow_from_the_first(
    tmp_path: Path,
    values: str,
    grads: str,
    first: int,
    flows: set[int],
    beside: set[int],
    flows_back: set[int],
    beside_back: set[int],
) -> None:
    page = written(parted(digests("abcdef", "abcdef"), digests(values, grads)), tmp_path)
    assert page.marked("values", "first") == {(first, first)}
    assert page.marked("values", "flows") == {(i, i) for i in flows}
    assert page.marked("values", "beside") == {(i, i) for i in beside}
    reached = downstream(CHAIN, {first})
    back = upstream_of_gradients(CHAIN, digests(values, grads).grads, reached, set())
    differ = {i for i, (x, y) in enumerate(zip("abcdef", grads, strict=True)) if x != y}
    assert {i for i, _ in page.marked("gradients", "flows")} == back & differ
    assert {i for i, _ in page.marked("gradients", "beside")} == differ - back


def test_the_first_gradient(tmp_path: Path) -> None:
    found = parted(digests("abcdef", "abcdef"), digests("abcdef", "AbcDef"))
    page = written(found, tmp_path)
    assert found.op is not None and found.op.what == "grad"
    assert page.marked("values", "first") == set()
    assert "all 6 values are equal" in page.said["values"]
    assert page.marked("gradients", "first") == {(3, 3)}
    (first,) = [row for row in page.rows["gradients"] if row.place == "first"]
    assert first.mark == f"first difference: {found.op.short}"
    assert CHAIN[3] == found.op.target
    assert page.marked("gradients", "flows") == {(0, 0)}  # exp, between the two, has the same in both
    page = written(parted(digests("abcdef", "abcdef"), digests("abcdef", "ABcDef")), tmp_path)
    assert page.marked("gradients", "flows") == {(0, 0), (1, 1)}


def test_inputs_that_differ_stand_out(tmp_path: Path) -> None:
    page = written(parted(digests("abcdef", "abcdef"), digests("aBcDEF", "abcdef")), tmp_path)
    assert "<small>of #2, <b>#3</b></small>" in page.text


def test_runs_that_begin_otherwise_show_their_first_step(runs: Path) -> None:
    found = compare(runs / "tanh", runs / "seed")
    page, (a, b) = written(found, runs), ops_of(found)
    assert (found.cause, found.op) == (Cause.START, None)
    first = next(i for i, (x, y) in enumerate(zip(a.values, b.values, strict=True)) if x != y)
    assert page.marked("values", "first") == {(first, first)}
    named = first_op(a, b)
    assert named is not None and page.rows["values"][first].mark == f"first difference: {named.short}"


# ------------------------------------------------------------------ alignment


def test_long_tapes_are_aligned_to_their_end() -> None:
    rng = np.random.default_rng(0)
    names = [("exp", "tanh", "sin", "add")[k] for k in rng.integers(0, 4, 3000)]
    a = [TapeNode(name, F, (k % 7,)) for k, name in enumerate(names)]
    b = [*a[:50], TapeNode("new", F, ()), *a[50:900], *a[1500:2000], TapeNode("other", F, ()), *a[2001:]]
    blocks = list(aligned(a, b))
    i = j = 0
    for tag, i1, i2, j1, j2 in blocks:
        assert (i1, j1) == (i, j)
        i, j = i2, j2
        assert tag != "equal" or a[i1:i2] == b[j1:j2]
    assert (i, j) == (len(a), len(b))
    assert ("insert", 50, 50, 50, 51) in blocks
    same = {j1 + k for tag, i1, i2, j1, _ in blocks if tag == "equal" for k in range(i2 - i1)}
    assert set(range(50)) | set(range(51, 800)) <= same
    assert set(range(len(b) - 500, len(b))) <= same


# ------------------------------------------------------------------ the rest of the page


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
