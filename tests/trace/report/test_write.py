"""What a page holds: the same numbers as the trace, and nothing that runs but its own scripts."""

import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.tape import NUMERICS
from dgrr.trace import CompletedStep, Verdict, at, open_trace, state_after, write_report
from dgrr.trace.comparing.result import Comparison
from dgrr.trace.report.charts.plots import library
from dgrr.trace.report.chosen import chosen
from dgrr.trace.report.codes import ABSENT, NON_FINITE, ZERO, decode, encode
from dgrr.trace.report.differences import steps_of
from dgrr.trace.report.figures import distance, figures, histogram, norm
from dgrr.trace.report.page import page
from dgrr.trace.report.run import PageRun
from dgrr.trace.v2.repair.forge import flip_bit

from ...keeping import recorder_of
from .conftest import HOSTILE, NOTES, PART, STEPS, Page, model_run, record

RecordRun = Callable[..., Path]


# ------------------------------------------------------------------ numbers


def test_losses_are_those_of_the_trace(both: Page, digits: Path, other_digits: Path) -> None:
    for run, path in zip(both.data["runs"], (digits, other_digits), strict=True):
        with open_trace(path) as trace:
            assert both.array(run["loss"]).tolist() == trace.loss.astype(np.float64).tolist()


def test_metrics_are_those_of_the_trace(both: Page, digits: Path) -> None:
    with open_trace(digits) as trace:
        told = [view.metrics()["accuracy"] for view in trace]
    assert both.array(both.data["runs"][0]["metrics"]["accuracy"]).tolist() == told
    assert 0 < max(told) <= 1


def lines_of(chart: Any) -> list[tuple[int, str, bool]]:
    return [(line["run"], line["label"], line["points"]) for line in chart["lines"]]


def test_validations_are_drawn_beside_the_training(noted: Path, digits: Path, folder: Path) -> None:
    write_report([noted, digits], folder / "noted-and-not.html")
    page = Page(folder / "noted-and-not.html")
    loss = page.data["charts"]["loss"]
    assert lines_of(loss) == [
        (0, "A · noted.dgrr", False),
        (1, "B · digits.dgrr", False),
        (0, "A · noted.dgrr validation_loss", True),
    ]
    with open_trace(noted) as trace:
        validations = trace.validations()
    assert list(validations) == [9, 19, 29, 39]
    line = loss["lines"][2]
    assert page.array(line["xs"]).tolist() == list(validations)
    assert page.array(line["ys"]).tolist() == [figures["validation_loss"] for figures in validations.values()]
    assert line["colour"] == loss["lines"][0]["colour"]
    accuracy = next(chart for chart in page.data["charts"]["rates"]["charts"] if chart["title"] == "accuracy")
    assert lines_of(accuracy)[2:] == [(0, "A · noted.dgrr validation_accuracy", True)]
    best = min(validations, key=lambda step: validations[step]["validation_loss"])
    run, other = page.data["runs"]
    assert run["best_validation"] == [best, validations[best]["validation_loss"]]
    assert other["best_validation"] == [None, None]
    assert run["told_notes"] == {**NOTES, "layers": "[16, 10]"}
    ((steps, time, host),) = run["noted"]
    assert (steps, time) == (0, "2001-09-09 01:46:40 UTC")
    assert "; dgrr " in host
    assert (other["told_notes"], other["noted"]) == ({}, [])


def test_the_validation_of_a_lone_run_has_a_colour_of_its_own(noted: Path, folder: Path) -> None:
    write_report([noted], folder / "noted.html")
    steps, validation = Page(folder / "noted.html").data["charts"]["loss"]["lines"]
    assert (steps["points"], validation["points"]) == (False, True)
    assert steps["colour"] != validation["colour"]


