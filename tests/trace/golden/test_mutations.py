"""What a golden trace says of every change in `mutations.py`: why, at which step, which tensor, which op."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, capture
from dgrr.tape import ops
from dgrr.tape.numerics.engine.kernel import KERNELS
from dgrr.trace.comparing.result import Comparison
from dgrr.trace.golden.commands import check, record
from dgrr.trace.golden.runs import record_steps

from .mutations import MUTATIONS, Mutation, Run


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> dict[type[Run], Path]:
    """The golden file of each run."""
    folder = tmp_path_factory.mktemp("golden")
    paths = {made: folder / f"{made.__name__}.dgrr" for made in {mutation.of for mutation in MUTATIONS}}
    for made, path in paths.items():
        record(path, made().train)
        assert check(path, made().train).same
    return paths


def require(found: Comparison, expected: Mutation) -> None:
    """Hold what a comparison says against what it must say."""
    assert not found.same
    assert found.verdict.value == ("numerics" if expected.cause == "numerics" else "diverged")
    assert found.cause is not None
    assert (found.cause.value, found.step) == (expected.cause, expected.step), str(found)
    tensor = found.tensors[0].title if found.tensors else ""
    assert tensor.startswith(expected.tensor) and bool(tensor) == bool(expected.tensor), str(found)
    assert ("" if found.op is None else found.op.node.op) == expected.op, str(found)
    if expected.told:
        assert expected.told in found.settings, str(found)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.what)
def test_a_change_is_named(golden: dict[type[Run], Path], mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    run = mutation.of()
    mutation.change(run, monkeypatch)
    require(check(golden[mutation.of], run.train), mutation)


@pytest.mark.parametrize(("kernel", "other"), [("tanh", "sigmoid"), ("mul", "sub")])
def test_a_kernel_of_a_captured_plan_is_named(tmp_path: Path, kernel: str, other: str) -> None:
    """The plan that keeps every value runs the kernels of the plan that trains; here one calls another in its place."""

    def loss_fn(p: Any, x: Any) -> Any:
        return ops.square(ops.tanh(x * p["w"])).sum()

    batch = np.linspace(-1, 1, 5)
    step = capture(loss_fn, {"w": np.full(5, 0.5)}, SGD(0.1), batch, without_passes=("chains", "epilogues"))
    changed = step.with_kernel(kernel, KERNELS[other])
    record(tmp_path / "t.dgrr", lambda trace: record_steps(trace, step, [batch] * 3))
    found = check(tmp_path / "t.dgrr", lambda trace: record_steps(trace, changed, [batch] * 3))
    assert found.cause is not None and found.op is not None
    assert (found.cause.value, found.step, found.op.node.op, found.op.what) == ("gradient", 0, kernel, "value")


def test_there_are_many() -> None:
    assert len({mutation.what for mutation in MUTATIONS}) == len(MUTATIONS) >= 75
