"""Runs of several processes: a file for each, named, compared and held to their replicas."""

import json
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dgrr.trace import compare, open_trace, recompute, validate
from dgrr.trace.frameworks.pytorch.part_sums import PartSums
from dgrr.trace.frameworks.pytorch.torch_modules import TorchModules

from ..v2.write.test_resume import frames_of
from .pytorch_runs import torch

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no processes")

NAMES = ["up.weight", "up.bias", "norm.weight", "norm.bias", "down.weight", "down.bias"]


def started(folder: Path, count: int) -> Path:
    """The traces of so many processes."""
    program = "tests.trace.frameworks.rank_program"
    command = [sys.executable, "-m", f"dgrr.{program}"]
    running = [
        subprocess.Popen([*command, str(rank), str(count), str(folder)], stderr=subprocess.PIPE, text=True)
        for rank in range(count)
    ]
    for each in running:
        _, said = each.communicate(timeout=300)
        assert each.returncode == 0, said
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return started(tmp_path_factory.mktemp("two"), 2)


def shards(path: Path) -> Any:
    """What a trace says of the parts that its process has."""
    with open_trace(path) as trace:
        texts = [event.text for _, event in trace.events() if event.kind == "shards"]
    assert len(texts) == 1
    return json.loads(texts[0])


@pytest.mark.parametrize("way", ["ddp", "fsdp", "bf16", "tp"])
def test_every_way_has_a_whole_file_a_rank_with_the_same_names(two: Path, way: str) -> None:
    for rank in range(2):
        path = two / way / f"{rank}.dgrr"
        assert validate(path)
        with open_trace(path) as trace:
            specs = {spec.name: spec for spec in trace.schema.tensors}
            assert [spec.name for spec in specs.values() if spec.role.name == "PARAM"] == NAMES
            ops = trace.ops(0)
            assert ops is not None and {node.scope for node in ops.nodes} >= {"up", "norm", "down"}
            linear = {node.dtype for node in ops.nodes if node.op == "torch.Linear"}
            assert linear == {"bfloat16" if way == "bf16" else "float32"}
        assert recompute(path)
        assert (shards(path)["rank"], shards(path)["ranks"]) == (rank, 2)


def test_the_part_of_a_tensor_is_told(two: Path) -> None:
    with open_trace(two / "fsdp" / "1.dgrr") as trace:
        assert trace.keyframe(0)["up.weight"].shape == (8, 8)
    said = shards(two / "fsdp" / "1.dgrr")
    shape, placements, mesh = said["tensors"]["up.weight"]
    assert (shape, placements) == ([16, 8], ["S(0)"])
    assert said["meshes"][mesh]["shape"] == [2] and said["meshes"][mesh]["at"] == [1]
    said = shards(two / "tp" / "0.dgrr")["tensors"]
    assert [said[name][1] for name in ("up.weight", "down.weight", "down.bias")] == [["S(0)"], ["S(1)"], ["R"]]


def test_ranks_of_equal_batches_are_held_to_the_golden_of_one_process(two: Path, tmp_path: Path) -> None:
    """The mean of two equal gradients has their bits."""
    from .rank_program import network, train

    for name, how in (("eager", lambda model: model), ("compiled", lambda m: torch.compile(m, backend="eager"))):
        train(str(tmp_path / name), how(network()))
    for other in (tmp_path / "compiled", two / "ddp" / "0.dgrr", two / "ddp" / "1.dgrr"):
        assert compare(tmp_path / "eager", other, proven=True), str(compare(tmp_path / "eager", other, proven=True))


def test_folders_of_equal_runs_are_equal(two: Path) -> None:
    found = compare(two / "fsdp", two / "fsdp_again")
    assert found and found.sentence.startswith("2 ranks; each equal to the bit: 3 steps")
    assert [Path(each.a).name for each in found.ranks] == ["0.dgrr", "1.dgrr"]


def test_the_rank_step_and_cause_of_the_first_difference_are_named(two: Path) -> None:
    found = compare(two / "fsdp", two / "fsdp_swapped")
    assert found.cause is not None and (found.cause.value, found.step) == ("data", 1)
    assert found.sentence.startswith("rank 1 first of 2: step 1 is the first that differs: it was given another batch")
    assert any(note.startswith("rank 0: diverged (gradient), step 1") for note in found.notes), found.notes


