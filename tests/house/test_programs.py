"""The library as its users see it: whole programs, each run in a process and a folder of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

INSPECT = """
import numpy as np
from dgrr.tape import Tape, ops

rng = np.random.default_rng(0)
tape = Tape()
x = tape.const(rng.standard_normal((64, 8)).astype(np.float32), name="x")
w = tape.param(np.zeros((10, 8), np.float32), name="w")
b = tape.param(np.zeros(10, np.float32), name="b")
labels = tape.const(rng.integers(0, 10, 64), name="labels")

logits = ops.linear(x, w, b)                 # x @ w.T + b
loss = ops.cross_entropy(logits, labels)     # mean over the batch, a scalar Var
grads = tape.backward_dense(loss)            # the gradient of *every* node

print(loss.item(), grads[w].shape, grads["b"])
print(grads.table())                         # name, op, shape, |g|, min, max, zeros, non-finite
print(tape.summary())                        # id, op, shape, dtype, parents, bytes
y = (x @ w.T + b).relu().sum()               # the same ops as methods and operators
"""

MODEL = """
from dgrr.tape import nn, ops

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
params = model.init(seed=0)                  # dict: "0.weight" -> float32 array, in a fixed order
print(model)                                 # layer, parameter shapes, counts

def loss_fn(p, batch):                       # p: Mapping[str, Var]; batch: what the caller passes, as Vars
    images, labels = batch
    return ops.cross_entropy(model(p, images), labels)
"""

TRAIN = """
from dgrr.runtime import Adam, Trainer, capture, data

train, test = data.digits()                  # 1,797 8x8 digits, shipped in the package
trainer = Trainer(loss_fn, params, Adam(lr=1e-3), trace="digits.dgrr")
result = trainer.fit(train.batches(64, seed=0), epochs=20)   # progress bar on a terminal
print(result.losses[-1], trainer.evaluate(test, metric="accuracy", model=model))
"""

REPLAY = """
from dgrr.trace import open_trace, replay, validate

with open_trace("digits.dgrr") as t:
    print(len(t), t.loss[-1], t.tensor("0.weight", step=10, what="grad").shape)
print(validate("digits.dgrr"))               # structure, chain, every recorded digest
print(replay("digits.dgrr"))                 # every update recomputed from its recorded gradient, bit for bit
print(replay("digits.dgrr", loss_fn=loss_fn, batches=train.batches(64, seed=0)))   # and every gradient re-executed
"""

PROBE = "\nimport json\nprint(json.dumps({facts}))\n"


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def run_program(program: str, facts: str) -> tuple[list[str], dict[str, Any]]:
        """The lines that a program prints, and facts about its variables at its end."""
        path = tmp_path / "program.py"
        path.write_text(program + PROBE.format(facts=facts))
        command = [sys.executable, "-W", "error", path.name]
        ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
        assert (ended.returncode, ended.stderr) == (0, "")
        *lines, last = ended.stdout.splitlines()
        return lines, json.loads(last)

    return run_program


def cells(line: str) -> list[str]:
    """The cells of a line of a printed table."""
    return [cell.strip() for cell in line.strip("┃│").replace("┃", "│").split("│")]


def test_build_differentiate_inspect(run: Any) -> None:
    facts = """{
        "loss": loss.item(), "dtype": str(loss.dtype), "shape": list(loss.shape),
        "b": grads["b"].numpy().tolist(), "counts": np.bincount(labels.numpy(), minlength=10).tolist(),
        "logits": np.abs(logits.numpy()).max().item(), "y": y.item(), "nodes": len(tape),
    }"""
    lines, said = run(INSPECT, facts)
    ln10 = 2.302585092994046  # ten classes, all equally likely
    assert (said["dtype"], said["shape"]) == ("float32", [])
    assert abs(said["loss"] - ln10) <= 2**-22  # one ULP of a float32 there
    assert lines[0].startswith(f"{said['loss']} (10, 8) ")
    expected = [0.1 - count / 64 for count in said["counts"]]
    assert said["b"] == pytest.approx(expected, abs=1e-7)
    assert (said["logits"], said["y"]) == (0.0, 0.0)
    tables = [cells(line) for line in lines]
    assert ["id", "name", "op", "shape", "norm", "min", "max", "zeros", "non-finite"] in tables
    assert ["id", "name", "op", "shape", "dtype", "parents", "bytes", "grad"] in tables
    assert ["0", "x", "leaf", "(64, 8)", "float32", "", "2048", ""] in tables
    assert ["4", "-", "linear", "(64, 10)", "float32", "0, 1, 2", "2560", "yes"] in tables


def test_models_are_functions_of_named_parameters(run: Any) -> None:
    facts = """{
        "params": {name: [list(value.shape), str(value.dtype)] for name, value in params.items()},
        "loss": [loss.dtype.name, list(loss.shape), loss.item()],
    }"""
    batch = (
        "import numpy as np\n"
        "from dgrr.tape import Tape\n"
        "tape = Tape()\n"
        "loss = loss_fn(tape.params(params), (tape.const(np.zeros((2, 64), np.float32)), tape.const([3, 4])))\n"
    )
    lines, said = run(MODEL + batch, facts)
    assert said["params"] == {
        "0.weight": [[128, 64], "float32"],
        "0.bias": [[128], "float32"],
        "2.weight": [[10, 128], "float32"],
        "2.bias": [[10], "float32"],
    }
    dtype, shape, loss = said["loss"]
    assert (dtype, shape) == ("float32", [])
    assert 1.9 < loss < 2.7  # a fresh model knows nothing: near ln 10
    linear = "Linear(in_features=64, out_features=128, bias=True)"
    tables = [cells(line) for line in lines]
    assert ["0", linear, "weight (128, 64), bias (128,)", str(128 * 64 + 128)] in tables
    assert ["1", "ReLU()", "-", "0"] in tables
    assert ["", "", "total", str(128 * 64 + 128 + 10 * 128 + 10)] in tables


def test_train_record_replay(run: Any) -> None:
    facts = """{
        "steps": result.steps, "losses": [result.losses[0].item(), result.losses[-1].item()],
        "samples": [len(train), len(test)],
        "start": all((params[name] == model.init(seed=0)[name]).all() for name in params),
        "capture": callable(capture),
    }"""
    lines, said = run(MODEL + TRAIN + REPLAY, facts)
    steps, samples = said["steps"], said["samples"]
    assert sum(samples) == 1797
    assert steps == 20 * -(-samples[0] // 64)
    begin = next(i for i, line in enumerate(lines) if line[0].isdigit())
    trained, opened, *reports = lines[begin:]
    loss, accuracy = map(float, trained.split())
    assert loss == pytest.approx(said["losses"][1], rel=1e-6)
    assert loss < 0.3 < 2 < said["losses"][0]
    assert accuracy > 0.95
    assert opened.split(maxsplit=2) == [str(steps), trained.split()[0], "(128, 64)"]
    assert said["start"]
    assert said["capture"]
    assert "\n".join(reports) == "\n".join(
        report(steps, update, gradient)
        for update, gradient in (("not proven", "not proven"), ("proven", "not proven"), ("proven", "proven"))
    )


def report(steps: int, update: str, gradient: str) -> str:
    """A report of a sealed trace in which nothing is wrong."""
    proofs = {"structure": "proven", "chain": "proven", "update": update, "gradient": gradient, "data": gradient}
    rows = [f"  {name:<10} {proof}" for name, proof in proofs.items()]
    return "\n".join([f"digits.dgrr: ok (version 2, {steps} steps)", *rows])
