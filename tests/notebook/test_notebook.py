"""A notebook, executed: what its cells show, and the progress bar."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

EXTRAS = ("matplotlib", "nbclient", "nbformat", "ipykernel", "ipywidgets")

BEGIN = """
import numpy as np
from dgrr.runtime import SGD, Trainer
from dgrr.tape import Tape, ops

tape = Tape()
x = tape.leaf(np.ones((2, 3)), name="<x>")
loss = ops.scale(x, 2.0).sum()
grads = tape.backward_dense(loss)
trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(3)}, SGD(0.1), trace="run.dgrr")
result = trainer.fit([np.ones(3)] * 5, epochs=2)
"""

WITHOUT_WIDGETS = """
import sys
import warnings
warnings.simplefilter("error")
sys.modules["ipywidgets"] = None
trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(3)}, SGD(0.1))
_ = trainer.fit([np.ones(3)] * 5, epochs=2)
"""

SHOWN = ("x", "tape", "grads", "grads.table()", "trainer", "result", "result.history")
PRINTED = ("tape", "grads", "grads.table()", "trainer", "result", "result.history")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Cell → its outputs, and what the widgets hold at the end."""
    for name in EXTRAS:
        pytest.importorskip(name, reason=f"{name} is not installed: pip install {' '.join(EXTRAS)}")
    import nbclient
    import nbformat

    folder = tmp_path_factory.mktemp("notebook")
    cells = [
        BEGIN,
        *SHOWN,
        *map("print({})".format, PRINTED),
        "_ = result.plot()",
        "print(tape.explain(0, grads))",
        WITHOUT_WIDGETS,
    ]
    notebook: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(_kernel(folder)))
        client: Any = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")
        client.execute(cwd=str(folder))
    return {cell.source: cell.outputs for cell in notebook.cells}, notebook.metadata


def _kernel(folder: Path) -> Path:
    """A folder with a kernel that is this Python."""
    place = folder / "kernels" / "python3"
    place.mkdir(parents=True)
    command = [sys.executable, "-W", "ignore", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (place / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "test", "language": "python"}))
    return folder


@pytest.mark.parametrize("cell", SHOWN)
def test_a_cell_shows_html_and_text(outputs: Any, cell: str) -> None:
    (shown,) = outputs[0][cell]
    assert shown.output_type == "execute_result"
    assert "<table" in shown.data["text/html"] and "<x>" not in shown.data["text/html"]
    assert " at 0x" not in shown.data["text/plain"]


@pytest.mark.parametrize("what", PRINTED)
def test_what_is_printed_is_text(outputs: Any, what: str) -> None:
    (shown,) = outputs[0][f"print({what})"]
    assert (shown.output_type, shown.name) == ("stream", "stdout")
    assert shown.text.strip()


def test_a_plot_is_a_picture(outputs: Any) -> None:
    (shown,) = outputs[0]["_ = result.plot()"]
    assert "image/png" in shown.data


def test_the_bar_of_a_fit_ends_where_the_fit_ends(outputs: Any) -> None:
    held = outputs[1]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"].values()
    texts = [each["data"]["text/plain"] for state in held for each in state["state"].get("outputs", ())]
    assert any(re.search(r"epoch 2/2 .*10/10", re.sub(r"\x1b\[[\d;]*m", "", text)) for text in texts)


def test_nodes_name_their_cell_and_line(outputs: Any) -> None:
    """IPython takes the empty lines away that a cell begins with."""
    (printed,) = outputs[0]["print(tape.explain(0, grads))"]
    assert "Cell In[1], line 6: x = tape.leaf(np.ones((2, 3))" in printed.text
    assert "Cell In[1], line 7: loss = ops.scale(x, 2.0).sum()" in printed.text


def test_without_widgets_a_fit_prints_a_line_per_epoch(outputs: Any) -> None:
    told = str(outputs[0][WITHOUT_WIDGETS])
    assert "epoch 1/2: step 5, loss" in told
    assert "epoch 2/2: step 10, loss" in told
    assert "arning" not in told