def test_replicas_that_are_not_equal_are_found(two: Path) -> None:
    assert compare(two / "ddp", two / "ddp")
    found = compare(two / "ddp_broken", two / "ddp_broken")
    assert found.cause is not None and (found.cause.value, found.step) == ("replica", 1)
    assert "after step 1, 'up.weight' differs between ranks 0 and 1, which hold replicas of it" in found.sentence


def test_one_path_for_several_is_refused_on_each(two: Path) -> None:
    for rank in range(2):
        said = (two / f"refused{rank}.txt").read_text()
        assert "expected a path with {rank} in it, since each of 2 processes writes a file of its own" in said
    assert not [*two.glob("one.dgrr*")]


def test_folders_with_other_ranks_are_not_the_same(two: Path, tmp_path: Path) -> None:
    (tmp_path / "0.dgrr").write_bytes((two / "fsdp" / "0.dgrr").read_bytes())
    found = compare(two / "fsdp", tmp_path)
    assert not found and "expected a trace for each rank in both: 1.dgrr in a only" in found.sentence


def test_runs_in_other_parts_are_compared_as_wholes(two: Path, tmp_path: Path) -> None:
    from .rank_program import network, step_in_parts, train

    step_in_parts(f"{tmp_path}/one/{{rank}}.dgrr")
    for a, b in (
        (two / "rows", two / "columns"),
        (two / "rows", tmp_path / "one"),
        (tmp_path / "one", two / "columns"),
    ):
        found = compare(a, b)
        assert (
            found and "6 params, 6 optimizer buffers, 6 gradients equal to the bit after 3 of 3 steps" in found.sentence
        ), found.sentence
    train(f"{tmp_path}/plain/{{rank}}.dgrr", network())
    for sharded in ("fsdp_equal", "ddp"):
        found = compare(two / sharded, tmp_path / "plain")
        assert found and "in the parts of 2 and of 1 processes, added up: 6 params" in found.sentence, found.sentence


def test_the_gradient_and_the_step_that_differ_are_named_in_other_parts(two: Path, tmp_path: Path) -> None:
    from .rank_program import step_in_parts

    step_in_parts(f"{tmp_path}/{{rank}}.dgrr")
    for other in (tmp_path, two / "rows"):
        found = compare(two / "spoiled", other)
        assert found.cause is not None and (found.cause.value, found.step) == ("gradient", 1)
        assert found.sentence.endswith("added up: step 1: gradient 'up.weight' differs")


@pytest.mark.parametrize(
    ("spoiled", "told"), [("buffer", "optimizer buffer 'momentum/up.weight'"), ("param", "param 'up.weight'")]
)
def test_what_differs_behind_equal_gradients_is_named(two: Path, tmp_path: Path, spoiled: str, told: str) -> None:
    from .rank_program import step_in_parts

    step_in_parts(f"{tmp_path}/{{rank}}.dgrr", spoiled=spoiled)
    found = compare(two / "rows", tmp_path)
    assert found.cause is not None and (found.cause.value, found.step) == ("update", 1)
    assert found.sentence.endswith(f"added up: step 1: {told} differs")


def test_what_one_run_alone_tells_of_is_named(two: Path) -> None:
    """Of a plain tensor on several processes nobody knows what the others have."""
    found = compare(two / "left", two / "columns")
    assert found and "4 params, 4 optimizer buffers, 4 gradients equal to the bit" in found.sentence
    alone = "of which one run alone tells: ['norm.bias', 'norm.weight']"
    assert f"not compared: losses, params {alone}, optimizer buffers of which" in found.sentence
    assert found.sentence.endswith(f"gradients {alone}")


def test_a_gradient_that_lies_as_its_param_does_not_is_left_out() -> None:
    """As a part of a sum does, which is no part of the whole."""
    ones = {"weight": np.ones((1, 2), np.float32)}
    done: Any = SimpleNamespace(params=ones, grads=ones, state={})
    sums = PartSums(torch, TorchModules(torch.nn.Linear(2, 1, bias=False)))
    plain, part_of_sum = (
        json.loads(*sums.texts(done, {"weight": grad})) for grad in (torch.ones(1, 2), SimpleNamespace(placements="P"))
    )
    assert plain["grads"] == plain["sums"] == part_of_sum["sums"] and "grads" not in part_of_sum


