"""The pictures of README and of the first page: there, small, referenced, and of what the commands print now."""

import re
import runpy
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
SHOWN = ("diff.svg", "golden_test.svg", "report.png")


@pytest.fixture(scope="module")
def generator() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "generate_pictures.py"))


def test_all_pictures_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in PICTURES.iterdir()}
    assert sizes.keys() == {*SHOWN, "logo.svg"}
    assert max(sizes.values()) <= 150_000


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_first_page_shows_every_picture_before_any_code(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    places = dict(re.findall(r"^\[([^\]]+)\]: (\S+)$", text, re.MULTILINE))
    shown = re.findall(r"!\[([^\]]+)\](?:\((\S+?)\))?", text.split("```python")[0])
    found = [((ROOT / page).parent / (path or places[name])).resolve() for name, path in shown]
    assert {*SHOWN} == {path.name for path in found} - {"logo.svg"}
    assert all(path.parent == PICTURES and path.exists() for path in found)


@pytest.mark.long
def test_terminals_show_what_the_commands_print(generator: dict[str, Any], tmp_path: Path) -> None:
    printed = generator["terminals"](tmp_path)
    assert {f"{name}.svg" for name in printed} == {name for name in SHOWN if name.endswith(".svg")}
    for name, text in printed.items():
        shown = generator["characters"]((PICTURES / f"{name}.svg").read_text(encoding="utf-8"))
        assert shown == "".join(["dgrr", *text.plain.split()]), "stale: run docs/generate_pictures.py"


@pytest.mark.parametrize("name", [name for name in SHOWN if name.endswith(".svg")])
def test_a_picture_loads_nothing(name: str) -> None:
    assert re.findall(r"url\((?!#)[^)]*\)|href=\"[^#]", (PICTURES / name).read_text(encoding="utf-8")) == []


def test_the_report_has_the_logo_as_its_icon() -> None:
    icon = b64encode((PICTURES / "logo.svg").read_bytes()).decode()
    assert f'<link rel="icon" href="data:image/svg+xml;base64,{icon}">' in (
        ROOT / "trace" / "report" / "page" / "page.html"
    ).read_text(encoding="utf-8")
