"""The judge in C: compiled by every compiler that is here, on right traces, damaged ones and forged ones."""

import hashlib
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import xxhash

from dgrr.trace.cli import main
from dgrr.trace.judging import JudgeError, write_judge
from dgrr.trace.v2.repair.forge import flip_bit, forge_gradient

from ...runtime.library.native import host
from .run_of_judge import batches, loss_fn, train

pytestmark = pytest.mark.xdist_group("judge")  # one process writes and compiles it

FLAGS = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
SOURCES = Path(sys.modules[write_judge.__module__].__file__ or "").parent
Answer = tuple[int, str]
Judge = Callable[..., Answer]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace, and the judge of it that the command writes."""
    folder = tmp_path_factory.mktemp("judge")
    train(folder / "run.dgrr")
    write_judge(folder / "run.dgrr", folder / "judge", loss_fn, batches(), target=host())
    return folder


def compiled(folder: Path, compiler: str, *flags: str) -> Path:
    """The program, as the command says that it is to be made."""
    made, judge = folder / f"by-{compiler}", folder / "judge"
    objects = map(str, (judge / host()).glob("*.o"))
    command = [compiler, *flags, f"-I{judge / host()}", str(judge / "judge.c"), *objects, "-o", str(made)]
    subprocess.run(command, check=True)
    return made


@pytest.fixture(scope="module")
def judge(folder: Path) -> Judge:
    """Run the judge on a trace: exit code and verdict, and in `out` what it says."""
    program = compiled(folder, "gcc", *FLAGS, "-g", "-fsanitize=address,undefined")

    def run(trace: Path, *more: str, batches: Path = folder / "judge" / "batches.bin") -> Answer:
        command = [str(program), str(trace), str(batches), *more]
        made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert not made.stderr, made.stderr
        return made.returncode, made.stdout.strip()

    return run


def test_a_right_trace_is_proven(folder: Path, judge: Judge) -> None:
    text = "ok: steps 0 to 6 are proven: data, losses, gradients and states"
    assert judge(folder / "run.dgrr") == (0, text)
    assert judge(folder / "run.dgrr", "--from", "2", "--to", "4")[1].startswith("ok: steps 0 to 4 are proven")


@pytest.mark.parametrize("compiler", ["clang", "tcc"])
def test_other_compilers(folder: Path, compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    flags = FLAGS if compiler == "clang" else ["-std=c99", "-Wall", "-Werror"]
    command = [str(compiled(folder, compiler, *flags)), str(folder / "run.dgrr"), str(folder / "judge/batches.bin")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.long
def test_a_run_with_all_that_a_run_may_have(tmp_path: Path) -> None:
    """SHA-256, micro-batches, averages of parameters, and keyframes, from each of which it goes."""
    trace, keep = tmp_path / "run.dgrr", {"digest": "sha256", "keyframe_every": 2}
    train(trace, keep=keep, accumulate=3, ema=0.9)
    write_judge(trace, tmp_path / "judge", loss_fn, batches(), target=host())
    assert {path.name for path in (tmp_path / "judge").glob("*.h")} == {"alone.h", "bytes.h", "sha256.h", "plan.h"}
    program = compiled(tmp_path, "gcc", *FLAGS)

    def run(trace: Path, *more: str) -> Answer:
        command = [str(program), str(trace), str(tmp_path / "judge/batches.bin"), *more]
        made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return made.returncode, made.stdout.strip()

    for step in range(7):
        text = f"ok: steps {step // 2 * 2} to 6 are proven: data, losses, gradients and states"
        assert run(trace, "--from", str(step)) == (0, text)
    forge_gradient(trace, tmp_path / "forged.dgrr", 3, "3.weight")
    named = (5, "gradient: step 3: 3.weight: its gradient differs")
    assert run(tmp_path / "forged.dgrr", "--from", "2") == named
    assert run(tmp_path / "forged.dgrr", "--from", "4")[0] == 0


def test_a_trace_with_another_digest_is_refused(judge: Judge, tmp_path: Path) -> None:
    train(tmp_path / "other.dgrr", keep={"digest": "sha256"})
    text = "unsupported: a reader of version 2 for digest 2 is needed; this one is for digest 1"
    assert judge(tmp_path / "other.dgrr") == (3, text)


@pytest.mark.long
def test_traces_of_other_runs_are_refused(judge: Judge, tmp_path: Path) -> None:
    """One has other tensors, the other another loss with the same gradients."""

    def higher(p: Any, batch: Any, ctx: Any) -> Any:
        loss, state = loss_fn(p, batch, ctx)
        return loss + 1.0, state

    train(tmp_path / "tensors.dgrr", ema=0.9)
    text = "unproven: its tensors and rules are not those of the trace for which this judge was made"
    assert judge(tmp_path / "tensors.dgrr") == (6, text)
    train(tmp_path / "loss.dgrr", loss=higher)
    code, text = judge(tmp_path / "loss.dgrr")
    assert (code, text.partition(": computed")[0]) == (5, "gradient: step 0: the loss has other bits")


def test_a_trace_without_its_seal_is_unsealed(folder: Path, judge: Judge, tmp_path: Path) -> None:
    data, cut = (folder / "run.dgrr").read_bytes(), tmp_path / "cut.dgrr"
    cut.write_bytes(data[: data.rindex(b"\xdaGRF")])
    assert judge(cut) == (3, "unsealed: what is recorded agrees, but the run was not finished")


def test_a_header_that_no_writer_writes_is_corrupt(folder: Path, judge: Judge, tmp_path: Path) -> None:
    data, other = bytearray((folder / "run.dgrr").read_bytes()), tmp_path / "other.dgrr"
    data[200] = 1  # reserved
    data[252:256] = zlib.crc32(data[:252]).to_bytes(4, "little")
    other.write_bytes(data)
    assert judge(other) == (3, "corrupt: the header says what no writer says")


def test_a_forged_gradient_is_named(folder: Path, judge: Judge, tmp_path: Path) -> None:
    forge_gradient(folder / "run.dgrr", tmp_path / "forged.dgrr", 3, "3.weight")
    assert judge(tmp_path / "forged.dgrr") == (5, "gradient: step 3: 3.weight: its gradient differs")


def test_every_flipped_bit_is_found(folder: Path, judge: Judge, tmp_path: Path) -> None:
    size, flipped = (folder / "run.dgrr").stat().st_size, tmp_path / "flipped.dgrr"
    for place in [*range(0, 256, 37), *range(256, size, size // 60), *range(size - 40, size, 13)]:
        flip_bit(folder / "run.dgrr", flipped, place, place % 8)
        code, text = judge(flipped)
        assert code == 3, (place, text)


def test_every_truncation_is_found(folder: Path, judge: Judge, tmp_path: Path) -> None:
    data, cut = (folder / "run.dgrr").read_bytes(), tmp_path / "cut.dgrr"
    for size in (0, 3, 255, 256, 300, len(data) // 3, len(data) - 16, len(data) - 1):
        cut.write_bytes(data[:size])
        code, text = judge(cut)
        assert (code, text.partition(":")[0]) in [(3, "torn-tail"), (3, "unsealed")], (size, text)
    cut.write_bytes(data + bytes(8))
    assert judge(cut)[0] == 3


def test_other_batches_are_found(folder: Path, judge: Judge, tmp_path: Path) -> None:
    data = bytearray((folder / "judge/batches.bin").read_bytes())
    missing, other, trace = tmp_path / "missing", tmp_path / "other", folder / "run.dgrr"
    assert judge(trace, batches=missing)[0] == 6
    missing.write_bytes(data[:-1])
    assert judge(trace, batches=missing) == (5, "data: step 6: its batch ends too early")
    data[len(data) // 7 + 20] ^= 1
    other.write_bytes(data)
    assert judge(trace, batches=other) == (5, "data: step 1: the batch is not the one that was recorded")


@pytest.mark.parametrize("given", [["--from", "7"], ["--to", "x"], ["--at", "1"], ["--from"]])
def test_usage(folder: Path, judge: Judge, given: Sequence[str]) -> None:
    code, text = judge(folder / "run.dgrr", *given)
    assert (code, text.partition(":")[0]) == (1, "usage")


def test_digests_are_those_of_their_libraries(tmp_path: Path) -> None:
    """CRC-32, SHA-256 and XXH3-128 of every length from 9 to 300, and some longer."""
    lengths = [*range(9, 300), 1023, 1024, 1025, 1088, 2048, 2049, 4000]
    data = bytes((i * i * 7 + i // 3) & 255 for i in range(4000))
    program = f"""#include <stdio.h>
    #include <string.h>
    #include "bytes.h"
    #include "sha256.h"
    #include "xxh3.h"
    int main(void) {{
        static const int lengths[] = {{{", ".join(map(str, lengths))}}};
        static uint8_t data[4000], out[48];
        for (int i = 0; i < 4000; i++)
            data[i] = (uint8_t)(i * i * 7 + i / 3);
        for (int i = 0; i < {len(lengths)}; i++) {{
            xxh3_128(out, data, (uint64_t)lengths[i]);
            sha256(out + 16, data, (uint64_t)lengths[i]);
            for (int k = 0; k < 48; k++)
                printf("%02x", out[k]);
            printf("%08x\\n", crc_of(0, data, (uint64_t)lengths[i]));
        }}
        return 0;
    }}"""
    (tmp_path / "hashes.c").write_text(program)
    command = ["gcc", *FLAGS, "-Wno-unused", f"-I{SOURCES}", str(tmp_path / "hashes.c"), "-o", str(tmp_path / "hashes")]
    subprocess.run(command, check=True)
    found = subprocess.run([str(tmp_path / "hashes")], capture_output=True, text=True, check=True).stdout.split()
    for line, n in zip(found, lengths, strict=True):
        part = data[:n]
        assert line == f"{xxhash.xxh3_128_hexdigest(part)}{hashlib.sha256(part).hexdigest()}{zlib.crc32(part):08x}", n


def test_what_has_no_judge(folder: Path, tmp_path: Path) -> None:
    few = batches()[0][0], batches()[0][1].astype("i4")
    with pytest.raises(JudgeError, match="a batch holds int32, which a step takes as int64"):
        write_judge(folder / "run.dgrr", tmp_path / "judge", loss_fn, [few], target=host())


@pytest.fixture
def in_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with spaces in its name, with the trace and the module of its model, in which commands run."""
    place = tmp_path / "a folder"
    place.mkdir()
    shutil.copy(folder / "run.dgrr", place / "the run.dgrr")
    shutil.copy(Path(__file__).with_name("run_of_judge.py"), place / "judged_model.py")
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return place


