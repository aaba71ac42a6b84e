"""Keys, controls, dark and light, and the charts and tables of a page in a real browser."""

from pathlib import Path

import numpy as np
import pytest

from dgrr.trace import open_trace, write_report

from ...browser import Browser
from .conftest import STEPS
from .in_browser import at_step, rows, see, text, walk_through


def test_keys(browser: Browser, one: Path) -> None:
    browser.open(one)
    see(browser, "loss")
    log = browser.find("#loss button[aria-pressed]")
    browser.press("l")
    browser.until(lambda: log.get_attribute("aria-pressed") == "true", "a logarithmic axis")
    assert not browser.js("return document.getElementById('help').open")
    browser.press("?")
    assert browser.js("return document.getElementById('help').open")
    assert "the step before" in text(browser, "#help")
    browser.press("ESCAPE", "4")
    browser.until(lambda: browser.js("return document.activeElement.id") == "gradients", "the fourth section")
    see(browser, "gradients")
    browser.js("document.querySelector('#gradients .heat').focus()")
    browser.press("ARROW_DOWN")
    assert ", 0.bias: norm of the gradient" in text(browser, '#gradients [aria-live="polite"]')


def test_every_control_has_a_name_and_is_reached_by_tab(browser: Browser, one: Path) -> None:
    browser.open(one)
    walk_through(browser)
    unnamed = browser.js(
        "return [...document.querySelectorAll('button, input, select, [role=button], [role=group]')].filter(e =>"
        " !(e.ariaLabel || e.textContent.trim() || e.closest('label')?.textContent.trim() || e.labels?.length))"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert unnamed == []
    browser.js("window.scrollTo(0, 0); document.activeElement.blur()")
    reached = set()
    where = "const e = document.activeElement; return e.closest('section')?.id || e.id || e.tagName"
    for _ in range(60):
        browser.press("TAB")
        reached.add(browser.js(where))
    assert {"A", "step", "slider", "loss", "gradients"} <= reached


def test_dark_and_light(browser: Browser, one: Path) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    browser.open(one, dark=True)
    dark = browser.js(ground)
    browser.press("d")
    light = browser.js(ground)
    assert dark != light
    browser.open(one)
    assert browser.js(ground) == light
    see(browser, "loss")
    corner = browser.js(
        "const r = document.querySelector('#loss .chart').getBoundingClientRect(); return [r.right, r.top]"
    )
    beside = (int(corner[0]) - 4, int(corner[1]) + 100)  # what is right of the axes
    assert browser.picture().getpixel(beside) == (255, 255, 255)
    browser.press("d")
    assert browser.js(ground) == dark
    browser.until(lambda: max(browser.picture().getpixel(beside)) < 64, "a chart in the dark")


def test_every_chart_is_a_table_too(browser: Browser, one: Path, digits: Path) -> None:
    browser.open(one)
    browser.press("t")
    walk_through(browser)
    figures = browser.all("figure")
    assert len(figures) >= 6
    found = "return arguments[0].querySelectorAll('tbody tr').length"
    for figure in figures:
        browser.js("arguments[0].scrollIntoView({behavior: 'instant'})", figure)
        browser.until(lambda figure=figure: browser.js(found, figure), "a table with rows")
    with open_trace(digits) as trace:
        losses = [float(f"{float(loss):.8g}") for loss in trace.loss]
    assert [float(row[1]) for row in rows(browser, "loss")] == losses
    browser.press("t")
    see(browser, "loss")
    browser.until(lambda: browser.all("#loss .chart:not(.hidden)[data-drawn]"), "a chart again")
    assert browser.console() == []


def test_metrics_have_charts_of_their_own(browser: Browser, one: Path, digits: Path) -> None:
    browser.open(one)
    see(browser, "rates")
    titles = browser.js("return [...document.querySelectorAll('#rates h3')].map(h => h.textContent)")
    assert titles == ["accuracy", "learning rate (lr)", "norm of all gradients"]
    with open_trace(digits) as trace:
        assert f"{trace.metrics(-1)['accuracy']:.6g}" in text(browser, "#rates")


def test_validations_and_notes_are_shown(browser: Browser, noted: Path, digits: Path, folder: Path) -> None:
    write_report([noted, digits], folder / "noted-page.html")
    browser.open(folder / "noted-page.html")
    see(browser, "loss")
    with open_trace(noted) as trace:
        validations = trace.validations()
    at_step(browser, STEPS - 1)
    legend = text(browser, "#loss .legend")
    assert "A · noted.dgrr validation_loss" in legend
    assert f"{validations[39]['validation_loss']:.6g}" in legend
    browser.js("const s = document.getElementById('slider'); s.value = 25; s.dispatchEvent(new Event('input'))")
    at_step(browser, 25)
    assert f"{validations[19]['validation_loss']:.6g}" in text(browser, "#loss .legend")  # up to the next
    first, second = rows(browser, "summary")
    assert first[0] == "A · noted.dgrr"
    assert first[-5:] == ["0.01", "0.5", "digits", "[16, 10]", "2001-09-09 01:46:40 UTC"]
    assert second[3:] == ["–"] * 7
    see(browser, "about")
    told = text(browser, "#about")
    assert "Notes" in told and "layers\n[16, 10]" in told and "begun\n2001-09-09 01:46:40 UTC on" in told


def test_a_table_is_sorted_and_searched(browser: Browser, one: Path) -> None:
    browser.open(one)
    see(browser, "tensors")
    before = [row[0] for row in rows(browser, "tensors")]
    head = "[...document.querySelectorAll('#tensors th button')].find(b => b.textContent == 'tensor')"
    browser.js(f"{head}.click()")
    assert [row[0] for row in rows(browser, "tensors")] == sorted(before)
    browser.js(f"{head}.click()")
    assert [row[0] for row in rows(browser, "tensors")] == sorted(before, reverse=True)
    browser.find('#tensors input[type="search"]').send_keys("bias")
    found = [row[0] for row in rows(browser, "tensors")]
    assert found and set(found) == {name for name in before if "bias" in name}


def line(browser: Browser, column: str) -> list[float]:
    """The numbers that the line of the loss is drawn of."""
    found = "Bokeh.documents.map(d => d.get_model_by_name('linear') && d.get_model_by_name('line0')).find(Boolean)"
    return [float(x) for x in browser.js(f"return Array.from({found}.data[arguments[0]], String)", column)]


def test_smoothing_draws_both(browser: Browser, one: Path, digits: Path) -> None:
    browser.open(one)
    see(browser, "loss")
    slider = "document.querySelector('#loss input[type=range]')"
    browser.js(f"{slider}.value = 0.9; {slider}.dispatchEvent(new Event('input'))")
    browser.until(lambda: "raw" in text(browser, "#loss output"), "the raw line beside the smoothed one")
    with open_trace(digits) as trace:
        losses = trace.loss.astype(np.float64)
    expected = [np.average(losses[: k + 1], weights=0.9 ** np.arange(k, -1, -1)) for k in range(STEPS)]
    assert line(browser, "y") == losses.tolist()
    assert line(browser, "smooth") == pytest.approx(expected, rel=1e-12)
