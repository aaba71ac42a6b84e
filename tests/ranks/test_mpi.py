"""Training on real ranks of MPI is, to the bit, training in one process; and a rank that fails ends all.

Every launch costs a process start for each rank, so each does as much as it can. Skipped where mpi4py or mpiexec is not
installed; CI has a job of its own, in which nothing is skipped. ``DGRR_MPIEXEC`` names another launcher, and options.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dgrr.trace import Verdict, compare, open_trace, replay

from .models import BATCH, model

pytest.importorskip("mpi4py", reason="these tests need MPI: pip install -e '.[test,mpi]' mpich")

PROGRAM = Path(__file__).parent / "program.py"
BESIDE = Path(sys.executable).parent / "mpiexec"
MPIEXEC = shlex.split(
    os.environ.get("DGRR_MPIEXEC") or str(BESIDE if BESIDE.exists() else shutil.which("mpiexec") or "")
)
SECONDS = 20
"""Within which a failure has ended all ranks: they sleep for minutes where it does not, and machines are shared."""

pytestmark = [
    pytest.mark.xdist_group("ranks"),  # they share what one launch made
    pytest.mark.skipif(not MPIEXEC, reason="these tests need mpiexec: pip install mpich, or an MPI of the system"),
]

Run = Callable[[int], Path]


def launch(size: int, command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the tests' program on so many ranks; on 0 of them without MPI."""
    return run_program(size, PROGRAM, command, str(folder))


def run_program(size: int, *program: object) -> subprocess.CompletedProcess[str]:
    ranked = [*MPIEXEC, "-n", str(size), sys.executable, "-W", "error", "-m", "dgrr.runtime.ranks"]
    started = [*(ranked if size else [sys.executable, "-W", "error"]), *map(str, program)]
    return subprocess.run(started, capture_output=True, text=True, timeout=300, env=environment())


def environment() -> dict[str, str]:
    """Open MPI asks whether it may start as root, and more ranks than there are cores."""
    asked = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    mapping = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    return {**os.environ, **dict.fromkeys(asked, "1"), **mapping}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The folder of a run of all models on so many ranks, made when it is first asked for."""

    failures = dict[int, str]()

    @cache
    def launched(size: int) -> Path:
        folder = tmp_path_factory.mktemp(f"ranks{size}")
        done = launch(size, "exchange+train" if size > 1 else "train", folder)
        failures[size] = done.stderr if done.returncode else ""
        return folder

    def made(size: int) -> Path:
        folder = launched(size)
        assert not failures[size], failures[size]
        return folder

    return made


def found(folder: Path, rank: int = 0) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / f"{rank}.json").read_text())
    return read


@pytest.mark.parametrize("size", [3, *(pytest.param(size, marks=pytest.mark.long) for size in (1, 2, 8))])
def test_any_number_of_ranks_gives_the_bits_of_one_process(run: Run, size: int) -> None:
    """Losses, final states, figures and traces of three models in both types, on every rank; of three one is slow.

    Each sample is read by one rank and each state is held by one.
    """
    one, ranks = found(run(0)), [found(run(size), rank) for rank in range(size)]
    assert len(one) == 6 and len({each["digest"] for each in one.values()}) == 6
    for name, alone in one.items():
        for rank, here in enumerate(each[name] for each in ranks):
            for key in ("digest", "losses", "figures"):
                assert here[key] == alone[key], (name, rank, key)
            assert here["state"] < alone["state"] / size + 1100  # lines, and scalars that all have
        assert sum(each[name]["read"] for each in ranks) == alone["read"]
        trace = f"{name.replace(' ', '-')}.dgrr"
        alike = compare(run(0) / trace, run(size) / trace, proven=True)
        assert alike.notes == ["both files are proven from their first byte to their last"], str(alike)
        assert alike.same, str(alike)


def test_one_process_proves_the_trace_of_three_ranks(run: Run) -> None:
    made = model("cnn", "float32")
    every = made.data.batches(BATCH, seed=1)
    report = replay(run(3) / "cnn-float32.dgrr", loss_fn=made.loss_fn, batches=every)
    assert report.verdict is Verdict.OK, str(report)


def test_the_example_gives_one_state_on_one_process_and_on_two_ranks(tmp_path: Path) -> None:
    example = PROGRAM.parents[2] / "docs" / "examples" / "digits_ranks.py"
    command = ["--epochs", "1", "--trace", str(tmp_path / "run.dgrr")]
    alone = run_program(0, example, *command)
    together = run_program(2, example, "--ranks", *command)
    assert alone.returncode == together.returncode == 0, alone.stderr + together.stderr
    one, other = alone.stdout.splitlines(), together.stdout.splitlines()
    (at,) = (i for i, line in enumerate(one) if line.startswith("11 steps in "))
    assert one.pop(at).endswith("on 1 ranks") and other.pop(at).endswith("on 2 ranks")
    assert one == other and one[at].startswith("state ") and "  data       proven" in one


@pytest.mark.parametrize("how", ["raise", "kill"])
def test_a_rank_that_fails_ends_all_and_the_run_goes_on_with_fewer(run: Run, how: str, tmp_path: Path) -> None:
    began = time.perf_counter()
    size = 2 if how == "raise" else 4
    done = launch(size, how, tmp_path)
    took = time.perf_counter() - began
    assert done.returncode != 0 and took < SECONDS, (took, done.stderr)
    if how == "raise":
        first, *_ = done.stderr.splitlines()
        assert first == "rank 1 of 2 failed, so all stop"
        assert "ValueError: a text that names what went wrong" in done.stderr
    assert not list(tmp_path.glob("*.json"))
    with open_trace(tmp_path / "mlp-float32.dgrr.partial") as trace:
        assert len(trace) >= 2
    resumed = launch(3 if how == "raise" else 0, "resume", tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert found(tmp_path) == {"digest": found(run(0))["mlp float32"]["digest"], "steps": 2}
    assert compare(tmp_path / "mlp-float32.dgrr", run(0) / "mlp-float32.dgrr").same
