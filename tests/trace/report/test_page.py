"""The page in a real browser: it draws itself without an error, its pickers work, and it shows what was recorded."""

from pathlib import Path

import numpy as np
import pytest

from dgrr.trace import at, open_trace, write_report

from ...browser import Browser
from .conftest import HOSTILE, PART, STEPS, model_run, record
from .in_browser import at_step, number, rows, see, text, walk_through

# ------------------------------------------------------------------ it opens


@pytest.mark.parametrize(("name", "dark"), [("one", False), ("two", True), ("trouble", False)])
def test_all_of_it_is_drawn_without_an_error(
    browser: Browser, request: pytest.FixtureRequest, name: str, dark: bool
) -> None:
    browser.open(request.getfixturevalue(name), dark=dark)
    walk_through(browser)
    assert browser.console() == []
    assert browser.js("return performance.getEntriesByType('resource').length") == 0


def test_a_request_would_be_refused(browser: Browser, one: Path) -> None:
    browser.open(one)
    asked = "return fetch(arguments[0]).then(() => 'let', () => 'refused')"
    assert browser.js(asked, "data:,x") == "refused"
    browser.open("about:blank")
    assert browser.js(asked, "data:,x") == "let"


def test_an_error_would_be_seen(browser: Browser, one: Path, folder: Path) -> None:
    broken = folder / "broken.html"
    broken.write_text(one.read_text().replace('"use strict";', '"use strict"; nothing();'))
    browser.open(broken)
    assert any("Content Security Policy" in line for line in browser.console())  # which lets no changed script run


@pytest.mark.parametrize("what", ["digests", "unfinished", "empty"])
def test_runs_of_which_little_is_known(
    browser: Browser, folder: Path, request: pytest.FixtureRequest, what: str
) -> None:
    path = (
        record(folder / "no_steps.dgrr", {"w": np.ones(2, np.float32)}, 0, lambda step: {})
        if what == "empty"
        else request.getfixturevalue(what)
    )
    write_report([path], folder / "little.html")
    browser.open(folder / "little.html")
    walk_through(browser)
    assert browser.console() == []
    if what == "digests":
        assert "record=" in text(browser, "#gradients") and "–" in text(browser, "#summary .verdict")
    if what == "unfinished":
        assert "not finished" in text(browser, "#summary")


def test_what_a_trace_says_is_never_markup(browser: Browser, trouble: Path) -> None:
    browser.open(trouble)
    walk_through(browser)
    browser.press("t")
    walk_through(browser)
    assert browser.js("return window.harmed") is None and browser.all("main img:not(.pictures img)") == []
    assert HOSTILE in text(browser, "#tensors table")


# ------------------------------------------------------------------ the picker of a step


def test_every_way_to_a_step(browser: Browser, one: Path, digits: Path) -> None:
    browser.open(one)
    see(browser, "tensors")
    at_step(browser, STEPS - 1)
    field = browser.find("#step")
    field.clear()
    field.send_keys("7\n")
    at_step(browser, 7)
    see(browser, "tensors")  # the driver has scrolled to the field
    with open_trace(digits) as trace:
        assert f"loss {float(trace[7].loss):.6g}" in text(browser, ".picker output")
        norm = float(np.linalg.norm(trace.tensor("0.bias", step=7).astype(np.float64)))
    line = next(row for row in rows(browser, "tensors") if row[0] == "0.bias")
    assert float(line[4]) == pytest.approx(norm, rel=1e-3)
    browser.js("document.activeElement.blur()")
    browser.press("ARROW_RIGHT")
    at_step(browser, 8)
    browser.press("ARROW_LEFT", "ARROW_LEFT")
    at_step(browser, 6)
    browser.press("HOME")
    at_step(browser, 0)
    browser.press("END")
    at_step(browser, STEPS - 1)
    browser.find('.picker button[aria-label^="the step before"]').click()
    at_step(browser, STEPS - 2)
    browser.js("const s = document.getElementById('slider'); s.value = 3; s.dispatchEvent(new Event('input'))")
    at_step(browser, 3)


