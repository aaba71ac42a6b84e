"""Arrays of JAX on several devices: a file for each, told, compared and held to their replicas."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import compare, open_trace, validate

pytest.importorskip("jax", reason="these tests need JAX: pip install -e '.[test,jax]'")
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("four")
    command = [sys.executable, "-m", "dgrr.tests.trace.frameworks.device_program", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same runs of two processes with two devices each, up to the first that two of them cannot record."""
    folder = tmp_path_factory.mktemp("processes")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "dgrr.tests.trace.frameworks.device_program", str(folder)]
    running = [
        subprocess.Popen([*command, str(rank), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    for each in running:
        _, said = each.communicate(timeout=300)
        assert (
            "record_jax: argument 'trace': expected a path with {rank} in it, since the params lie on devices" in said
        )
        assert "of 2 processes, and each device has a file of its own; got " in said
    return folder


def shards(path: Path) -> Any:
    """What a trace says of the parts that its device has."""
    with open_trace(path) as trace:
        (text,) = [event.text for _, event in trace.events() if event.kind == "shards"]
    return json.loads(text)


def test_every_device_has_its_part(four: Path) -> None:
    with open_trace(four / "whole.dgrr") as trace:
        whole = trace.keyframe(0)
    for rank in range(4):
        path = four / "right" / f"{rank}.dgrr"
        assert validate(path).ok
        with open_trace(path) as trace:
            here = trace.keyframe(0)
        column, half = rank % 2, slice(rank % 2 * 4, rank % 2 * 4 + 4)
        np.testing.assert_array_equal(here["up"], whole["up"][:, half])
        np.testing.assert_array_equal(here["down"], whole["down"][half])
        np.testing.assert_array_equal(here["bias"], whole["bias"])
        assert here["m/bias"].shape == (1,)
        said = shards(path)
        assert (said["rank"], said["ranks"]) == (rank, 4)
        shape, placements, mesh = said["tensors"]["up"]
        assert (shape, placements) == ([4, 8], ["R", "S(1)"])
        assert said["meshes"][mesh] == {"at": [rank // 2, column], "names": ["data", "model"], "shape": [2, 2]}
        assert said["tensors"]["bias"][:2] == [[4], ["R", "R"]]
        assert said["tensors"]["m/bias"][:2] == [[4], ["S(0)", "S(0)"]]


def test_folders_of_equal_runs_are_equal(four: Path) -> None:
    found = compare(four / "right", four / "again", proven=True)
    assert found and found.sentence.startswith("4 ranks; each equal to the bit: 3 steps")


@pytest.mark.parametrize("name", ["right", "again", "swapped", "scale"])
def test_two_processes_record_what_one_with_their_devices_does(four: Path, processes: Path, name: str) -> None:
    """Each the files of its own devices, by their place among all, to the last bit and op."""
    found = compare(four / name, processes / name, proven=True)
    assert found and found.sentence.startswith("4 ranks; each equal to the bit: 3 steps")
    assert [shards(processes / name / f"{rank}.dgrr") for rank in range(4)] == [
        shards(four / name / f"{rank}.dgrr") for rank in range(4)
    ]


def test_replicas_of_two_processes_are_held_to_each_other(processes: Path) -> None:
    found = compare(processes / "broken", processes / "broken")
    assert found.cause is not None and (found.cause.value, found.step) == ("replica", 1)
    assert "after step 1, 'bias' differs between ranks 0 and 3, which hold replicas of it" in found.sentence


def test_the_shard_that_differs_first_is_named(four: Path) -> None:
    """Devices 2 and 3 have the second half of the batch."""
    found = compare(four / "right", four / "swapped")
    assert found.cause is not None and (found.cause.value, found.step) == ("data", 1)
    assert found.sentence.startswith("rank 2 first of 4: step 1 is the first that differs: it was given another batch")


def test_replicas_that_are_not_equal_are_found(four: Path) -> None:
    found = compare(four / "broken", four / "broken")
    assert found.cause is not None and (found.cause.value, found.step) == ("replica", 1)
    assert "after step 1, 'bias' differs between ranks 0 and 3, which hold replicas of it" in found.sentence


def test_ops_are_told_by_the_parts_of_a_device(four: Path) -> None:
    found = compare(four / "right", four / "scale")
    assert found.call is not None and found.call.short.startswith("lax.mul called with 1.0 -> 1.5")
    with open_trace(four / "right" / "0.dgrr") as one, open_trace(four / "right" / "1.dgrr") as other:
        mine, others = (next(c for c in trace.calls(0) if c.name == "lax.dot_general") for trace in (one, other))
    assert mine.inputs[0] == others.inputs[0] and mine.inputs[1] != others.inputs[1]


def test_without_rank_one_file_has_the_whole(four: Path) -> None:
    with open_trace(four / "whole.dgrr") as trace, open_trace(four / "one.dgrr") as one:
        assert trace.schema == one.schema
        assert trace.keyframe(0)["up"].tobytes() == one.keyframe(0)["up"].tobytes()
        assert trace[0].input_digest == one[0].input_digest
        assert not [event for _, event in trace.events() if event.kind == "shards"]
