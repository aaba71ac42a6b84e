"""The page that trains, in a real browser: it ends at the digest that the demo publishes, and looks as it should."""

import subprocess
import sys
from pathlib import Path

import pytest

from dgrr.trace.cli.demo import STATE_DIGEST

from ...browser import WITHOUT_RELAXED, Browser

BUILD = Path(__file__).parents[3] / "docs" / "examples" / "browser" / "build.py"


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page."""
    folder = tmp_path_factory.mktemp("page")
    subprocess.run([sys.executable, str(BUILD), "-o", str(folder)], check=True, capture_output=True)
    return folder / "index.html"


def text(browser: Browser, name: str) -> str:
    """What an element says."""
    return str(browser.js("return document.getElementById(arguments[0]).textContent", name))


def ended(browser: Browser) -> None:
    """Wait until it has trained."""
    browser.until(lambda: browser.js("return document.body.className") != "busy", "training has ended", seconds=120)


@pytest.mark.long
def test_it_trains_to_the_published_digest(page: Path, browser: Browser) -> None:
    browser.open(page)
    ended(browser)
    assert text(browser, "digest") == text(browser, "expected") == STATE_DIGEST
    assert text(browser, "verdict") == "Equal: all 256 bits."
    assert text(browser, "step") == "460 of 460"
    assert text(browser, "accuracy") == "97.7 %"
    assert len(browser.all("figure.right")) + len(browser.all("figure.wrong")) == 24
    points = str(browser.find("polyline").get_attribute("points")).split()
    assert len(points) == 460
    fetched = browser.js("return performance.getEntriesByType('resource').map(each => each.name)")
    assert [name for name in fetched if not name.startswith(("blob:", "data:"))] == []
    assert browser.console() == []


def test_an_engine_that_does_not_fuse_trains_to_it_by_software(page: Path, browser: Browser) -> None:
    script = page.with_name("software.html")
    script.write_text(page.read_text().replace("<head>", f"<head><script>{WITHOUT_RELAXED}</script>", 1))
    browser.open(script)
    ended(browser)
    assert text(browser, "engine") == "by software, exact"
    assert text(browser, "digest") == STATE_DIGEST


def test_another_digest_is_called_so(page: Path, browser: Browser) -> None:
    """A page with one weight that is other in its last bit ends elsewhere."""
    changed = page.with_name("changed.html")
    start = "new Float32Array(bytes)),"
    other = "new Float32Array(bytes)).then((w) => (new Uint32Array(w.buffer)[0]++, w)),"
    assert start in page.read_text()
    changed.write_text(page.read_text().replace(start, other))
    browser.open(changed)
    ended(browser)
    assert text(browser, "verdict") == "Not equal: this engine computes otherwise."
    assert text(browser, "digest") != STATE_DIGEST


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_its_window(page: Path, browser: Browser, width: int, dark: bool) -> None:
    browser.open(page, width=width, dark=dark)
    browser.until(lambda: browser.all("figure"), "digits are drawn")
    assert browser.js("return document.documentElement.scrollWidth") <= width
