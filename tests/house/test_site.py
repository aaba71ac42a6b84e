"""The documentation site: built once, strictly; all that is public is on it, every link leads somewhere, and in a real
browser it is found, fits a narrow window, and needs no network."""

import importlib
import inspect
import json
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "site"
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

pytestmark = pytest.mark.xdist_group("site")  # one process builds it

# ------------------------------------------------------------------ the notebooks, as they are kept


def cells(notebook: Path, kind: str) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == kind]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells(notebook, "code"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_imports_from_faces_alone(notebook: Path) -> None:
    code = "\n".join("".join(cell["source"]) for cell in cells(notebook, "code"))
    imported = re.findall(r"^(?:from|import) (dgrr[\w.]*)", code, re.MULTILINE)
    assert imported
    assert {*imported} <= {"dgrr.tape", "dgrr.runtime", "dgrr.trace"}


# ------------------------------------------------------------------ the site


@pytest.fixture(scope="module")
def tools() -> None:
    """Skips where what builds the site is not installed."""
    for module in ("sphinx", "furo", "myst_nb", "sphinx_copybutton", "nbclient", "ipykernel", "matplotlib"):
        pytest.importorskip(module, reason="needs what builds the site: pip install 'dgrr[docs]'")


@pytest.fixture(scope="module")
def site(tools: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built by the command that people run."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, str(SITE / "build.py"), str(folder)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{folder / 'index.html'}\n"
    return folder


class Links(HTMLParser):
    """What a page leads to, what it loads, and where links can lead to on it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links, self.loaded, self.places = list[str](), list[str](), {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value}
        self.places |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in ("script", "img", "link") and (address := found.get("src") or found.get("href")):
            self.loaded.append(address)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    return {path.resolve(): Links(path.read_text()) for path in site.rglob("*.html")}


def test_every_link_leads_somewhere(pages: dict[Path, Links]) -> None:
    assert sum(len(page.links) for page in pages.values()) > 5000
    assert sorted({lost for path, page in pages.items() for lost in broken(path, page, pages)}) == []


def broken(path: Path, page: Links, pages: dict[Path, Links]) -> Iterator[str]:
    """The links of a page to files, or places in pages, that are not there."""
    for link in page.links + page.loaded:
        if not re.match(r"\w+:", link):
            to, _, place = unquote(link).partition("#")
            target = (path.parent / re.sub(r"\?.*", "", to)).resolve() if to else path
            missing = not target.exists() or (target in pages and place not in pages[target].places)
            if missing:
                yield f"{path.name}: {link}"


def test_a_broken_link_is_found(site: Path, pages: dict[Path, Links]) -> None:
    page = Links('<a href="index.html#no-such-place">x</a><a href="nothing.html">y</a><a href="index.html#dgrr">z</a>')
    found = [*broken(site.resolve() / "index.html", page, pages)]
    assert found == ["index.html: index.html#no-such-place", "index.html: nothing.html"]


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Links]) -> None:
    elsewhere = re.compile(r"(?!data:)\w+:|//")  # what a page holds itself is not loaded
    assert {address for page in pages.values() for address in page.loaded if elsewhere.match(address)} == set()


def test_all_that_is_public_is_in_the_reference(site: Path) -> None:
    faces = ("tape", "tape.ops", "tape.nn", "tape.record", "runtime", "runtime.data", "runtime.optim", "runtime.onnx")
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    documented = {line.split(" ")[0] for line in zlib.decompress(inventory).decode().splitlines()}
    short = {name.rpartition(".")[2] for name in documented if name.startswith("dgrr.")}
    for face in (*(f"dgrr.{face}" for face in faces), "dgrr.trace"):
        module = importlib.import_module(face)
        for name in {*module.__all__} - short:
            assert inspect.ismodule(getattr(module, name)) and (site / "api" / f"{face}.{name}.html").exists(), name
    assert {"dgrr.tape.Tape.backward_dense", "dgrr.tape.ops.conv2d", "dgrr.runtime.Trainer.fit"} <= documented


def test_an_entry_has_shapes_dtypes_errors_source_and_example(site: Path) -> None:
    page = (site / "api" / "dgrr.tape.ops.linear.html").read_text()
    (entry,) = [part for part in page.split('<dl class="py function">') if 'id="dgrr.tape.ops.matmul"' in part]
    text = re.sub(r"<[^>]+>|\s+", " ", entry)
    for part in ("Source", "Shapes", "Dtypes", "Raises", "ShapeError", "Derivative by", ">>>"):
        assert part in text.replace("&gt;", ">"), part


def test_no_formula_shows_an_escape(site: Path) -> None:
    pages = [page for page in site.rglob("*.html") if "_modules" not in page.parts]
    assert [page.name for page in pages if re.search(r" \\[*|] ", page.read_text())] == []


def test_every_page_of_the_reference_has_a_sentence_where_it_is_listed(parts: Any) -> None:
    found = parts("reference").pages()
    below = {name: sentence for page in found.values() for name, sentence in page.below.items()}
    assert below.keys() == found.keys() - {"index"}
    assert [name for name, sentence in below.items() if not sentence or "kernel" in sentence.lower()] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_shown_with_what_it_gives(notebook: Path, site: Path) -> None:
    page = (site / "notebooks" / f"{notebook.stem}.html").read_text()
    assert page.count('class="cell docutils') == len(cells(notebook, "code"))
    assert page.count("cell_output") >= len(cells(notebook, "code")) / 2
    assert "Traceback" not in page


# ------------------------------------------------------------------ strictness


LOST = {
    "[there](nothing.md)": "'nothing.md'",
    "[there](index.md#no-such-section)": "'no-such-section'",
    "```{eval-rst}\n`Tape.nothing`\n```": "target not found: Tape.nothing",
}
"""What leads nowhere, and what is said of it."""


@pytest.mark.long
def test_what_leads_nowhere_fails_the_build(tools: None, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "dummy", "-c", str(SITE)]
    for text, failed in ("Nothing.", False), ("\n\n".join(LOST), True):
        (tmp_path / "index.md").write_text(f"# Page\n\n{text}\n")
        done = subprocess.run([*command, str(tmp_path), str(tmp_path / "out")], capture_output=True, text=True)
        assert bool(done.returncode) is failed
        assert [said in done.stderr for said in LOST.values()] == [failed] * len(LOST)


@pytest.fixture
def parts(tools: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules that build the site, by name."""
    monkeypatch.syspath_prepend(str(SITE))
    return importlib.import_module


def test_links_are_those_of_the_site(parts: Any) -> None:
    staged = parts("pages").staged
    assert staged("[nn.md](nn.md#saving)") == "[](nn.md#saving)"
    assert staged("[docs/nn.md](docs/nn.md)") == "[](nn.md)"
    assert staged("[ops.md](ops.md)") == "[the reference of ops](api/dgrr.tape.ops.rst)"
    assert (
        staged("[a.py](examples/a.py) [x](https://a.example/b.md)")
        == "[a.py](examples/a.md) [x](https://a.example/b.md)"
    )
    assert staged("```text\n[nn.md](nn.md)\n```\n") == "```text\n[nn.md](nn.md)\n```\n"


def test_what_is_said_of_kernels_is_not_shown(parts: Any, tmp_path: Path) -> None:
    notebooks, first = parts("notebooks"), tmp_path / "first"
    said = f"'ready' if Path({str(first)!r}).exists() else '{notebooks.BEGINNING} 2 kernels'"
    code = f"from pathlib import Path\nprint({said})\nPath({str(first)!r}).touch()"
    cell = {"cell_type": "code", "source": code, "outputs": [], "metadata": {}}
    kept = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [{**cell, "execution_count": None}]}
    (path := tmp_path / "cold.ipynb").write_text(json.dumps(kept))
    assert [output["text"] for output in notebooks.executed(path)["cells"][0]["outputs"]] == ["ready\n"]


def test_every_page_stands_in_the_navigation(parts: Any) -> None:
    pages = parts("pages")
    named = {name for names in pages.NAVIGATION.values() for name in names}
    written = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index", "ops"}
    generated = {"api/index", "examples/index", "changelog", "contributing"}
    assert named == written | generated | {f"notebooks/{notebook.stem}" for notebook in NOTEBOOKS}


def test_types_have_the_names_that_people_write(parts: Any) -> None:
    spelled = parts("signatures").spelled
    assert spelled("Var[Any, Unpack[tuple[Any, ...]]]") == "AnyVar"
    assert spelled("Var[F, Unpack[tuple[Any, ...]]]") == "Gradual[F]"
    assert spelled("ndarray[tuple[Any, ...], dtype[Any]]") == "ndarray"


def test_what_looks_like_markup_is_itself(parts: Any) -> None:
    rewritten = parts("docstrings").rewritten
    facts = "Source: a book.\nShapes: x (*S) -> (*S); all\nRaises:\n    ShapeError: no."
    doc = f"``a * b`` of *Bs and |x|.\n\n{facts}\n\n>>> 2 * 3\n6"
    assert rewritten(doc).splitlines() == [
        "``a * b`` of \\*Bs and \\|x\\|.",
        "",
        ":Source: a book.",
        ":Shapes: ``x (*S) -> (*S)``; all",
        ":raises ShapeError: no.",
        "",
        ">>> 2 * 3",
        "6",
    ]


# ------------------------------------------------------------------ in a browser

EACH_KIND = (
    "index",
    "getting_started",
    "from_pytorch",
    "debugging",
    "numerics",
    "trace_format",
    "changelog",
    "search",
    "api/index",
    "api/dgrr.tape",
    "api/dgrr.tape.Tape",
    "api/dgrr.tape.nn",
    "api/dgrr.tape.ops.conv",
    "examples/digits_cnn",
    "notebooks/build_and_look",
)


def test_search_finds_a_method_from_a_folder(site: Path, browser: Any) -> None:
    browser.open(site / "index.html")
    browser.find("input[name=q]").send_keys("backward_dense\n")
    found = browser.until(lambda: browser.all("#search-results ul.search li a"), "results")
    first = next(link for link in found if link.text == "dgrr.tape.Tape.backward_dense")
    assert first.get_attribute("href").endswith("/api/dgrr.tape.Tape.html#dgrr.tape.Tape.backward_dense")
    first.click()
    browser.until(lambda: browser.find("dt[id='dgrr.tape.Tape.backward_dense']").is_displayed(), "its entry")


def test_search_shows_excerpts_from_a_folder(site: Path, browser: Any) -> None:
    browser.open(site / "index.html")
    browser.find("input[name=q]").send_keys("early stopping\n")
    found = browser.until(lambda: browser.all("#search-results p.context"), "excerpts")
    assert any("stop" in excerpt.text.lower() for excerpt in found)
    assert browser.console() == []


@pytest.mark.parametrize("page", EACH_KIND)
def test_code_is_whole_at_1280(page: str, site: Path, browser: Any) -> None:
    browser.open(site / f"{page}.html", width=1280)
    assert (
        browser.js("return [...document.querySelectorAll('pre')].filter(x => x.scrollWidth > x.clientWidth).length")
        == 0
    )


@pytest.mark.parametrize("page", ["command_line", "from_pytorch_names", "api/dgrr.tape.Tape"])
def test_a_narrow_table_breaks_no_name(page: str, site: Path, browser: Any) -> None:
    browser.open(site / f"{page}.html", width=380, height=760)
    broken = """return [...document.querySelectorAll('table code')].filter(
        x => !/[^\\w.]/.test(x.innerText) && x.getClientRects().length > 1).map(x => x.innerText)"""
    assert browser.js("return document.querySelectorAll('table code').length") > 10
    assert browser.js(broken) == []


@pytest.mark.parametrize("page", EACH_KIND)
def test_a_page_fits_a_narrow_window(page: str, site: Path, browser: Any) -> None:
    for dark in (False, True):
        browser.open(site / f"{page}.html", width=380, height=760, dark=dark)
        assert browser.js("return document.documentElement.scrollWidth") == 380
        assert browser.console() == []


def test_the_first_screen_shows_the_three_uses(site: Path, browser: Any) -> None:
    browser.open(site / "index.html", width=1280, height=800)
    boxes = [block.rect for block in browser.all(".uses pre")]
    assert len(boxes) == 3
    assert all(box["y"] + box["height"] <= 800 for box in boxes)
    assert len({box["x"] for box in boxes}) == 3
    assert not any(
        browser.js("return arguments[0].scrollWidth > arguments[0].clientWidth", b) for b in browser.all(".uses pre")
    )
