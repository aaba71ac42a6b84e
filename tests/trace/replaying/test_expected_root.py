"""The last digest of a trace, held against one that was published or signed."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, Keep, Trainer
from dgrr.tape import DomainError
from dgrr.trace import Verdict, at, bisect_with_model, compare, open_trace, replay, validate
from dgrr.trace.cli.main import main

from ...keeping import kept

RecordRun = Callable[..., Path]
GOLDEN = Path(__file__).parents[2] / "golden"
PAGE = Path(__file__).parents[3] / "docs" / "traces.md"
BATCHES = [np.arange(4.0), np.ones(4)]


def loss_fn(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum()


def train(path: Path, *, steps: int = 6, **options: Any) -> Path:
    chosen: dict[str, Any] = {"digest": "sha256", "mode": "eager", **options}
    rule = chosen.pop("rule", SGD(0.1))
    Trainer(loss_fn, {"w": np.ones(4)}, rule, **kept(path, chosen)).fit(BATCHES, steps=steps, progress=False)
    return path


def root_of(path: Path) -> str:
    return path.read_bytes()[-32:].hex()


def test_the_root_is_the_end_of_the_file(tmp_path: Path) -> None:
    path = train(tmp_path / "t")
    report = validate(path)
    assert report.root == root_of(path)
    assert f"  root       {report.root}\n" in f"{report}\n"
    assert validate(path, expect_root=root_of(path).upper()).ok
    assert replay(path, expect_root=root_of(path), loss_fn=loss_fn, batches=BATCHES).ok


def test_another_root(tmp_path: Path) -> None:
    path, again = train(tmp_path / "t"), train(tmp_path / "again")  # the same run, another file
    assert compare(path, again).same
    for report in (validate(again, expect_root=root_of(path)), replay(again, expect_root=root_of(path))):
        assert (report.verdict, report.exit_code) == (Verdict.CHAIN, 3)
        assert (report.structure, report.chain, report.update) == ("proven", "failed", "not proven")
        expected = f"root: expected {root_of(path)}, the trace ends with {root_of(again)}: it is another file, or"
        assert report.findings[0].text == f"{expected} another run"


def test_a_trace_of_xxh3_is_not_believed(record_run: RecordRun) -> None:
    report = validate(record_run(), expect_root="0" * 64)
    assert (report.verdict, report.exit_code) == (Verdict.UNPROVEN, 6)
    assert report.findings[0].text == (
        f"root: expected {'0' * 64}, and the trace is digested by XXH3-128, which stops no forger; record it with "
        "digest='sha256'"
    )


def test_a_trace_without_a_root(tmp_path: Path, record_run: RecordRun) -> None:
    unsealed = validate(record_run(seal=False, digest="sha256"), expect_root="0" * 64)
    assert [finding.verdict for finding in unsealed.findings] == [Verdict.UNSEALED, Verdict.UNPROVEN]
    assert unsealed.root is None
    assert unsealed.findings[1].text.endswith("there is none: a trace has one when it is sealed")
    old = validate(GOLDEN / "v1_one_step.dgrr", expect_root="0" * 64)
    assert old.findings[-1].text.endswith("there is none: traces of version 1 have none")
    path = train(tmp_path / "t")
    data = bytearray(path.read_bytes())
    data[400] ^= 1
    path.write_bytes(data)
    assert [finding.verdict for finding in validate(path, expect_root="0" * 64).findings] == [Verdict.CORRUPT]


@pytest.mark.parametrize("given", ["", "12", "g" * 64, "0" * 63, 7])
def test_what_is_no_root(given: Any) -> None:
    for command, ask in (("validate", validate), ("replay", replay)):
        with pytest.raises(ValueError, match="argument 'expect_root'") as caught:
            ask("t", expect_root=given)
        expected = "expected the 64 hexadecimal digits of a SHA-256 digest"
        assert str(caught.value) == f"{command}: argument 'expect_root': {expected}, got {given!r}"


def test_a_root_of_xxh3_is_named() -> None:
    with pytest.raises(ValueError, match="; one of 32 digits is of XXH3-128, which stops no forger"):
        validate("t", expect_root="0" * 32)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = train(tmp_path / "t")
    assert main(["validate", str(path), "--json"]) == 0
    root = json.loads(capsys.readouterr().out)["result"]["report"]["root"]
    assert root == root_of(path)
    for command in ("validate", "replay"):
        assert main([command, str(path), "--expect-root", root]) == 0
        assert main([command, str(path), "--expect-root", "0" * 64]) == 3
        assert "the trace ends with" in capsys.readouterr().err
        assert main([command, str(path), "--expect-root", "beef"]) == 1
        text = "argument --expect-root: expected the 64 hexadecimal digits of a SHA-256 digest, got 'beef'"
        assert text in capsys.readouterr().err
    old = str(GOLDEN / "v1_one_step.dgrr")
    assert main(["validate", old, "--expect-root", root]) == 1
    assert "argument --expect-root: " in capsys.readouterr().err
    assert main(["replay", old, "--step", "0", "--expect-root", root]) == 1
    assert "is of version 1, which has no root" in capsys.readouterr().err


def test_all_of_it_works_on_traces_of_sha256(tmp_path: Path) -> None:
    """Reading, comparing, bisecting, going back and going on, of what the trainer records."""
    options: dict[str, Any] = {"record": "digest", "keyframe_every": 2, "ops": "every", "rule": Adam(0.1)}
    a = train(tmp_path / "a", **options)
    b = train(tmp_path / "b", **options | {"ops": None}, steps=5)
    with open_trace(a) as trace:
        assert trace.header.algorithm.size == 32
        found = trace.ops(3)
        assert found is not None
        assert {len(digest) for digest in found.values} == {32}
    assert compare(a, b).step == 5
    assert bisect_with_model(a, loss_fn, BATCHES).same
    assert not bisect_with_model(a, lambda p, x: loss_fn(p, x) * 2.0, BATCHES).same
    assert at(a, 3, loss_fn, BATCHES).keyframe == 2

    def dies(trainer: Any, epoch: int, loss: float) -> None:
        raise KeyboardInterrupt

    saved: dict[str, Any] = {"checkpoint": tmp_path / "c", "checkpoint_every": 1}
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "r", **options, **saved, callbacks=[dies])
    trainer = Trainer(
        loss_fn,
        {"w": np.ones(4)},
        Adam(0.1),
        mode="eager",
        trace=Keep(tmp_path / "r", record="digest", digest="sha256"),
        **saved,
    )
    trainer.load(tmp_path / "c")
    trainer.fit(BATCHES, steps=6, progress=False)
    assert compare(a, tmp_path / "r").same


def test_another_digest_is_refused() -> None:
    with pytest.raises(DomainError) as caught:
        Keep("run.dgrr", digest="md5")  # type: ignore[arg-type]
    assert str(caught.value) == "Keep: argument 'digest': expected 'xxh3-128' or 'sha256', got 'md5'"


def recipe() -> list[str]:
    """The shell commands of the page."""
    section = PAGE.read_text().split("\n## Sign\n")[1].split("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen, of OpenSSH, is not installed here")
@pytest.mark.long
def test_the_recipe_of_the_page(tmp_path: Path) -> None:
    """Signing and verifying, with the commands as they stand there; then a forged trace, and another root."""
    key, publish, verify = recipe()
    train(tmp_path / "run.dgrr")
    whole = (tmp_path / "run.dgrr").read_bytes()

    def shell(script: str) -> subprocess.CompletedProcess[str]:
        # the program of this checkout stands for an installed one
        script = f'dgrr() {{ {shlex.quote(sys.executable)} -m dgrr "$@"; }}\nset -e\n{script}'
        return subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    for script in (key, publish, verify):
        done = shell(script)
        assert done.returncode == 0, done.stderr
    assert 'Good "dgrr" signature for ada@example.org' in done.stdout
    assert (tmp_path / "run.root").read_text().strip() == whole[-32:].hex()

    (tmp_path / "run.dgrr").write_bytes(train(tmp_path / "other.dgrr").read_bytes())
    forged = shell(verify)
    assert forged.returncode == 3
    assert "chain: root: expected" in forged.stderr
    (tmp_path / "run.dgrr").write_bytes(whole)
    (tmp_path / "run.root").write_text("0" * 64 + "\n")
    assert shell(verify).returncode != 0
