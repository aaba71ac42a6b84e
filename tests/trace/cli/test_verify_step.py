"""``dgrr verify-step``: the reference model, steps of one's own, and every way in which there is no step."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dgrr.runtime import CudaError
from dgrr.runtime.cuda import driver
from dgrr.trace.cli import main, reference_step

DGRR = Path(sys.executable).parent / "dgrr"

MODEL = """
import numpy as np
from dgrr.runtime import SGD, NonFiniteError, capture
from dgrr.tape import ops

def loss_fn(p, x):
    return ((p["w"] * x) ** 2).mean()


def step():
    return capture(loss_fn, {"w": np.ones(3)}, SGD(0.1), np.arange(3.0))


def broken_step():
    made = step()
    made.plan  # the plan is compiled; what follows is a fault in its memory
    hyper = next(v for v in made.graph.values.values() if v.name == "hyper")
    made.record(np.arange(3.0)).step.bound.memory[hyper.id].view(np.float64)[0] = 0.2
    return made


def unbound_step():
    made = step()
    made.forget()
    return made


def needs_help():
    import helper
    return helper.make()


def interrupted():
    raise KeyboardInterrupt
"""


@pytest.fixture
def dgrr(capsys, tmp_path, monkeypatch):
    """Run in this process, in a folder with a model, and return (code, out, err)."""
    (tmp_path / "my_step.py").write_text(MODEL)
    (tmp_path / "helper.py").write_text("from my_step import step as make\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def run(*arguments):
        before = list(sys.path)
        code = main(["verify-step", *arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        assert sys.path == before
        return code, out, err

    yield run
    for name in ("my_step", "helper"):
        sys.modules.pop(name, None)


def test_the_reference_model():
    """Through the entry point, from any folder."""
    ended = subprocess.run([DGRR, "verify-step"], capture_output=True, text=True, timeout=120)
    lines = ended.stdout.splitlines()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert lines[-1] == "16 of 16 checks held"
    assert len(lines) == 17
    assert all(line.startswith("[OK] ") for line in lines[:-1])
    assert "2 runs of 20 replays" in ended.stdout


def test_the_reference_model_is_the_published_one():
    step = reference_step.reference_step()
    assert [node.op for node in step.graph.nodes][:4] == ["linear", "relu", "linear", "mse_loss"]
    assert [array.shape for array in step.record(reference_step.reference_batch()).inputs] == [(64, 8), (64, 8)]
    assert [array.shape for array in step.params.values()] == [(8, 8), (8,), (8, 8), (8,)]
    assert step.recipe.rule.hyperparameters() == {
        "lr": 1e-3,
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-8,
        "weight_decay": 0.0,
    }


def test_the_data_are_standard_normal():
    """Moments of 100,000 numbers within five standard errors, no two streams alike, and float32."""
    x = reference_step.standard_normal((1000, 100), ordinal=3).astype(np.float64)
    assert abs(x.mean()) < 5 / x.size**0.5
    assert abs((x**2).mean() - 1) < 5 * (2 / x.size) ** 0.5
    assert abs((x**4).mean() - 3) < 5 * (96 / x.size) ** 0.5
    assert abs(np.corrcoef(x.reshape(-1)[:-1], x.reshape(-1)[1:])[0, 1]) < 5 / x.size**0.5
    assert not np.isin(reference_step.standard_normal((64, 8), 0), reference_step.standard_normal((64, 8), 1)).any()
    assert reference_step.standard_normal((64, 8), 0).dtype == np.float32


def test_a_step_of_ones_own(dgrr):
    code, out, err = dgrr("my_step:step", "--replays", "3")
    assert (code, err) == (0, "")
    assert "2 runs of 3 replays" in out
    assert out.endswith("\n16 of 16 checks held\n")


def test_modules_of_the_current_folder_may_be_imported_late(dgrr):
    assert dgrr("my_step:needs_help", "--replays=1")[0] == 0


def test_a_device_that_is_not_there(dgrr, monkeypatch):
    def none(number=0):
        raise CudaError("device 'cuda': expected an NVIDIA GPU and its driver, found none")

    monkeypatch.setattr(driver, "gpu", none)
    code, out, err = dgrr("my_step:step", "--device", "cuda")
    assert (code, out) == (1, "")
    assert err == "dgrr: device 'cuda': expected an NVIDIA GPU and its driver, found none\n"
    assert dgrr("my_step:step", "--replays=1", "--device", "cpu")[0] == 0


def test_a_check_that_fails(dgrr):
    code, out, err = dgrr("my_step:broken_step", "--replays=2")
    assert (code, err) == (5, "")
    assert "[FAIL] bound table: step: constant %" in out
    assert "[FAIL] update rule: replay 0: parameters: 'w': element [1]: expected " in out
    assert "[OK] graphs: " in out
    assert " of 16 checks held\n" in out


def test_a_step_without_a_batch(dgrr):
    text = "verify: expected a batch to be bound, got none; call step(batch) first"
    code, out, err = dgrr("my_step:unbound_step")
    assert (code, out) == (1, "")
    assert err == f"dgrr: {text}\n"


@pytest.mark.parametrize("replays", ["0", "-1", "1.5", "many", ""])
def test_the_number_of_replays(dgrr, replays):
    code, out, err = dgrr(f"--replays={replays}")
    assert (code, out) == (1, "")
    assert "argument --replays: expected" in err


def test_ctrl_c(dgrr):
    assert dgrr("my_step:interrupted") == (130, "", "dgrr: interrupted\n")


def test_help(dgrr):
    code, out, err = dgrr("--help")
    assert (code, err) == (0, "")
    assert "[MODULE:FUNCTION]" in out
    assert "--replays N" in out