@pytest.mark.long
def test_the_command_writes_a_judge(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "export",
        "--judge",
        "the run.dgrr",
        "--model",
        "judged_model:run",
        "--target",
        host(),
        "-o",
        "new/a judge",
    ]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "new/a judge: a judge of 7 steps of the run.dgrr, 1 compiled for each machine" in out
    line = next(line for line in out.splitlines() if "cc -std=c99" in line)
    judge = in_folder / "new" / "a judge"
    subprocess.run(line[line.index("cc ") :], shell=True, cwd=judge, check=True)
    made = subprocess.run([judge / "judge", "../../the run.dgrr", "batches.bin"], cwd=judge, check=False)
    assert made.returncode == 0
    assert main(command) == 1
    assert "argument --out: new/a judge is there already" in capsys.readouterr().err


@pytest.mark.parametrize("error", [JudgeError("judge: no"), KeyboardInterrupt()])
def test_an_export_that_ends_early_leaves_nothing(
    in_folder: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def ends(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(sys.modules[write_judge.__module__], "export_library", ends)
    command = ["export", "--judge", "the run.dgrr", "--model", "judged_model:run", "--target", host(), "-o", "made"]
    assert main(command) != 0
    assert {path.name for path in in_folder.iterdir()} == {"the run.dgrr", "judged_model.py"}


def test_help_tells_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "dgrr export --judge run.dgrr --model train:run -o judge a C program that recomputes run.dgrr" in out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--judge run.dgrr -o made", "the following arguments are required: --model"),
        ("--judge run.dgrr --model m:run --format csv -o made", "argument --judge: --format cannot be used with it"),
        ("run.dgrr --format csv --target aarch64 -o made", "argument --target: it needs --library or --judge"),
        ("--judge run.dgrr --model m:run -o .", "argument --out: . is there already"),
    ],
)
def test_command_lines(capsys: pytest.CaptureFixture[str], arguments: str, text: str) -> None:
    assert main(["export", *arguments.split()]) == 1
    assert text in capsys.readouterr().err
