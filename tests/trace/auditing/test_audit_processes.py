"""Audits of several processes, and those that were interrupted or killed: gone on with, to the same certificate."""

import shutil
import sys
from importlib import import_module
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from dgrr.trace import CertificateError, Verdict, audit, check_certificate
from dgrr.trace.auditing import audit as auditing, work
from dgrr.trace.auditing.audit import Asked, audit_run
from dgrr.trace.auditing.work import AuditedRun, WorkerError

from .runs import BATCHES, NONCE, Counting, Made, loss_fn

MODULE = """
from {there} import BATCHES, loss_fn

def run():
    print("a word on the way")
    return loss_fn, BATCHES

def fails():
    raise ValueError("no data")
"""


@pytest.fixture
def module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module that other processes can import."""
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    shutil.copy(Path(__file__).with_name("runs.py"), folder / "audited_runs.py")
    (folder / "audited_model.py").write_text(MODULE.format(there="audited_runs"))
    yield import_module("audited_model")
    for name in ("audited_model", "audited_runs"):
        sys.modules.pop(name, None)


@pytest.mark.long
def test_side_by_side_the_certificate_is_the_same(run: Made, folder: Path, module: Any) -> None:
    path, certificates = run(state=(5,), gradient=(10,)), [folder / "one.json", folder / "two.json"]
    for jobs, certificate in zip((1, 2), certificates, strict=True):
        found = audit_run(
            AuditedRun(str(path), module.run, ()),
            "audited_model:run",
            Asked(sample=9, nonce=NONCE, jobs=jobs, certificate=str(certificate)),
        )
        assert found.complete and not found
    assert certificates[0].read_bytes() == certificates[1].read_bytes()


@pytest.mark.long
def test_a_process_that_ends_is_told_of(run: Made, module: Any) -> None:
    asked = Asked(sample=9, nonce=NONCE, jobs=2)
    with pytest.raises(WorkerError, match="audit: a process ended: ValueError: no data"):
        audit_run(AuditedRun(str(run()), module.fails, ()), "m:f", asked)


def test_a_process_that_dies_is_told_of() -> None:
    mine, other = Pipe()
    other.close()
    with pytest.raises(WorkerError, match="audit: a process ended before its steps were computed"):
        work._received(mine)


def test_several_processes_need_what_can_be_pickled(run: Made) -> None:
    expected = r"audit: argument 'jobs': 2 processes need a loss function, batches and rules that can be pickled, such "
    with pytest.raises(ValueError, match=expected):
        audit(run(), lambda p, x: loss_fn(p, x), BATCHES, jobs=2)


@pytest.fixture
def whole(run: Made, tmp_path: Path) -> bytes:
    """The certificate of an audit that was not interrupted."""
    audit(run(), Counting(), BATCHES, sample=6, nonce=NONCE, certificate=tmp_path / "whole.json")
    return (tmp_path / "whole.json").read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_ctrl_c_leaves_a_certificate_that_is_gone_on_with(
    run: Made, tmp_path: Path, share: float, whole: bytes
) -> None:
    """At the first call of the model, one in the middle, and the last: which steps are drawn hangs on the file."""
    every, kept = Counting(), tmp_path / "kept.json"
    audit(run(), every, BATCHES, sample=6, nonce=NONCE)
    call = max(1, round(share * every.calls))
    with pytest.raises(KeyboardInterrupt):
        audit(run(), Counting(call), BATCHES, sample=6, nonce=NONCE, certificate=kept)
    partial = check_certificate(kept, run())
    assert (partial.complete, partial.verdict, partial.exit_code) == (False, Verdict.UNPROVEN, 6)
    assert partial.to_dict()["claims"] == [] and "probability" not in str(partial)
    rest = Counting()
    found = audit(run(), rest, BATCHES, certificate=kept, resume=True)
    assert found and kept.read_bytes() == whole
    assert found.notes[0].startswith(f"{rest.calls} of ")
    assert rest.calls < every.calls or share < 1
    again = Counting()
    assert audit(run(), again, BATCHES, certificate=kept, resume=True) and again.calls == 0


def test_what_a_kill_leaves_is_gone_on_with(
    run: Made, tmp_path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file as it is at each call of the model, which is what is there after a kill."""
    monkeypatch.setattr(auditing, "_SAVE_EVERY", 0.0)
    kept, calls = tmp_path / "kept.json", Counting()

    def watched(p: Any, x: Any) -> Any:
        shutil.copy(kept, tmp_path / f"killed-{calls.calls}.json")
        return calls(p, x)

    watched.__qualname__ = "Counting"
    audit(run(), watched, BATCHES, sample=6, nonce=NONCE, certificate=kept)
    done = set()
    for killed in sorted(tmp_path.glob("killed-*")):
        done.add(len(check_certificate(killed, run()).found))
        audit(run(), Counting(), BATCHES, certificate=killed, resume=True)
        assert killed.read_bytes() == whole
    assert done == set(range(6))


def test_a_certificate_begins_where_there_is_none(run: Made, tmp_path: Path) -> None:
    new = tmp_path / "new.json"
    assert audit(run(), loss_fn, BATCHES, certificate=new, resume=True)
    assert check_certificate(new, run())
    with pytest.raises(
        ValueError, match=r"audit: argument 'certificate': .*new.json already exists; resume continues it"
    ):
        audit(run(), loss_fn, BATCHES, certificate=new)
    with pytest.raises(
        ValueError, match="audit: argument 'resume': expected the certificate to continue; pass its file"
    ):
        audit(run(), loss_fn, BATCHES, resume=True)


def test_another_audit_is_not_gone_on_with(run: Made, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    audit(run(), loss_fn, BATCHES, sample=2, nonce=b"a", certificate=kept)
    for options, text in (
        ({"nonce": b"b"}, "its nonce is 61, and this audit has 62"),
        ({"sample": 3}, "its sample is 2, and this audit has 3"),
    ):
        with pytest.raises(CertificateError, match=f"it cannot be continued: {text}") as caught:
            audit(run(), loss_fn, BATCHES, certificate=kept, resume=True, **options)
        assert caught.value.verdict is Verdict.DIVERGED
    with pytest.raises(CertificateError, match=r"its model is loss_fn, and this audit has Counting"):
        audit(run(), Counting(), BATCHES, certificate=kept, resume=True)
    with pytest.raises(CertificateError, match="it is the certificate of another trace, whose last digest is"):
        audit(run(state=(5,)), loss_fn, BATCHES, certificate=kept, resume=True)
