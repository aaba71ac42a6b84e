"""A real browser for tests: headless Chromium, driven by selenium; see the fixture `browser`.

A user's plain `pytest` skips what needs it, with the reason; the job `pages` of .ci/run has both, and fails on
a skip.
"""

import io
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

WITHOUT_RELAXED = "WebAssembly.validate = () => false"
"""A script that has an engine seem to lack relaxed SIMD."""

OPTIONS = (
    "--headless",
    "--no-sandbox",  # which Chromium demands where root runs it
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--font-render-hinting=none",
    "--lang=en-US",
)
WIDTH, HEIGHT = 1280, 900


class Browser:
    """One window of Chromium. `driver` is selenium's."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path | str, *, dark: bool = False, width: int = WIDTH, height: int = HEIGHT) -> None:
        """Load a file, or an address, anew: in this colour scheme, in a window of this size; the console is emptied."""
        self.driver.get("about:blank")
        self.look(dark=dark, width=width, height=height)
        self.driver.get_log("browser")
        self.driver.get(page if isinstance(page, str) else page.resolve().as_uri())

    def look(self, *, dark: bool = False, width: int = WIDTH, height: int = HEIGHT) -> None:
        """What media queries see, from now on."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self._cdp("Emulation.setEmulatedMedia", media="", features=[scheme, still])
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._cdp("Emulation.setDeviceMetricsOverride", **size)

    def js(self, script: str, *args: Any) -> Any:
        """What a script of JavaScript returns; `arguments` are its arguments."""
        return self.driver.execute_script(script, *args)

    def find(self, selector: str) -> Any:
        """The first element that a CSS selector finds. Raises if there is none."""
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        """Every element that a CSS selector finds."""
        return list(self.driver.find_elements("css selector", selector))

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, on what has the focus; special ones by name, such as ``ARROW_LEFT``."""
        names = import_module("selenium.webdriver.common.keys").Keys
        actions = import_module("selenium.webdriver").ActionChains(self.driver)
        for key in keys:
            actions.send_keys(getattr(names, key, key) if len(key) > 1 else key)
        actions.perform()

    def until(self, condition: Callable[[], Any], what: str, seconds: float = 10) -> Any:
        """Wait until a condition is true, and return what it returned."""
        wait = import_module("selenium.webdriver.support.wait").WebDriverWait(self.driver, seconds, 0.05)
        return wait.until(lambda _: condition(), f"never became true: {what}")

    def console(self) -> list[str]:
        """What the page has written to the console as warnings or errors, what was not found included."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]

    def picture(self, *, whole: bool = False) -> Any:
        """A screenshot as a PIL image; `whole`: of the page instead of the window."""
        found = self._cdp("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        data = import_module("base64").b64decode(found["data"])
        return import_module("PIL.Image").open(io.BytesIO(data)).convert("RGB")

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self._cdp("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def _cdp(self, command: str, **arguments: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, arguments)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser, started once for all tests of a process; skips where there is none."""
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not binary or not driver:
        pytest.skip("needs a browser: chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    for module in ("selenium", "PIL"):
        pytest.importorskip(module, reason='needs selenium and pillow: pip install "dgrr[browser]"')
    profile = tempfile.mkdtemp(prefix="dgrr-browser-")
    try:
        started = _started(binary, driver, profile)
        try:
            yield Browser(started)
        finally:
            started.quit()
    finally:
        with suppress(OSError):
            shutil.rmtree(profile)


def _started(binary: str, driver: str, profile: str) -> Any:
    chrome = import_module("selenium.webdriver.chrome.webdriver")
    options = import_module("selenium.webdriver.chrome.options").Options()
    service = import_module("selenium.webdriver.chrome.service").Service(driver)
    options.binary_location = binary
    for option in (*OPTIONS, f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return chrome.WebDriver(options=options, service=service)
