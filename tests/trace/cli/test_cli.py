"""The command line: what it takes, how it refuses, and its exit codes through the real entry point."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dgrr.trace.cli import main

DGRR = Path(sys.executable).parent / "dgrr"
GOLDEN = Path(__file__).parents[2] / "golden" / "v1_one_step.dgrr"
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
V2 = b"DGRR\2\0\0\0"


@pytest.fixture
def dgrr(capsys, tmp_path, monkeypatch):
    """Run in this process, in an empty folder, and return (code, out, err)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


@pytest.fixture
def refused(dgrr, tmp_path, monkeypatch):
    """Run a training that must be refused; should it be accepted, it does not run: it might fill the disk."""
    monkeypatch.setattr("dgrr.trace.v1.train.train", lambda *_: pytest.fail("the training was accepted"))

    def run(option, text):
        code, out, err = dgrr("train", f"{option}={text}")
        assert (code, out) == (1, "")
        assert os.listdir(tmp_path) == []
        return err

    return run


def shell(*arguments, **options):
    return subprocess.run([DGRR, *arguments], capture_output=True, text=True, **options)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("", "dgrr: error: the following arguments are required: COMMAND"),
        ("train --step 5", "unrecognized arguments: --step 5"),
        ("train --steps", "argument --steps: expected one argument"),
        ("train 5", "unrecognized arguments: 5"),
        ("replay", "argument --step is required: trace.dgrr is of version 1"),
        ("inspect", "argument --step is required: trace.dgrr is of version 1"),
        ("rollback", "the following arguments are required: --step"),
        ("compare --a trace.dgrr", "the following arguments are required: --b"),
        ("compare trace.dgrr", "expected two traces, PATH_A and PATH_B, got 1"),
        ("diff", "expected two traces, PATH_A and PATH_B, got 0"),
        ("diff a b --proven c", "expected two traces, PATH_A and PATH_B, got 3"),
        ("diff a --b b", "expected two traces, PATH_A and PATH_B, got 2"),
        ("inspect trace.dgrr --trace trace.dgrr", "argument --trace: not allowed with PATH 'trace.dgrr'"),
        ("validate", "the following arguments are required: PATH"),
        ("replay --step 0 --model m:f", "argument --model: trace.dgrr is of version 1, whose model is fixed"),
        ("replay --step 0 --mode eager", "argument --mode: trace.dgrr is of version 1, whose mode is fixed"),
        ("inspect --step 0 --model m:f", "unrecognized arguments: --model"),
    ],
)
def test_a_wrong_command_line(dgrr, tmp_path, command, text):
    (tmp_path / "trace.dgrr").write_bytes(GOLDEN.read_bytes())
    code, out, err = dgrr(*command.split())
    assert (code, out) == (1, "")
    assert text in err
    assert err.startswith("usage: dgrr")
    assert os.listdir(tmp_path) == ["trace.dgrr"]


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("shwo", "dgrr shwo: no such command; did you mean 'show'?"),
        ("Validate", "dgrr Validate: no such command; did you mean 'validate'?"),
        ("dif", "dgrr dif: no such command; did you mean 'diff'?"),
        ("dance", "dgrr dance: no such command; `dgrr --help` lists them"),
        ("", "dgrr '': no such command; `dgrr --help` lists them"),
        ("a\nb", "dgrr 'a\\nb': no such command; `dgrr --help` lists them"),
    ],
)
def test_a_command_that_there_is_not(dgrr, word, text):
    assert dgrr(word, "--steps", "1") == (1, "", f"{text}\n")


def test_version_1_stands_last_in_the_help(dgrr):
    shown = dgrr("--help")[1]
    assert shown.index("\n    demo ") < shown.index("\n    cache ") < shown.index("\n    train ")


@pytest.mark.parametrize("option", ["--steps", "--seed", "--lr", "--created-at"])
@pytest.mark.parametrize("text", ["1_0", " 1", "1 ", "0x10", "", "one", "1\n", "9" * 5000, "-9" + "9" * 400])
def test_numbers_that_are_refused_everywhere(refused, option, text):
    err = refused(option, text)
    assert f"argument {option}: expected" in err or f"argument {option}: {text!r} is not a plain number" in err


