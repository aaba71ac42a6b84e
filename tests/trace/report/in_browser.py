"""What is done with a page in a browser."""

from typing import Any

from ...browser import Browser


def see(browser: Browser, section: str) -> None:
    """Go to a section, and wait until it, and the first of its charts, are drawn."""
    browser.js("document.getElementById(arguments[0]).scrollIntoView({behavior: 'instant'})", section)
    drawn = "const s = document.getElementById(arguments[0]); return s.querySelector('svg, table, p, dl, [data-drawn]')"
    browser.until(lambda: browser.js(drawn, section), f"{section} is drawn")
    for chart in browser.all(f"#{section} .chart:not(.hidden)")[:1]:
        drawn_chart(browser, chart)
    browser.js("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def drawn_chart(browser: Browser, chart: Any) -> None:
    """Wait until a chart that is in sight is drawn."""
    drawn = "const c = arguments[0]; return c.dataset.drawn || c.querySelector('[data-drawn], svg, p')"
    browser.until(lambda: browser.js(drawn, chart), "a chart is drawn")


def walk_through(browser: Browser) -> None:
    """See every section, and every chart."""
    for section in browser.js("return [...document.querySelectorAll('main section')].map(s => s.id)"):
        see(browser, section)
        browser.js("document.querySelectorAll(arguments[0]).forEach(d => { d.open = true; })", f"#{section} details")
        for chart in browser.all(f"#{section} .chart:not(.hidden)"):
            browser.js("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", chart)
            drawn_chart(browser, chart)


def text(browser: Browser, selector: str) -> str:
    return str(browser.find(selector).text)


def at_step(browser: Browser, step: int) -> None:
    told = "return document.getElementById('slider').getAttribute('aria-valuetext')"
    browser.until(lambda: browser.js(told) == f"step {step}", f"step {step}")
    browser.js("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def rows(browser: Browser, section: str) -> list[list[str]]:
    """The cells of the first table of a section."""
    script = "return [...document.querySelector(arguments[0]).rows].map(r => [...r.cells].map(c => c.textContent))"
    found: list[list[str]] = browser.js(script, f"#{section} table.data tbody")
    return found


def number(cell: str) -> float:
    return 0.0 if cell == "–" else float(cell.replace(",", ""))