def test_a_figure_of_validations_alone_has_a_chart(folder: Path) -> None:
    rule, w = SGD(0.1), {"w": np.ones(2)}
    law: dict[str, Any] = {"rule": rule.rule, "hyperparameters": list(rule.hyperparameters()), "numerics": NUMERICS}
    recorder = recorder_of(folder / "alone.dgrr", params=w, state=rule.init(w), **law)
    state = rule.init(w)
    rule.step(w, w, state)
    told: dict[str, Any] = {"hyper": rule.hyperparameters(), "grads": w, "params": w, "state": state, "batch": w["w"]}
    recorder.step(CompletedStep(step=0, loss=np.array(1.0), **told))
    recorder.validation({"validation_loss": np.nan, "validation_recall": 0.5})
    recorder.seal()
    write_report([folder / "alone.dgrr"], folder / "alone.html")
    page = Page(folder / "alone.html")
    assert page.data["charts"]["rates"]["charts"][0]["title"] == "recall"
    assert np.isnan(page.array(page.data["charts"]["loss"]["lines"][1]["ys"])).tolist() == [True]
    assert page.data["runs"][0]["best_validation"] == [None, None]


def test_norms_ratios_and_figures(both: Page, digits: Path) -> None:
    shown = both.data["runs"][0]["figures"]
    params = shown["params"]
    norms = decode(both.array(shown["norms"])).reshape(STEPS, len(params))
    ratios = decode(both.array(shown["ratios"])).reshape(STEPS, len(params))
    grads = both.array(shown["gradient_figures"]).reshape(STEPS, len(params), 5)
    values = both.array(shown["value_figures"]).reshape(STEPS, -1, 5)
    with open_trace(digits) as trace:
        for step in (0, 7, STEPS - 1):
            recorded = trace.gradients(step)
            before = state_after(digits, step - 1) if step else trace.keyframe(0)
            after = state_after(digits, step)
            for i, name in enumerate(params):
                g, w, moved = (x.astype(np.float64) for x in (recorded[name], before[name], after[name] - before[name]))
                assert norms[step, i] == pytest.approx(np.linalg.norm(g), rel=2e-3)
                assert ratios[step, i] == pytest.approx(np.linalg.norm(moved) / np.linalg.norm(w), rel=3e-3)
                expected = (np.linalg.norm(g), g.min(), g.max(), (g == 0).mean(), 0)
                assert grads[step, i].tolist() == pytest.approx(expected, rel=1e-6)
            last = trace.schema.tensors[-1].name
            assert values[step, -1, 0] == pytest.approx(np.linalg.norm(after[last].astype(np.float64)), rel=1e-6)
        total = both.array(shown["total"])
        squares = [np.sum(g.astype(np.float64) ** 2) for g in trace.gradients(7).values()]
        assert total[7] == pytest.approx(np.sqrt(np.sum(squares)), rel=1e-6)


def test_histograms_count_every_element(both: Page, digits: Path) -> None:
    shown = both.data["runs"][0]["figures"]
    counts = both.array(shown["counts"]).reshape(-1, 40)
    with open_trace(digits) as trace:
        for found, bins in zip(shown["histograms"], counts, strict=True):
            name = shown["params"][found["param"]]
            gradient = trace.tensor(name, step=found["step"])
            assert bins.sum() == gradient.size
            if found["what"] == "gradients":
                assert (found["low"], found["high"]) == (float(gradient.min()), float(gradient.max()))
    assert {found["step"] for found in shown["histograms"]} >= {0, STEPS - 1}


def test_a_digest_trace_has_gradients_by_its_model(digests: Path, digits: Path, folder: Path, both: Page) -> None:
    written = write_report([digests], folder / "digests.html")
    run = Page(folder / "digests.html").data["runs"][0]
    assert written.proofs[0].verdict is Verdict.UNPROVEN
    assert (run["figures"]["norms"], run["figures"]["value_figures"]) == (None, None)
    assert "record the run with record='grads', or give its model" in run["notes"][0]
    assert (
        write_report([digests], folder / "digests.html", make_run=model_run, rebuild=[]).proofs[0].gradient == "proven"
    )
    computed, recorded = Page(folder / "digests.html"), both
    for key in ("norms", "ratios", "gradient_figures", "value_figures"):
        mine, other = (p.data["runs"][0]["figures"][key] for p in (computed, recorded))
        assert computed.array(mine).tobytes() == recorded.array(other).tobytes()


def test_the_graph_is_that_of_the_first_step_with_ops(both: Page, digits: Path) -> None:
    graph = both.data["runs"][0]["graph"]
    with open_trace(digits) as trace:
        found = trace.ops(0)
    assert found is not None and (graph["step"], graph["rebuilt"]) == (0, False)
    assert graph["op"] == [node.op for node in found.nodes]
    assert graph["parents"] == [list(node.parents) for node in found.nodes]
    assert graph["place"] == [node.place for node in found.nodes]


