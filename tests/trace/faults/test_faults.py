"""Every silent fault: which tool finds it, in which step and tensor, and by which word.

What `golden_trace` says of each (cause, step, tensor, op) is held by `golden/test_mutations.py`, from the same rows.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dgrr.trace import compare, diff_with_model, replay

from ..golden.mutations import MUTATIONS, Run, Shuffled
from .faults import ABSORBED, FAULTS, SEED, TOLD, Fault, table

PAGE = Path(__file__).parents[3] / "docs" / "traces.md"
SEED_OF_THE_RUN = 3


def train(run: Run, path: Path) -> Path:
    """Record as training does by default, but for gradients."""
    run.more = {**run.more, "record": "digest"}
    run.train(path)
    return path


def right(run: Run) -> Callable[..., Any]:
    """The loss function as it should be."""
    return lambda p, batch, ctx: run.loss(p, batch, ctx, run.model)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[type[Run], Path]:
    """The trace of each run as it should be; every tool says that it is in order."""
    folder = tmp_path_factory.mktemp("honest")
    paths = {of: train(of(), folder / of.__name__) for of in (Run, Shuffled)}
    for of, path in paths.items():
        assert compare(path, train(of(), folder / f"again-{of.__name__}")).same
        assert replay(path, loss_fn=right(of()), batches=of().batches, seed=SEED_OF_THE_RUN).ok
        assert diff_with_model(path, right(of()), of().batches).same
    return paths


@pytest.fixture(params=FAULTS, ids=lambda fault: fault.what)
def faulty(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Fault, Path]:
    """A fault, and the trace of the run that has it; it is gone when the tools look."""
    fault: Fault = request.param
    run = fault.mutation.of()
    with pytest.MonkeyPatch.context() as patch:
        fault.mutation.change(run, patch)
        return fault, train(run, tmp_path / "faulty")


def test_each_tool_says_its_word(faulty: tuple[Fault, Path], honest: dict[type[Run], Path]) -> None:
    fault, path = faulty
    expected, reference = fault.mutation, fault.mutation.of()

    found = compare(honest[expected.of], path)
    assert (found.cause.value if found.cause else "") == fault.compare, str(found)
    assert found.same is not bool(fault.compare)
    if fault.compare:
        assert (found.verdict.value, found.step) == ("diverged", expected.step), str(found)
        assert (found.tensors[0].title if found.tensors else "").startswith(expected.tensor), str(found)

    report = replay(path, loss_fn=right(reference), batches=reference.batches, seed=SEED_OF_THE_RUN)
    assert report.verdict.value == (fault.replay or "ok"), str(report)
    if fault.replay:
        step = None if fault is SEED else expected.step
        assert (report.findings[0].step, report.findings[0].tensor or "") == (step, fault.tensor), str(report)

    again = diff_with_model(path, right(reference), reference.batches)
    by_itself = "" if fault is SEED else fault.replay
    assert (again.cause.value if again.cause else "") == by_itself, str(again)
    assert again.step == (expected.step if by_itself else None), str(again)


def test_what_only_digests_of_ops_hold() -> None:
    """A golden trace has them, and names the op; no tensor differs."""
    for fault in ABSORBED:
        assert fault.mutation.op and not fault.mutation.tensor
    assert len(ABSORBED) == 3


def test_there_are_thirty_of_every_kind() -> None:
    assert len({fault.what for fault in FAULTS}) == len(FAULTS) >= 30
    assert {fault.mutation.cause for fault in FAULTS} == {"rule", "start", "data", "model", "update", "gradient"}
    assert all(not fault.replay for fault in TOLD)
    assert {fault.what for fault in FAULTS} <= {mutation.what for mutation in MUTATIONS}


def test_the_table_is_that_of_the_faults() -> None:
    assert table() in PAGE.read_text()
