"""``dgrr audit``: its answers, exit codes, certificates, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Keep, Trainer
from dgrr.trace.auditing.read_certificate import read_certificate
from dgrr.trace.cli import main

from .conftest import ModuleOf

MODULE = """
import numpy as np
from dgrr.runtime.optim import ops_rule

BATCHES = [np.arange(3.0), np.ones(3), np.array([2.0, 2.0, 4.0])]
calls = 0


def loss_fn(p, x):
    return (p["w"] * x).sum()


def run():
    print("a word on the way")
    return loss_fn, BATCHES


def other():
    return (lambda p, x: loss_fn(p, x) * 2), BATCHES


def interrupted():
    def loss(p, x):
        global calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        return loss_fn(p, x)
    return loss, BATCHES


@ops_rule("plain@1")
def Plain(p, g, *, lr=0.5):
    return p - lr * g
"""


@pytest.fixture
def model(module_of: ModuleOf) -> Any:
    """A module with a run, which is recorded beside it."""
    model = module_of("model_of_audit", MODULE)
    for name, rule in (("run.dgrr", SGD(0.5)), ("mine.dgrr", model.Plain())):
        trainer = Trainer(model.loss_fn, {"w": np.ones(3)}, rule, trace=Keep(name, record="digest", keyframe_every=4))
        trainer.fit(model.BATCHES, steps=12)
    return model


def said(capsys: pytest.CaptureFixture[str], command: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(command.split())
    return code, *capsys.readouterr()


def test_what_it_says(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "audit run.dgrr --model model_of_audit:run --nonce 00ff --sample 12")
    root = Path("run.dgrr").read_bytes()[-16:].hex()
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "a word on the way",
        "run.dgrr: ok, 12 of 12 steps computed, of 12 there are",
        f"  root       {root}",
        "  nonce      00ff",
        "  a trace with so many forged steps would have passed with at most this probability:",
        "    one step  0.000000  (1 of 12 steps)",
        "    0.1 %     0.000000  (1 of 12 steps)",
        "    1 %       0.000000  (1 of 12 steps)",
        "    10 %      0.000000  (2 of 12 steps)",
        "  12 of 12 steps computed, from 3 recorded states",
        "  its digests, XXH3-128, stop no forger: record with SHA-256 if you fear one",
    ]
    code, out, err = said(capsys, "audit run.dgrr --model model_of_audit:other")
    assert (code, out) == (5, "")
    assert "run.dgrr: gradient, 12 of 12 steps computed" in err and "  gradient: step 0, 'loss': element" in err


def test_a_certificate_is_written_and_checked(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    command = "audit run.dgrr --model model_of_audit:run --sample 3 -o c.json"
    assert said(capsys, command)[0] == 0
    code, _, err = said(capsys, command)
    assert (code, err) == (1, "dgrr: argument --out: c.json already exists: --resume continues it\n")
    assert said(capsys, f"{command} --resume")[0] == 0
    code, out, _ = said(capsys, "audit run.dgrr --check c.json")
    assert code == 0 and out.startswith("run.dgrr: ok, 3 of 3 steps computed")
    code, _, err = said(capsys, "audit mine.dgrr --check c.json")
    assert code == 4 and err.startswith("dgrr: c.json: it is the certificate of another trace, whose last digest is ")
    Path("c.json").write_text("[]")
    code, _, err = said(capsys, "audit run.dgrr --check c.json")
    assert (code, err) == (
        3,
        "dgrr: c.json: not a certificate of an audit: the certificate: expected an object, got a list\n",
    )
    code, _, err = said(capsys, f"{command} --resume")
    assert code == 3
    assert said(capsys, "audit run.dgrr --check missing")[0] == 2


def test_ctrl_c_and_on(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    command = "audit run.dgrr --model model_of_audit:interrupted --sample 12 --nonce aa -o c.json --resume"
    code, out, err = said(capsys, command)
    assert (code, out) == (130, "")
    assert err == "dgrr: interrupted; c.json has 5 of 12 units, and --resume continues it\n"
    code, _, err = said(capsys, "audit run.dgrr --check c.json")
    assert code == 6 and err.startswith("run.dgrr: unproven, 5 of 12 steps computed")
    assert said(capsys, command)[0] == 0
    assert len(read_certificate("c.json").found) == 12
    model.calls = 0
    assert said(capsys, command.replace(" -o c.json --resume", ""))[2] == "dgrr: interrupted\n"


@pytest.mark.long
def test_side_by_side_with_a_rule_of_ones_own(model: Any, capfd: pytest.CaptureFixture[str]) -> None:
    command = "audit mine.dgrr --model model_of_audit:run --rule model_of_audit:Plain --sample 12 --nonce aa --json"
    assert main(command.split()) == 0
    alone = json.loads(capfd.readouterr().out)
    assert main([*command.split(), "--jobs", "2"]) == 0
    out, err = capfd.readouterr()  # what the other processes say too
    assert json.loads(out) == alone
    assert err.count("a word on the way") == 3
    assert main(["audit", "mine.dgrr", "--model", "model_of_audit:run", "--sample", "12"]) == 6
    assert "the rule 'plain@1' is not known to this library" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("rest", "code", "text"),
    [
        ("", 1, "one of the arguments --model --check is required"),
        ("--model m:f --check c", 1, "argument --check: not allowed with argument --model"),
        ("--check c --sample 3", 1, "argument --sample: not allowed with argument --check"),
        ("--check c --out d", 1, "argument --out: not allowed with argument --check"),
        ("--check c --seed 0", 1, "argument --seed: not allowed with argument --check"),
        ("--model model_of_audit:run --resume", 1, "argument --resume: it requires --out, the certificate to continue"),
        ("--model model_of_audit:nothing", 1, "has no attribute 'nothing'"),
        ("--model model_of_audit:run --nonce 0", 1, "expected 1 to 64 bytes in hexadecimal digits, got '0'"),
        ("--model model_of_audit:run --nonce xy", 1, "expected 1 to 64 bytes in hexadecimal digits, got 'xy'"),
        ("--model model_of_audit:run --sample 0", 1, "argument --sample: expected 1 to 10000, got 0"),
        ("--model model_of_audit:run --jobs 0", 1, "argument --jobs: expected 1 to 1024, got 0"),
        ("--model model_of_audit:run --seed 9", 5, "run.dgrr: data: seed: expected 9, the trace says 0"),
        ("--model model_of_audit:run --numerics 99", 6, "numerics version: expected 99, the trace says"),
        ("--model model_of_audit:run -o /nowhere/c.json", 2, "No such file or directory"),
    ],
)
def test_what_is_refused(model: Any, capsys: pytest.CaptureFixture[str], rest: str, code: int, text: str) -> None:
    found, out, err = said(capsys, f"audit run.dgrr {rest}")
    assert found == code and text in err
    assert "of 12 there are" not in out


def test_traces_that_hold_nothing_to_begin_with(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--steps", "2", "--out", "v1"]) == 0
    code, _, err = said(capsys, "audit v1 --model model_of_audit:run")
    assert code == 1 and "argument PATH: v1 is of version 1, all of which dgrr validate computes again" in err
    Path("short.dgrr").write_bytes(Path("run.dgrr").read_bytes()[:-8])
    code, _, err = said(capsys, "audit short.dgrr --model model_of_audit:run")
    assert code == 3 and err.startswith("dgrr: short.dgrr: torn-tail: ")
