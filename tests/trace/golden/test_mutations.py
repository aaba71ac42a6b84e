"""What a golden trace says of every change in `mutations.py`: why, at which step, which tensor, which op."""

from pathlib import Path

import pytest

from dgrr.trace.comparing.result import Comparison
from dgrr.trace.golden.commands import check, record

from .mutations import MUTATIONS, SPATIAL_KERNELS, Mutation, Run, Spatial


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> dict[type[Run], Path]:
    """The golden file of each run."""
    folder = tmp_path_factory.mktemp("golden")
    paths = {made: folder / f"{made.__name__}.dgrr" for made in (Run, Spatial)}
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
    run = Run()
    mutation.change(run, monkeypatch)
    require(check(golden[Run], run.train), mutation)


@pytest.mark.parametrize("mutation", SPATIAL_KERNELS, ids=lambda m: m.what)
def test_a_change_of_a_kernel_is_named(
    golden: dict[type[Run], Path], mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Spatial()
    mutation.change(run, monkeypatch)
    require(check(golden[Spatial], run.train), mutation)


def test_there_are_many() -> None:
    assert len(MUTATIONS) + len(SPATIAL_KERNELS) >= 60