def test_a_file_that_tells_of_params_alone_is_compared_by_them(
    two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of before does."""
    from .rank_program import step_in_parts

    of_all = PartSums._parts
    monkeypatch.setattr(PartSums, "_parts", lambda *of: (part for part in of_all(*of) if part[0] == "sums"))
    step_in_parts(f"{tmp_path}/spoiled/{{rank}}.dgrr", spoiled="gradient")
    step_in_parts(f"{tmp_path}/same/{{rank}}.dgrr")
    found = compare(two / "rows", tmp_path / "spoiled")
    assert found.sentence.endswith("added up: step 1: param 'up.weight' differs")
    found = compare(two / "rows", tmp_path / "same")
    assert found and found.sentence.endswith("; not compared: losses, optimizer buffers, gradients")


def test_digests_of_parts_have_no_tolerance(two: Path) -> None:
    found = compare(two / "spoiled", two / "rows", policy="rtol=1e-1")
    assert (found.verdict.value, found.cause, found.step) == ("unproven", None, 1)
    assert found.sentence.endswith("'up.weight' differs; digests have no tolerance: compare bitwise, or equal parts")


def test_damage_is_found_in_other_parts_where_that_is_asked(two: Path, tmp_path: Path) -> None:
    copytree(two / "rows", tmp_path / "rows")
    path = tmp_path / "rows" / "1.dgrr"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert compare(two / "rows", two / "columns", proven=True)
    found = compare(tmp_path / "rows", two / "columns", proven=True)
    assert found.verdict.value == "corrupt" and found.sentence.startswith(str(path))


@pytest.mark.parametrize("proven", [False, True])
def test_damage_in_what_is_told_of_parts_is_named(two: Path, tmp_path: Path, proven: bool) -> None:
    copytree(two / "rows", tmp_path / "rows")
    path = tmp_path / "rows" / "1.dgrr"
    data = bytearray(path.read_bytes())
    text = data.index(b'"grads":')
    begin = max(frame.end for frame in frames_of(data, digest_size=16) if frame.end < text)
    data[text] ^= 1
    path.write_bytes(data)
    found = compare(tmp_path / "rows", two / "columns", proven=proven)
    assert (found.verdict.value, found.a, found.b) == ("corrupt", str(tmp_path / "rows"), str(two / "columns"))
    assert found.sentence.startswith(f"{path}: the CRC of a front is wrong")
    assert found.sentence.endswith(f"(at byte {begin})")


def test_a_part_of_a_sum_is_refused_before_anything_starts(two: Path) -> None:
    for rank in range(2):
        said = (two / f"partial{rank}.txt").read_text()
        assert said.startswith("record_torch: parameter 'weight': expected shards or replicas, got [Partial(sum)], of")
        assert "redistribute it first" in said
    assert not [*two.glob("partial/*.dgrr*")]


@pytest.mark.long
def test_four_processes_on_a_mesh_of_two_axes(two: Path, tmp_path: Path) -> None:
    four = started(tmp_path, 4)
    assert compare(four / "both", four / "both")
    said = [shards(four / "both" / f"{rank}.dgrr") for rank in range(4)]
    assert [each["meshes"][each["tensors"]["up.weight"][2]]["at"] for each in said] == [[0, 0], [0, 1], [1, 0], [1, 1]]
    for name in ("rows", "columns", "twice"):
        found = compare(four / "blocks", four / name)
        assert (
            found and "6 params, 6 optimizer buffers, 6 gradients equal to the bit after 3 of 3 steps" in found.sentence
        ), found.sentence
    assert compare(four / "rows", two / "columns") and compare(four / "blocks", two / "rows")
    assert compare(four / "spoiled", two / "rows").step == 1
    for rank in range(4):
        assert recompute(four / "both" / f"{rank}.dgrr")
        assert recompute(four / "tp" / f"{rank}.dgrr")
