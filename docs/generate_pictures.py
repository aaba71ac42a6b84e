"""Writes docs/pictures: ``python docs/generate_pictures.py``, with Chromium and the extras ``report`` and ``browser``.

Terminals are drawn from what the commands print when they are run here; a test fails when a picture shows another text.
"""

import html
import io
import os
import re
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from rich import terminal_theme
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

PICTURES = Path(__file__).with_name("pictures")

WIDTH = 102
"""Characters in a line of a terminal."""

TEST = """\
from dgrr.runtime import Adam, Trainer, data
from dgrr.tape import nn, ops

model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
train, test = data.digits()


def loss_fn(p, batch):
    images, labels = batch
    return ops.cross_entropy(model(p, images), labels)


def test_digits(golden_trace):
    trainer = Trainer(loss_fn, model.init(seed=0), Adam(lr=1e-3), trace=golden_trace())
    trainer.fit(train.batches(64, seed=0), steps=50)
"""
"""README's test."""

TRAIN = """\
import sys

from dgrr.runtime import Adam, Keep, Trainer, data
from dgrr.tape import nn, ops

model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 10))


def loss_fn(p, batch):
    images, labels = batch
    return ops.cross_entropy(model(p, images), labels)


trainer = Trainer(loss_fn, model.init(seed=0), Adam(lr=1e-3), trace=Keep(sys.argv[1], ops="first"))
trainer.fit(data.digits()[0].batches(64, seed=0), steps=100)
"""
LINE = "return ops.cross_entropy(model(p, images), labels)"
CHANGED = "return ops.cross_entropy(model(p, images), labels, label_smoothing=0.1)"


def terminals(folder: Path) -> dict[str, Text]:
    """What the terminal pictures show, by their names, from commands that run in an empty folder."""
    return {"golden_test": golden_test(folder), "diff": diff(folder)}


def golden_test(folder: Path) -> Text:
    """pytest records a golden trace, and fails once the model has another activation."""
    test = folder / "tests" / "test_digits.py"
    test.parent.mkdir()
    test.write_text(TEST)
    ask = ["-m", "pytest", "-q", "--color=yes", "--basetemp=new", "-p", "no:cacheprovider", "-p", "no:xdist"]
    run(folder, *ask, CI="", PYTEST_ADDOPTS="")
    test.write_text(TEST.replace("ReLU", "GELU"))
    printed = run(folder, *ask, "--tb=short", fails=True, CI="", PYTEST_ADDOPTS="")
    return shown(
        "sed -i s/ReLU/GELU/ tests/test_digits.py && pytest -q --tb=short",
        re.sub(r"in \d+\.\d+s", "in 2.10s", printed).replace(f"{folder}/", ""),
    )


def diff(folder: Path) -> Text:
    """``dgrr diff`` of two runs between which a line of the program was edited."""
    program = folder / "train.py"
    for name, text in (("monday", TRAIN), ("friday", TRAIN.replace(LINE, CHANGED))):
        program.write_text(text)
        run(folder, program.name, f"{name}.dgrr")
    printed = run(folder, "-m", "dgrr", "diff", "monday.dgrr", "friday.dgrr", fails=True)
    return shown("dgrr diff monday.dgrr friday.dgrr", printed)


def report(folder: Path, to: Path) -> None:
    """The losses and the gradients in the report of both runs, as PNG of at most 200 colours."""
    run(folder, "-m", "dgrr", "report", "monday.dgrr", "friday.dgrr", "-o", "report.html")
    page, taken = folder / "report.html", folder / "report.png"
    only = "<style>main > :not(#loss, #gradients) { display: none }</style></head>"
    page.write_text(page.read_text(encoding="utf-8").replace("</head>", only, 1), encoding="utf-8")
    chromium = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    chromium += ["--hide-scrollbars", f"--user-data-dir={folder / 'profile'}", "--window-size=1280,1160"]
    chromium += ["--virtual-time-budget=10000", f"--screenshot={taken}", page.as_uri()]
    subprocess.run(chromium, check=True, capture_output=True)
    import_module("PIL.Image").open(taken).convert("RGB").quantize(200).save(to, optimize=True)


def run(folder: Path, *arguments: str, fails: bool = False, **variables: str) -> str:
    """What Python prints with these arguments."""
    environment = {**os.environ, "COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8", **variables}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, encoding="utf-8"
    )
    if bool(done.returncode) is not fails:
        raise SystemExit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def shown(command: str, printed: str) -> Text:
    """A terminal in which a command was run."""
    return Text.assemble(("$ ", "green"), (command, "bold"), "\n", Text.from_ansi(printed.strip("\n")))


def drawn(name: str, text: Text) -> str:
    """A terminal as SVG that loads no font."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(text, highlight=False, crop=False)
    form = re.sub(r" *@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="dgrr", theme=terminal_theme.MONOKAI, code_format=form, unique_id=name)


def characters(svg: str) -> str:
    """All that a picture shows but for the spaces, in order."""
    return "".join(html.unescape("".join(re.findall(r"<text [^>]*>([^<]*)</text>", svg))).split())


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in terminals(Path(folder)).items():
            (PICTURES / f"{name}.svg").write_text(drawn(name, text), encoding="utf-8")
        report(Path(folder), PICTURES / "report.png")
