"""What the page about deploying begins with, as written: trained, exported, run under emulation and in engines."""

import re
import subprocess
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from threading import Thread
from typing import Any

import numpy as np
import pytest

from ...browser import Browser

PAGE = Path(__file__).parents[3] / "docs" / "deploying.md"
STDIO = Path(__file__).with_name("freestanding")
CLANG = [
    "clang",
    "--target=aarch64-linux-gnu",
    "-fuse-ld=lld",
    "-nostdlib",
    "-static",
    "-ffreestanding",
    "-std=c11",
    "-O1",
]

pytestmark = pytest.mark.long


def block(language: str) -> str:
    """The first block of a language."""
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"a block of {language}"
    return found[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's program was run."""
    return tmp_path_factory.mktemp("deployed")


@pytest.fixture(scope="module")
def scores(folder: Path) -> list[float]:
    """What `predict` of the page gives for the image that its programs make."""
    names: dict[str, Any] = {"__name__": "deployed"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(block("python"), str(PAGE), "exec"), names)
    image = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8) / 64
    return [float(x) for x in names["predict"](image)[0]]


@pytest.mark.skipif(
    not (which("clang") and which("ld.lld") and which("qemu-aarch64")), reason="needs clang, lld, qemu-user"
)
def test_on_arm(folder: Path, scores: list[float]) -> None:
    (folder / "predict.c").write_text(block("c"))
    library = folder / "library" / "aarch64"
    command = [*CLANG, f"-isystem{STDIO}", f"-I{library}", "predict.c", str(library / "digits.o"), "-o", "predict"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["qemu-aarch64", "./predict"], cwd=folder, check=True, capture_output=True)
    assert np.frombuffer(done.stdout, "<f8").tolist() == scores


@pytest.mark.skipif(which("node") is None, reason="needs node (Debian: apt-get install nodejs)")
def test_in_node(folder: Path, scores: list[float]) -> None:
    (folder / "predict.mjs").write_text(block("js"))
    done = subprocess.run(["node", "predict.mjs", "library"], cwd=folder, check=True, capture_output=True, text=True)
    assert [float(x) for x in done.stdout.split()] == scores


@pytest.fixture
def served(folder: Path) -> Iterator[str]:
    """The address of the folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_in_a_browser(folder: Path, scores: list[float], served: str, browser: Browser) -> None:
    (folder / "predict.html").write_text(block("html"))
    browser.open(f"{served}/predict.html")
    shown = browser.until(lambda: browser.js("return document.querySelector('pre').textContent"), "scores are shown")
    assert [float(x) for x in shown.split()] == scores


@pytest.mark.usefixtures("scores")
def test_it_has_at_most_60_kb(folder: Path) -> None:
    for name in ("aarch64/digits.o", "wasm32/digits.wasm"):
        assert (folder / "library" / name).stat().st_size <= 60_000, name
