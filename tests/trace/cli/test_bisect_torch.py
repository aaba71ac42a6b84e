"""``dgrr bisect --train-b``: the op by which two runs of PyTorch part, on a command line."""

import json
from collections.abc import Callable

import pytest

from dgrr.trace.cli import main

from .conftest import ModuleOf

pytest.importorskip("torch", reason="these tests need PyTorch: pip install -e '.[test,torch]'")

Answered = Callable[[str], tuple[int, str, str]]

PROGRAM = """\
import torch

from dgrr.trace import Keep, record_torch


def good(trace, factor=1.0):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record_torch(model, optimizer, trace) as run:
        for k in range(4):
            if run.skips():
                continue
            optimizer.zero_grad()
            run.loss((model(torch.ones(2, 3)) * (factor if k == 3 else 1.0)).sum()).backward()
            optimizer.step()


def moved(trace):
    good(trace, 1.5)


def broken(trace):
    raise OSError("no data")


for name, train in (("a", good), ("b", moved)):
    train(Keep(name, record="digest", keyframe_every=2))
"""


@pytest.fixture
def bisect(module_of: ModuleOf, capsys: pytest.CaptureFixture[str]) -> Answered:
    """Runs the command in a folder with a program and its traces."""
    module_of("parted_runs", PROGRAM)

    def run(command: str) -> tuple[int, str, str]:
        return main(["bisect", *command.split()]), *capsys.readouterr()

    return run


@pytest.mark.parametrize("paths", ["a b", "a"])
def test_the_first_op_is_named(bisect: Answered, paths: str) -> None:
    code, out, err = bisect(f"{paths} --train-a parted_runs:good --train-b parted_runs:moved --json")
    found = json.loads(out)["result"]["comparison"]
    assert (code, err, found["verdict"], found["step"]) == (4, "", "diverged", 3)
    assert (found["call"]["call"]["name"], found["call"]["call"]["options"]) == ("aten.mul.Tensor", "other=1.5")
    assert "trained again, 2 steps: a" in found["notes"], "from the state before step 2"


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("a a --train-b parted_runs:good", 0, "ok: equal to the bit: 4 steps"),
        ("a b --train-b parted_runs:moved", 4, "unproven: a holds no calls of ops of step 3: give train_a=…"),
        ("a --train-a parted_runs:good", 1, "expected two traces, PATH_A and PATH_B, got 1"),
        ("a --model m:f --train-b parted_runs:good", 1, "argument --train-b: not allowed with argument --model"),
        ("a b --train-a parted_runs:good --proven", 1, "argument --proven: not allowed with --train-a and --train-b"),
        ("a --train-b parted_runs:gone", 1, "argument --train-b: parted_runs:gone: module 'parted_runs' has no"),
        ("a --train-b parted_runs:broken", 1, "--train-b: parted_runs:broken: while training: raised OSError: no data"),
        ("a --train-b parted_runs:gone --git", 125, "argument --train-b: parted_runs:gone: module 'parted_runs' has"),
        ("missing a --train-b parted_runs:good", 2, "cannot open missing"),
    ],
)
def test_answers(bisect: Answered, command: str, code: int, text: str) -> None:
    found, out, err = bisect(command)
    assert (found, text in (out if code in (0, 4) else err)) == (code, True), (out, err)
    assert "Traceback" not in err
