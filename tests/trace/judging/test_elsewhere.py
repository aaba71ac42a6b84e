"""The judge where there is no C library: on aarch64 under qemu, as WebAssembly in node, and in a page."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from dgrr.trace.judging import command, write_judge
from dgrr.trace.v2.repair.forge import flip_bit, forge_gradient

from ...browser import WITHOUT_RELAXED, Browser
from ...node import relaxed_simd
from ...runtime.library.native import host
from .run_of_judge import batches, loss_fn, train

HERE = Path(__file__).parent
BUILD = HERE.parents[2] / "docs" / "examples" / "browser" / "judge.py"
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
PROVEN = "ok: steps 0 to 6 are proven: data, losses, gradients and states"
ANSWERS = {
    "run.dgrr": (0, PROVEN),
    "run.dgrr --from 2 --to 4": (0, "ok: steps 0 to 4 are proven: data, losses, gradients and states"),
    "run.dgrr --to x": (1, "usage: expected the number of a step, got x"),
    "run.dgrr --from 12": (1, "usage: there are no such steps: the trace has 7"),
    "forged.dgrr": (5, "gradient: step 3: 3.weight: its gradient differs"),
    "flipped.dgrr": (3, "corrupt: the frame at byte 256 is not whole: the CRC of its front"),
    "cut.dgrr": (3, "torn-tail: the frame at byte 3488 is not whole: the file ends in it"),
}
"""Of a trace with options: those that the program gives, which `test_judge` holds against what is recorded."""

Call = list[str]

WEB = ("wasm32", "wasm32-relaxed")

pytestmark = pytest.mark.long


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skip where one of these is not installed."""
    missing = [name for name in programs if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace, forged and damaged ones, and the judge."""
    folder = tmp_path_factory.mktemp("judge")
    train(folder / "run.dgrr")
    forge_gradient(folder / "run.dgrr", folder / "forged.dgrr", 3, "3.weight")
    flip_bit(folder / "run.dgrr", folder / "flipped.dgrr", 1000, 3)
    (folder / "cut.dgrr").write_bytes((folder / "run.dgrr").read_bytes()[:4000])
    write_judge(folder / "run.dgrr", folder / "judge", loss_fn, batches(), target=("aarch64", *WEB))
    return folder


def on_aarch64(folder: Path, calls: Sequence[Call]) -> list[tuple[int, str]]:
    """The answers of the program of aarch64, which asks Linux alone."""
    judge, program = folder / "judge", folder / "program"
    machine = ["--target=aarch64-linux-gnu", "-fuse-ld=lld", "-static", "-ffreestanding", "-nostdlib"]
    flags = ["-std=c99", "-pedantic", *WARNINGS, "-O2", f"-I{judge / 'aarch64'}"]
    parts = [judge / "judge.c", HERE / "bare.c", judge / "aarch64" / "step_0.o"]
    subprocess.run(["clang", *machine, *flags, *map(str, parts), "-o", str(program)], check=True)
    given = [["qemu-aarch64", str(program), trace, str(judge / "batches.bin"), *options] for trace, *options in calls]
    done = [subprocess.run(each, capture_output=True, text=True, check=False, timeout=60) for each in given]
    return [(each.returncode, each.stdout.strip()) for each in done]


def in_node(target: str, folder: Path, calls: Sequence[Call]) -> list[tuple[int, str]]:
    """The answers of the module, made as the command says."""
    subprocess.run(f"{command(target)} {' '.join(WARNINGS)}", shell=True, cwd=folder / "judge", check=True)
    given = ["node", *relaxed_simd(), str(HERE / "judged.mjs"), str(folder / "judge"), target, json.dumps(calls)]
    done = subprocess.run(given, capture_output=True, text=True, check=True, timeout=60)
    return [(code, text) for code, text in json.loads(done.stdout)]


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(on_aarch64, marks=needs("clang", "ld.lld", "qemu-aarch64")),
        pytest.param(partial(in_node, "wasm32"), id="in_node", marks=needs("clang", "wasm-ld", "node")),
        pytest.param(
            partial(in_node, "wasm32-relaxed"),
            id="in_node_that_fuses",
            marks=[needs("clang", "wasm-ld", "node"), pytest.mark.skipif(host() == "x86-64", reason="needs FMA")],
        ),
    ],
)
def test_it_answers_as_the_program_does(
    folder: Path, answers: Callable[[Path, Sequence[Call]], list[tuple[int, str]]]
) -> None:
    calls = [[str(folder / trace), *options] for trace, *options in map(str.split, ANSWERS)]
    assert answers(folder, calls) == list(ANSWERS.values())


@pytest.fixture(scope="module")
def page(folder: Path, browser: Browser) -> Path:
    """The page."""
    made = [sys.executable, str(BUILD), str(folder / "judge"), "-o", str(folder / "page")]
    subprocess.run(made, check=True, capture_output=True)
    return folder / "page" / "index.html"


def text(browser: Browser, name: str) -> str:
    """What an element says."""
    return str(browser.js("return document.getElementById(arguments[0]).textContent", name))


def answer(browser: Browser, trace: Path) -> tuple[str, str, str]:
    """Choose a trace, and wait for the verdict, why, and the steps that are proven."""
    chosen = browser.until(lambda: browser.all("#trace:enabled"), "a trace can be chosen")
    browser.js("document.body.className = 'busy'")
    chosen[0].send_keys(str(trace))
    browser.until(lambda: browser.js("return document.body.className") != "busy", "it has judged", seconds=60)
    return text(browser, "verdict"), text(browser, "why"), text(browser, "steps")


@needs("clang", "wasm-ld")
def test_the_page_proves_a_trace(page: Path, folder: Path, browser: Browser) -> None:
    browser.open(page)
    assert answer(browser, folder / "run.dgrr") == ("ok", PROVEN.removeprefix("ok: "), "7: 0 to 6")
    assert text(browser, "name").startswith("run.dgrr, ")
    assert text(browser, "engine") == ("by software, exact" if host() == "x86-64" else "by the processor")
    found = answer(browser, folder / "forged.dgrr")
    assert found == ("gradient", "step 3: 3.weight: its gradient differs", "none")
    assert browser.js("return document.body.className") == "other"
    assert answer(browser, folder / "cut.dgrr")[0] == "torn-tail"
    fetched = browser.js("return performance.getEntriesByType('resource').map(each => each.name)")
    assert [name for name in fetched if not name.startswith(("blob:", "data:"))] == []
    assert browser.console() == []


@needs("clang", "wasm-ld")
def test_in_an_engine_that_does_not_fuse_it_proves_by_software(page: Path, folder: Path, browser: Browser) -> None:
    script = page.with_name("software.html")
    script.write_text(page.read_text().replace("<head>", f"<head><script>{WITHOUT_RELAXED}</script>", 1))
    browser.open(script)
    assert answer(browser, folder / "run.dgrr") == ("ok", PROVEN.removeprefix("ok: "), "7: 0 to 6")
    assert text(browser, "engine") == "by software, exact"


@needs("clang", "wasm-ld")
@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_its_window(page: Path, folder: Path, browser: Browser, width: int, dark: bool) -> None:
    browser.open(page, width=width, dark=dark)
    answer(browser, folder / "forged.dgrr")
    assert browser.js("return document.documentElement.scrollWidth") <= width