@pytest.mark.parametrize(
    ("option", "text", "expected"),
    [
        ("--steps", "-1", "expected 0 to 128102389400760774, got -1"),
        ("--steps", "128102389400760775", "expected 0 to 128102389400760774, got 128102389400760775"),
        ("--steps", "1.0", "expected an integer, got '1.0'"),
        ("--steps", "1e3", "expected an integer, got '1e3'"),
        ("--seed", "-1", "expected 0 to 18446744073709551615, got -1"),
        ("--seed", "18446744073709551616", "expected 0 to 18446744073709551615, got 18446744073709551616"),
        ("--lr", "0", "expected a finite number above 0, got '0'"),
        ("--lr", "-0.1", "expected a finite number above 0, got '-0.1'"),
        ("--lr", "nan", "expected a finite number above 0, got 'nan'"),
        ("--lr", "inf", "expected a finite number above 0, got 'inf'"),
        ("--lr", "1e999", "expected a finite number above 0, got '1e999'"),
        ("--lr", "0x1p-3", "expected a number, got '0x1p-3'"),
        ("--created-at", "9223372036854775808", "expected -9223372036854775808 to 9223372036854775807"),
        ("--out", "", "argument --out: '' is not a path"),
        ("--out", "a\0b", "argument --out: 'a\\x00b' is not a path"),
    ],
)
def test_values_out_of_range(refused, option, text, expected):
    assert expected in refused(option, text)


@pytest.mark.parametrize("command", ["replay", "inspect", "rollback"])
@pytest.mark.parametrize("step", ["-1", "1.5", "18446744073709551616"])
def test_steps_out_of_range(dgrr, command, step):
    code, _, err = dgrr(command, f"--step={step}", "--trace", GOLDEN)
    assert code == 1
    assert "argument --step: expected" in err


@pytest.mark.parametrize("tolerance", ["-1", "0.5", "18446744073709551616"])
def test_tolerances_out_of_range(dgrr, tolerance):
    for command in (["replay", "--step", "0", "--trace", GOLDEN], ["compare", "--a", GOLDEN, "--b", GOLDEN]):
        code, _, err = dgrr(*command, f"--ulp-tol={tolerance}")
        assert code == 1
        assert "argument --ulp-tol: expected" in err


def test_numbers_as_python_reads_them(dgrr, tmp_path):
    code, _, _ = dgrr("train", "--steps=+3", "--seed=007", "--lr=1E-2", "--created-at=-5")
    assert code == 0
    header = (tmp_path / "trace.dgrr").read_bytes()[:64]
    assert header[8:32] == (7).to_bytes(8, "little") + (3).to_bytes(8, "little") + GOLDEN.read_bytes()[24:32]
    assert header[40:48] == (-5).to_bytes(8, "little", signed=True)


def test_the_ends_of_the_ranges(dgrr, tmp_path):
    code, _, _ = dgrr("train", "--steps=0", f"--seed={2**64 - 1}", "--lr=5e-324", f"--created-at={2**63 - 1}")
    assert code == 0
    code, out, _ = dgrr("validate", "trace.dgrr")
    assert code == 0
    assert "0 steps, seed 18446744073709551615, learning rate 5e-324" in out


def test_defaults(dgrr, tmp_path):
    assert dgrr("train")[0] == 0
    data = (tmp_path / "trace.dgrr").read_bytes()
    assert len(data) == 64 + 100 * 72
    assert data[8:16] == (42).to_bytes(8, "little")
    assert data[24:32] == GOLDEN.read_bytes()[24:32]
    assert abs(int.from_bytes(data[40:48], "little") - (tmp_path / "trace.dgrr").stat().st_mtime) < 60
    for command in (["replay", "--step", "99"], ["inspect", "--step", "99"], ["rollback", "--step", "99"]):
        assert dgrr(*command)[0] == 0