def test_a_click_in_a_chart_and_in_the_map(browser: Browser, one: Path) -> None:
    browser.open(one)
    see(browser, "loss")
    chart = browser.find("#loss .chart")
    actions = pytest.importorskip("selenium.webdriver").ActionChains
    actions(browser.driver).move_to_element_with_offset(chart, -chart.size["width"] // 2 + 60, 0).click().perform()
    at_step(browser, 0)
    see(browser, "gradients")
    heat = browser.find("#gradients .heat")
    row = 30 + 22 + 11 - heat.size["height"] // 2  # below the tools, in the second of the rows
    actions(browser.driver).move_to_element_with_offset(heat, heat.size["width"] // 2 - 20, row).click().perform()
    at_step(browser, STEPS - 1)
    assert text(browser, "#gradients .tip").startswith(f"step {STEPS - 1}, 0.bias: norm of the gradient")


def test_marks_are_found_and_named(browser: Browser, trouble: Path) -> None:
    browser.open(trouble)
    see(browser, "gradients")
    legend = text(browser, "#gradients .legend")
    assert "zero: dead (20)" in legend and "exploding: 100 times its median or more (1)" in legend
    assert "not finite (1)" in legend
    browser.press("HOME", "n")
    at_step(browser, 12)
    see(browser, "tensors")
    marks = {row[0]: row[1] for row in rows(browser, "tensors")}
    assert (marks["dead"], marks["wild"], marks[HOSTILE]) == ("○ zero", "▲ exploding", "")
    browser.press("n")
    at_step(browser, 15)
    assert {row[0]: row[1] for row in rows(browser, "tensors")}[HOSTILE] == "✕ not finite"
    assert "loss inf" in text(browser, ".picker output")
    browser.press("p")
    at_step(browser, 12)


# ------------------------------------------------------------------ the graph, and rebuilt steps


def test_layers_open_and_close(browser: Browser, one: Path) -> None:
    browser.open(one)
    see(browser, "graph")

    def boxes() -> list[str]:
        return [str(node.get_attribute("aria-label")) for node in browser.all("#graph g.node")]

    nodes = len(boxes())
    browser.js("[...document.querySelectorAll('#graph button')].find(b => b.textContent == 'Close all').click()")
    closed = boxes()
    assert len(closed) < nodes and sum(label.startswith("layer, closed: ") for label in closed) == 3
    browser.js("document.querySelector('#graph g.group').focus()")
    browser.press("ENTER")
    assert any(label.startswith("0.weight, float32 (16, 64), 4.10 kB") for label in boxes())
    browser.js("document.querySelector('#graph g.node[aria-label^=\"0.weight\"]').focus()")
    browser.press("ENTER")
    assert "float32 (16, 64), 4.10 kB" in text(browser, "#graph dl")
    browser.press("BACKSPACE")
    assert len(boxes()) == len(closed)
    browser.js("[...document.querySelectorAll('#graph button')].find(b => b.textContent == 'Open all layers').click()")
    assert len(boxes()) == nodes


def test_every_node_of_a_rebuilt_step(browser: Browser, one: Path, digits: Path) -> None:
    browser.open(one)
    see(browser, "nodes")
    assert "was not computed again" in text(browser, "#nodes") and "--rebuild 39" in text(browser, "#nodes")
    browser.js("[...document.querySelectorAll('#nodes button')].find(b => b.textContent == 'step 7').click()")
    at_step(browser, 7)
    shown = sorted((row[1], number(row[6]), number(row[7])) for row in rows(browser, "nodes"))
    table = at(digits, 7, *model_run()).table()
    expected = sorted((row["op"], row["value norm"], row["gradient norm"] or 0.0) for row in table)
    assert [row[0] for row in shown] == [row[0] for row in expected]
    for place in (1, 2):
        assert [row[place] for row in shown] == pytest.approx([row[place] for row in expected], rel=1e-5)


# ------------------------------------------------------------------ params, two runs


def pictures(browser: Browser, param: int = 0) -> list[tuple[str, str]]:
    """Of a param that is open, what is said of each image, and the image."""
    see(browser, "pictures")
    images = "[...document.querySelectorAll('.param')[arguments[0]].querySelectorAll('img')]"
    script = f"return {images}.map(image => [image.alt, image.src])"
    browser.until(lambda: len(browser.js(script, param)) == 3, "three pictures")
    drawn = f"return {images}.every(image => image.complete && image.naturalWidth > 0)"
    browser.until(lambda: browser.js(drawn, param), "the pictures are drawn")
    return [(said, data) for said, data in browser.js(script, param)]


def test_pictures_follow_the_step(browser: Browser, one: Path, digits: Path) -> None:
    browser.open(one)
    last = pictures(browser)
    with open_trace(digits) as trace:
        gradients = {step: trace.tensor("0.weight", step=step) for step in (0, STEPS - 1)}
    for step, found in ((STEPS - 1, last), (0, None)):
        if found is None:
            browser.press("HOME")
            at_step(browser, 0)
            found = pictures(browser)
        value, gradient, update = found
        least, greatest = (f"{x.item():.4g}" for x in (gradients[step].min(), gradients[step].max()))
        assert gradient[0].startswith(f"(16, 64) float32: {least} to {greatest}, mean ")
        assert len({data for _, data in (value, gradient, update)}) == 3
    assert all(before[1] != after[1] for before, after in zip(found, last, strict=True))
    buttons = browser.all("#pictures .tools button[value]")
    assert [button.text for button in buttons][:2] == ["0", "4"] and buttons[0].get_attribute("aria-pressed") == "true"
    buttons[-1].click()
    at_step(browser, STEPS - 1)
    assert pictures(browser) == last
    browser.press("ARROW_LEFT")  # of this step there is none: the last one before it
    at_step(browser, STEPS - 2)
    pressed = browser.find("#pictures .tools button[aria-pressed=true]").text
    assert int(pressed) < STEPS - 2
    assert text(browser, "#pictures figure .note") == f"step {pressed}"


def test_params_open_by_the_keyboard_and_show_their_numbers(browser: Browser, one: Path, digits: Path) -> None:
    browser.open(one)
    see(browser, "pictures")
    summaries = browser.all("#pictures summary")
    assert [summary.text.split()[0] for summary in summaries] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    browser.js("arguments[0].focus()", summaries[3])
    browser.press("ENTER")
    assert [said.split(":")[0] for said, _ in pictures(browser, 3)] == ["(10,) float32"] * 3
    browser.js("arguments[0].open = false", browser.all(".param")[0])
    browser.all(".param")[3].find_element("css selector", ".tools button").click()
    browser.until(lambda: browser.all("#pictures table.data"), "the table")
    with open_trace(digits) as trace:
        gradient = trace.tensor("2.bias", step=0)
    step, of, least, greatest, *_ = rows(browser, "pictures")[1]
    assert (step, of) == ("0", "Gradient")
    assert (float(least), float(greatest)) == (
        pytest.approx(gradient.min(), rel=1e-3),
        pytest.approx(gradient.max(), rel=1e-3),
    )


def test_two_runs_are_shown_from_where_they_part(browser: Browser, two: Path) -> None:
    browser.open(two)
    at_step(browser, PART)
    assert f"step {PART} is the first that differs" in text(browser, "#differences")
    see(browser, "tensors")
    assert {row[1] for row in rows(browser, "tensors")} == {""}  # the gradients of that step are equal
    browser.js("document.activeElement.blur()")
    browser.press("ARROW_RIGHT")
    at_step(browser, PART + 1)
    marks = {row[0]: row[1] for row in rows(browser, "tensors")}
    assert {name for name, mark in marks.items() if mark} == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert set(marks.values()) == {"≠ A", ""}
    see(browser, "gradients")
    browser.js(
        "const [run, kind] = document.querySelectorAll('#gradients select');"
        "run.value = 1; run.dispatchEvent(new Event('change'));"
        "kind.value = 'differs'; kind.dispatchEvent(new Event('change'))"
    )
    assert f"({4 * (STEPS - PART - 1)})" in text(browser, "#gradients .legend")


# ------------------------------------------------------------------ a run that goes on


def test_a_page_that_loads_itself_again_stays_where_it_was(browser: Browser, digits: Path, folder: Path) -> None:
    write_report([digits], folder / "watched.html", refresh=2)
    browser.open(folder / "watched.html")
    press = "for (const key of ['Home', 'ArrowRight', 'd'])"  # at once, lest the page begin anew between two of them
    press += " document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));"
    dark = browser.js(f"window.old = true; {press} return document.documentElement.dataset.theme")
    browser.until(lambda: browser.js("return window.old !== true && document.documentElement.dataset.ready"), "anew")
    at_step(browser, 1)
    assert browser.js("return document.documentElement.dataset.theme") == dark == "dark"
    browser.find('header button[aria-pressed="false"]').click()
    browser.js("window.old = true; return new Promise(done => setTimeout(done, 2500))")
    assert browser.js("return window.old") is True