def test_rebuilt_nodes_are_those_of_the_past_step(both: Page, digits: Path) -> None:
    (graph,) = both.data["runs"][0]["rebuilt"]
    past = at(digits, 3, *model_run())
    table = past.table()
    assert (graph["step"], graph["loss"], len(graph["op"])) == (3, float(past.loss), len(table))
    mine = sorted(x for x in graph["gradient"] if x is not None)
    theirs = [row["gradient norm"] for row in table if row["gradient norm"] is not None]
    assert mine == pytest.approx(sorted(theirs), rel=1e-12)
    assert graph["bytes"][graph["name"].index("0.weight")] == 64 * 16 * 4


def test_by_itself_it_rebuilds_first_last_and_worst(digits: Path, folder: Path) -> None:
    written = write_report([digits], folder / "worst.html", make_run=model_run)
    with open_trace(digits) as trace:
        greatest = [max(norm(g) for g in trace.gradients(step).values()) for step in range(STEPS)]
    assert written.rebuilt == tuple(sorted({0, int(np.argmax(greatest)), STEPS - 1}))


def test_where_two_runs_part(both: Page) -> None:
    (found,) = both.data["differences"]
    assert (found["same"], found["step"], found["cause"]) == (False, PART, "rule")
    marks = both.array(found["gradients"]).reshape(STEPS, -1)
    assert not marks[: PART + 1].any()  # the gradients of that step are the same, only what is made of them differs
    assert (marks[PART + 1 :] == 1).all()


def test_what_the_first_run_has_not_is_unknown_and_not_the_same(folder: Path) -> None:
    ones = np.ones(2, np.float32)
    for name, params, steps in (("short", ["w"], 2), ("long", ["w", "more"], 3)):
        grads = dict.fromkeys(params, ones)
        record(folder / f"{name}.dgrr", grads, steps, lambda step, grads=grads: {"grads": grads})
    write_report([folder / "short.dgrr", folder / "long.dgrr"], folder / "lengths.html")
    page = Page(folder / "lengths.html")
    (found,) = page.data["differences"]
    params = page.data["runs"][1]["figures"]["params"]
    marks = page.array(found["gradients"]).reshape(3, 2)
    assert marks[:, params.index("w")].tolist() == [0, 0, 2]
    assert marks[:, params.index("more")].tolist() == [2, 2, 2]


def test_validations_behind_the_last_step_that_is_shown_are_left_out() -> None:
    told = SimpleNamespace(validations={step: {"validation_loss": step / 2} for step in (1, 2, 3, 4)})
    run: Any = SimpleNamespace(losses=np.zeros(3), told=told)
    steps, values = vars(PageRun)["validations"].fget(run)["validation_loss"]
    assert (steps.tolist(), values.tolist()) == ([1, 2], [0.5, 1.0])


def test_steps_around_a_difference_are_special() -> None:
    parted = [Comparison("a", "b", Verdict.DIVERGED, "", step=step) for step in (7, None, 30)]
    assert steps_of(parted) == [6, 7, 8, 29, 30, 31]


def test_marks_of_a_troubled_run(troubled: Path, folder: Path) -> None:
    write_report([troubled], folder / "troubled.html")
    shown = Page(folder / "troubled.html")
    run = shown.data["runs"][0]
    codes = shown.array(run["figures"]["norms"]).reshape(20, 3)
    names = run["figures"]["params"]
    assert (codes[:, names.index("dead")] == ZERO).all()
    assert codes[15, names.index(HOSTILE)] == NON_FINITE and run["nonfinite"] == [15]
    assert codes[16, names.index("wild")] == ABSENT
    exploding = codes[:, names.index("wild")] >= shown.array(run["figures"]["exploding"])[names.index("wild")]
    assert [step for step in range(20) if exploding[step] and codes[step, names.index("wild")] < ABSENT] == [12]
    assert any("'mine@1' is not known" in note for note in run["notes"])
    assert any(note.startswith("worth a look: no gradient reached dead:") for note in run["notes"])
    assert run["figures"]["ratios"] is None


