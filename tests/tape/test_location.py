"""Nodes know the user's line that made them."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.tape import Location, Tape, nn, ops


def here() -> int:
    """The line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def located(tape: Tape[Any], key: Any) -> Location:
    location = tape.node(key).location
    assert location is not None
    return location


def test_every_way_to_make_a_node_names_the_users_line(tape: Tape[Any]) -> None:
    before = here()
    leaf = tape.leaf([1.0, 2.0])
    param = tape.param([1.0, 2.0])
    const = tape.const([1.0, 2.0])
    by_op = ops.exp(leaf)
    by_method = leaf.exp()
    by_operator = leaf + param
    by_broadcast = leaf * np.array([[1.0], [2.0], [3.0]])
    made = [leaf, param, const, by_op, by_method, by_operator, by_broadcast]
    assert [located(tape, v).line for v in made] == list(range(before + 1, before + 8))
    assert {located(tape, node.id).file for node in tape} == {__file__}
    assert located(tape, by_operator) == Location(
        __file__,
        before + 6,
        "test_every_way_to_make_a_node_names_the_users_line",
        "by_operator = leaf + param",
    )
    inner = tape.node(by_broadcast).parents  # broadcast_to, and the constant that the array became
    assert [located(tape, id).line for id in inner] == [before + 7] * 2


def test_every_instruction_of_a_function_has_its_line() -> None:
    code = located.__code__
    first_offsets = [(start, line) for start, _, line in code.co_lines() if line is not None]
    assert len(first_offsets) > 3
    assert [Location.of((code, start)).line for start, _ in first_offsets] == [line for _, line in first_offsets]


def test_a_call_over_several_lines_is_named_by_the_line_of_the_op(tape: Tape[Any]) -> None:
    before = here()
    x = tape.leaf(
        np.ones(3),
    )
    assert located(tape, x).line == before + 1
    assert located(tape, x).text == "x = tape.leaf("


def test_what_a_layer_makes_names_the_line_that_called_the_layer(tape: Tape[Any]) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    p, x = tape.params(model.init(seed=0)), tape.const(np.ones((1, 2), np.float32))
    y = model(p, x)
    assert located(tape, y).text == "y = model(p, x)"


def test_recorded_vjps_name_the_line_that_called_backward(tape: Tape[Any]) -> None:
    x = tape.leaf(2.0)
    grads = tape.backward_dense(x * x, create_graph=True)
    gradient = grads[x]
    assert gradient is not None
    assert located(tape, gradient).text.startswith("grads = tape.backward_dense(")


def test_locations_can_be_switched_off() -> None:
    tape: Tape[Any] = Tape(locations=False)
    x = tape.leaf(1.0)
    _ = x * 2.0
    assert [node.location for node in tape] == [None] * 3


def test_a_location_is_shown_as_seen_from_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    location = Location("/home/me/run/train.py", 12, "step", "y = x.log()")
    assert str(location) == "/home/me/run/train.py:12: y = x.log()"
    monkeypatch.setattr(Path, "cwd", lambda: Path("/home/me"))
    assert str(location) == "run/train.py:12: y = x.log()"
    assert str(Location("<stdin>", 1, "<module>", "")) == "<stdin>:1"


def test_a_program_without_a_file_has_lines_without_text() -> None:
    program = "from dgrr.tape import Tape\nt = Tape()\nt.leaf(1.0)\nprint(t.node(0).location)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "<string>:3\n"


@pytest.mark.long
def test_what_the_program_makes_names_no_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import numpy as np\nfrom dgrr.runtime import SGD, Trainer\n\n"
        'def loss_fn(p, x):\n    return (p["w"] * x).sum()\n\n'
        "def run():\n    return loss_fn, [np.ones(2)] * 2\n\n"
        'if __name__ == "__main__":\n'
        '    Trainer(loss_fn, {"w": np.ones(2)}, SGD(0.1), trace="run.dgrr").fit(run()[1])\n'
    )
    for words in (
        ["model.py"],
        ["-m", "dgrr", *["at", "run.dgrr", "--step", "1", "--model", "model:run", "--explain", "w"]],
    ):
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert 'model.py:5: return (p["w"] * x).sum()' in done.stdout
    assert "__main__.py" not in done.stdout
