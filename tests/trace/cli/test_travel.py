"""``dgrr at``: a past step as a table, a way, a graph, and its weights as a file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.tape import nn
from dgrr.trace import at, replay
from dgrr.trace.cli import main

from ...keeping import kept
from .conftest import ModuleOf

MODULE = """
import numpy as np
from dgrr.runtime.optim import ops_rule

BATCHES = [np.arange(3.0), np.ones(3), np.array([2.0, 2.0, 4.0])]


def loss_fn(p, x, ctx):
    ctx.update("calls", ctx.state["calls"] + 1.0)
    return (p["w"] * x).sum(), ctx.state


def run():
    return loss_fn, BATCHES


def broken():
    def raises(p, x, ctx):
        raise SystemExit(0)
    return raises, BATCHES


@ops_rule("plain@1")
def Plain(p, g, *, lr=0.5):
    return p - lr * g
"""
AT = ["at", "run.dgrr", "--step", "2", "--model", "model_of_travel:run"]


@pytest.fixture
def model(module_of: ModuleOf) -> Any:
    """A module with a run, which is recorded beside it."""
    model = module_of("model_of_travel", MODULE)
    record(model, "run.dgrr", SGD(0.5), keyframe_every=2)
    return model


def record(model: Any, path: str, rule: Any, **options: Any) -> None:
    params, state = {"w": np.ones(3)}, {"calls": np.zeros(())}
    run = Trainer(
        model.loss_fn, params, rule, model_state=state, mode="eager", **kept(path, {"record": "digest", **options})
    )
    run.fit(model.BATCHES, steps=3, progress=False)


def test_a_table_of_every_node(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(AT) == 0
    head, title, *rows = capsys.readouterr().out.splitlines()
    assert head == "run.dgrr: step 2, loss -1.0, rebuilt from the state before step 2"
    assert title.strip() == "step 2: values and gradients"
    past = at("run.dgrr", 2, model.loss_fn, model.BATCHES)
    assert sum(row.startswith("│") for row in rows) == len(past.tape)
    assert main([*AT, "--table", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert [row["value norm"] for row in result["rows"]] == [row["value norm"] for row in past.table()]
    assert (result["loss"], result["keyframe"], result["saved"]) == (-1.0, 2, None)


@pytest.mark.parametrize("node", ["w", "0"])
def test_the_way_of_a_node(model: Any, capsys: pytest.CaptureFixture[str], node: str) -> None:
    assert main([*AT, "--explain", node]) == 0
    out = capsys.readouterr().out
    assert "from node 0 (leaf 'w') to node" in out and "reduce_sum" in out


def test_the_graph_alone_goes_to_standard_output(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*AT, "--dot", "--save", "w"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("digraph") and out.endswith("}\n") and err == ""


def test_the_weights_before_the_step(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*AT, "--save", "before.safetensors"]) == 0
    assert "before.safetensors: the weights before step 2" in capsys.readouterr().out
    found = nn.load("before.safetensors")
    assert {name: a.tolist() for name, a in found.items()} == {"w": [0.5, 0.0, -0.5], "calls": 2.0}


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (
            [*AT, "--explain", "v"],
            "argument --explain: name 'v': expected one node of that name, got no node",
        ),
        ([*AT, "--explain", "99"], "argument --explain: node: expected an id from 0 to 7, got 99"),
        ([*AT, "--micro-batch", "1"], "argument --micro-batch: expected 0 to 0, got 1: step 2 has 1 of them"),
        ([*AT, "--save", "run.dgrr"], "argument --save: run.dgrr already exists"),
        (["at", "run.dgrr", "--step", "3", *AT[4:]], "argument --step: run.dgrr has no step 3: it has steps 0 to 2"),
        ([*AT[:4]], "the following arguments are required: --model"),
        ([*AT, "--dot", "--table"], "argument --table: not allowed with argument --dot"),
        ([*AT, "--rule", "model_of_travel:run"], "argument --rule: model_of_travel:run: expected a class of rules"),
    ],
)
def test_what_cannot_be_asked(model: Any, capsys: pytest.CaptureFixture[str], more: list[str], error: str) -> None:
    before = Path("run.dgrr").read_bytes()
    assert main(more) == 1
    out, err = capsys.readouterr()
    assert error in err and out == ""
    assert Path("run.dgrr").read_bytes() == before


def test_a_model_that_ends_the_process(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*AT[:-1], "model_of_travel:broken"]) == 5
    expected = "dgrr: run.dgrr: gradient: step 2: the model cannot be executed again: SystemExit: 0\n"
    assert capsys.readouterr().err == expected


def test_a_rule_of_ones_own(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    record(model, "own.dgrr", model.Plain())
    command = ["at", "own.dgrr", *AT[2:]]
    assert main(command) == 6
    assert "unproven: step 0: the rule 'plain@1' is not known" in capsys.readouterr().err
    assert main([*command, "--rule", "model_of_travel:Plain"]) == 0
    assert replay("own.dgrr", loss_fn=model.loss_fn, batches=model.BATCHES, rules=[model.Plain]).ok


def test_a_trace_of_version_1(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--steps", "2", "--out", "v1"]) == 0
    assert main(["at", "v1", "--step", "0", "--model", "m:f"]) == 1
    assert "argument PATH: v1 is of version 1, whose steps dgrr inspect shows" in capsys.readouterr().err