def test_an_update_of_weights_that_are_zero_has_no_ratio(folder: Path) -> None:
    def loss_of(p: Any, x: Any) -> Any:
        return ((p["w"] - x) ** 2).sum()

    trainer = Trainer(loss_of, {"w": np.zeros(2)}, SGD(0.25), trace=folder / "zero.dgrr")
    trainer.fit([np.ones(2)], steps=3, epochs=3)  # w is 0, 0.5, 0.75 before the steps
    write_report([folder / "zero.dgrr"], folder / "zero.html")
    page = Page(folder / "zero.html")
    codes = page.array(page.data["runs"][0]["figures"]["ratios"])
    assert codes[0] == ABSENT
    assert decode(codes[1:]) == pytest.approx([0.25 / 0.5, 0.125 / 0.75], rel=2e-3)


def test_a_damaged_trace_is_shown_up_to_its_damage(record_run: RecordRun, folder: Path) -> None:
    path = record_run()
    with open_trace(path) as trace:
        offset = trace[4]._frame.offset
    flip_bit(path, path.with_name("flipped.dgrr"), offset, 0)
    written = write_report([path.with_name("flipped.dgrr")], folder / "flipped.html")
    run = Page(folder / "flipped.html").data["runs"][0]
    assert (run["steps"], written.proofs[0].verdict) == (4, Verdict.CORRUPT)
    assert run["proofs"]["findings"][0]["verdict"] == "corrupt"


def test_a_trace_without_steps(folder: Path) -> None:
    params = {"w": np.ones(2, np.float32)}
    path = record(folder / "empty.dgrr", params, 0, lambda step: {})
    write_report([path], folder / "empty.html")
    assert Page(folder / "empty.html").data["runs"][0]["steps"] == 0


# ------------------------------------------------------------------ one file, and nothing that runs but its scripts


def elements(text: str) -> Iterator[tuple[str, str]]:
    for found in re.finditer(r"<(style|script)([^>]*)>(.*?)</\1>", text, re.DOTALL):
        if "type=" not in found[2]:
            yield found[1], found[3]


def test_the_policy_names_the_only_scripts(both: Page) -> None:
    import base64

    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', both.text)
    assert policy is not None
    found = list(elements(both.text))
    assert [kind for kind, _ in found] == ["style", "script", "script"]
    digests = [base64.b64encode(sha256(text.encode()).digest()).decode() for kind, text in found if kind == "script"]
    assert policy[1].split("; ") == [
        "default-src 'none'",
        "img-src data:",
        "style-src 'unsafe-inline'",
        f"script-src 'sha256-{digests[0]}' 'sha256-{digests[1]}'",
    ]


def test_nothing_is_loaded_from_anywhere(both: Page) -> None:
    before = both.text.split("<script>")[0].replace("script-src", "").replace("img-src", "")
    rest, icons = re.subn(r'<link rel="icon" href="data:image/svg\+xml;base64,[\w+/=]+">', "", before)
    assert icons == 1  # which holds its picture
    for text in ("<link", "src=", "@import", "url(", "<iframe"):
        assert text not in rest
    *_, (_, own), (_, drawing) = elements(both.text)
    assert drawing == library()  # which may ask for something, and is refused
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|importScripts)\b", own)


def test_what_a_trace_says_is_text(troubled: Path, folder: Path) -> None:
    path = folder / "<b>&.dgrr"
    path.write_bytes(troubled.read_bytes())
    write_report([path], folder / "hostile.html")
    shown = Page(folder / "hostile.html")
    assert shown.text.count("<script") == shown.text.count("</script>")
    said = shown.text.replace(library(), "")
    assert "onerror=" not in said.replace('onerror=\\"', "") and HOSTILE not in said
    title = re.search("<title>(.*?)</title>", shown.text)
    assert title is not None and "<b>" not in title[1] and unescape(title[1]) == "<b>&.dgrr - dgrr report"


def test_without_its_data_a_page_is_small() -> None:
    empty = page("", {"runs": [], "differences": []}, [], library())
    assert len(empty.encode()) < 1_500_000
    assert re.search(r"Copyright \(c\).* Anaconda, Inc., and Bokeh Contributors", empty)


# ------------------------------------------------------------------ writing


def test_the_same_traces_make_the_same_page(digits: Path, folder: Path) -> None:
    for name in ("a.html", "b.html"):
        write_report([digits], folder / name)
    assert (folder / "a.html").read_bytes() == (folder / "b.html").read_bytes()