def test_help_and_version(dgrr):
    for command in (["--help"], *([name, "--help"] for name in ("train", "replay", "compare", "validate"))):
        code, out, err = dgrr(*command)
        assert (code, err) == (0, "")
        assert out.startswith("usage: dgrr")
    code, out, _ = dgrr("--version")
    assert code == 0
    assert out.startswith("dgrr 0.")


def test_versions_that_do_not_fit(dgrr, tmp_path):
    (tmp_path / "v2").write_bytes(V2)
    (tmp_path / "v9").write_bytes(b"DGRR\x09\0\0\0")
    code, _, err = dgrr("compare", "--a", GOLDEN, "--b", "v2")
    assert code == 3
    assert f"{GOLDEN} is of version 1 and v2 of version 2: they cannot be compared" in err
    for command in (
        ["validate", "v9"],
        ["replay", "--trace", "v9"],
        ["inspect", "--trace", "v9"],
        ["rollback", "--step", "0", "--trace", "v9"],
        ["compare", "--a", GOLDEN, "--b", "v9"],
        ["compare", "--a", "v9", "--b", GOLDEN],
    ):
        code, _, err = dgrr(*command)
        assert code == 3
        assert "v9: unsupported version 9, expected 1 or 2" in err


def test_an_interrupt_anywhere_is_130(dgrr, monkeypatch):
    def interrupt(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["dgrr.trace.cli.formats"], "version_of", interrupt)
    assert dgrr("validate", "t") == (130, "", "dgrr: interrupted\n")


@pytest.mark.long
def test_every_exit_code_through_the_entry_point(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    golden = GOLDEN.read_bytes()
    (tmp_path / "bad").write_bytes(golden[:-1])
    assert shell("train", "--steps", "3").returncode == 0
    assert shell("replay", "--step", "0").returncode == 0
    assert shell("dance").returncode == 1
    assert shell("replay", "--step", "9").returncode == 1
    assert shell("validate", "missing").returncode == 2
    assert shell("validate", "bad").returncode == 3
    assert shell("compare", "--a", "trace.dgrr", "--b", GOLDEN).returncode == 4
    assert shell("train", "--lr", "1e300").returncode == 4
    ended = shell("--help")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.quick
def test_names_that_no_terminal_can_show(tmp_path):
    path = os.fsencode(tmp_path) + b"/bad \xff\xe9 name"
    ended = subprocess.run([DGRR, "train", "--out", path], capture_output=True, env={**os.environ, "LC_ALL": "C"})
    assert ended.returncode == 0
    assert b"bad \\udcff\\udce9 name: 100 steps" in ended.stdout
    ended = subprocess.run([DGRR, "validate", path + b"x"], capture_output=True)
    assert ended.returncode == 2
    assert b"bad \\udcff\\udce9 namex: No such file" in ended.stderr


def test_a_reader_that_stops_reading(tmp_path):
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [DGRR, "inspect", "--step", "0", "--trace", GOLDEN],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        env=BUFFERED,
    )
    os.close(write)
    assert (ended.returncode, ended.stderr) == (2, "")


def test_an_answer_that_cannot_be_written():
    with open("/dev/full", "w") as full:
        ended = subprocess.run([DGRR, "validate", GOLDEN], stdout=full, stderr=subprocess.PIPE, text=True, env=BUFFERED)
        assert ended.returncode == 2
        assert ended.stderr == "dgrr: cannot write the answer: No space left on device\n"
        ended = subprocess.run([DGRR, "validate", "missing"], stdout=full, stderr=full, env=BUFFERED)
        assert ended.returncode == 2


def test_help_usage_errors_and_the_package_load_no_numba():
    program = (
        "import sys, dgrr.trace.file_version, dgrr.trace.exit_codes\n"
        "from dgrr.trace.cli import main\n"
        "main(['--help']); main(['dance']); main(['validate', 'missing'])\n"
        "main(['replay', '--trace', sys.argv[1]])\n"
        "sys.exit('numba' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program, GOLDEN], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