def test_a_page_is_replaced_whole_or_not_at_all(digits: Path, folder: Path) -> None:
    out = folder / "kept.html"
    out.write_text("before")
    with pytest.raises(ValueError, match="no step 99"):
        write_report([digits], out, make_run=model_run, rebuild=[99])
    assert out.read_text() == "before"
    write_report([digits], out)
    assert out.read_text().startswith("<!doctype html>") and list(folder.glob("kept.html*")) == [out]


@pytest.mark.parametrize(
    ("paths", "out", "more", "text"),
    [
        ([], "x", {}, "write_report: argument 'paths': expected a trace or more, got none"),
        (
            ["digits.dgrr"],
            "digits.dgrr",
            {},
            r"argument 'out': .*digits\.dgrr is one of the traces: give the page another",
        ),
        (
            ["digits.dgrr"],
            "x",
            {"make_run": model_run, "rebuild": [40]},
            r"argument 'rebuild': .*digits\.dgrr has no step 40: expected 0 to 39",
        ),
    ],
)
def test_what_is_refused(
    digits: Path, folder: Path, paths: list[str], out: str, more: dict[str, Any], text: str
) -> None:
    before = digits.read_bytes()
    with pytest.raises(ValueError, match=text):
        write_report([folder / path for path in paths], folder / out, **more)
    assert digits.read_bytes() == before


# ------------------------------------------------------------------ the small parts


def test_codes_keep_three_digits() -> None:
    given = 10.0 ** np.linspace(-49, 49, 2001)
    assert np.abs(decode(encode(given)) / given - 1).max() < 0.0018
    assert np.isnan(decode(encode(np.array([np.nan])))).all()
    assert encode(np.array([1e-320, 1e300])).tolist() == [1, 65001]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_of_extremes(dtype: type) -> None:
    for size in (1e-300, 1e-40, 1.0, 1e30, 1e300):
        if 4 * size < float(np.finfo(dtype).max):
            array = np.array([3 * size, 4 * size], dtype)
            assert norm(array) == pytest.approx(5 * float(array[1]) / 4, rel=1e-6)
    assert norm(np.zeros((0, 2), dtype)) == 0 and norm(np.array([np.inf], dtype)) == np.inf
    assert distance(np.array([1.0], dtype), np.array([-2.0], dtype)) == 3
    assert np.isnan(figures(np.zeros(0, dtype))[1])


def test_histograms_of_extremes() -> None:
    assert histogram(np.array([np.nan, np.inf])) is None
    for given in ([2.0, 2.0], [-1e308, 1e308], [1.0, np.nextafter(1.0, 2)]):
        found = histogram(np.array(given))
        assert found is not None and found[2].sum() == 2


def test_what_is_chosen_of_long_runs() -> None:
    kept = chosen(1_000_000, 100, 300, [-1, 5, 999_999, 1_000_000])
    assert len(kept.columns) <= 20_000 + 4 + 333 + 12
    assert {0, 5, 999_999} <= set(kept.details) <= set(kept.columns) and len(kept.histograms) == 12
    assert chosen(0, 1, 1) == ((), (), ())


def test_a_model_of_many_nodes_has_no_graph(monkeypatch: pytest.MonkeyPatch, digits: Path, folder: Path) -> None:
    monkeypatch.setattr("dgrr.trace.report.graph.MOST_NODES", 3)
    write_report([digits], folder / "large.html", make_run=model_run, rebuild=[0])
    run = Page(folder / "large.html").data["runs"][0]
    assert (run["graph"], run["rebuilt"], run["notes"]) == (None, [], ["step 0 has more nodes than a page shows"])


def test_a_model_that_is_another_is_said(digits: Path, folder: Path) -> None:
    def other() -> tuple[Any, Any]:
        loss, batches = model_run()
        return (lambda p, batch: loss(p, batch) * 2.0), batches

    written = write_report([digits], folder / "other_model.html", make_run=other, rebuild=[1])
    assert written.proofs[0].verdict is Verdict.GRADIENT and written.rebuilt == ()
    assert "step 1 cannot be rebuilt" in Page(folder / "other_model.html").data["runs"][0]["notes"][0]
