"""What files are written and read for, as scenarios: what is done, what must be there before it, and what behind it."""

import argparse
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import runs

from dgrr.runtime import SGD, Trainer
from dgrr.runtime.training.saving.checkpoint import read_checkpoint
from dgrr.trace import Verdict, open_trace, recover, replay, validate
from dgrr.trace.auditing.read_certificate import CertificateError, read_certificate
from dgrr.trace.cli.commands import parse
from dgrr.trace.cli.commands.making.fork import run as fork
from dgrr.trace.golden.claims import claim
from dgrr.trace.showing.overview import read
from dgrr.trace.showing.state import state_of
from dgrr.trace.v1.reader import TraceReaderV1
from dgrr.trace.v1.writer import WriterV1
from dgrr.trace.v2.repair.rollback import rollback_v2


@dataclass
class Scenario:
    """Something that files are written or read for, in a folder.

    Args:
        act: what is done, and may fail; its value is what it answers.
        prepare: makes what is there before.
        check: raises AssertionError where the folder is not as it must be; the act has not failed (""), it has failed
            where one call did ("once"), or where all did from then on, so that nothing could be cleared ("for good").
        again: what must be possible afterwards; `act` if it is not given.
        tolerated: whether a call, by its number and name, may fail without a word, since nothing is lost.
    """

    act: Callable[[Path], object]
    prepare: Callable[[Path], object] = lambda folder: None
    check: Callable[[Path, str], object] = lambda folder, failed: None
    again: Callable[[Path], object] | None = None
    tolerated: Callable[[int, str], bool] = lambda number, name: False


LINKS: list[bytes] = []
"""The state chain of the run."""


def expected_links() -> list[bytes]:
    """The state chain of the run."""
    with TemporaryDirectory() as folder:
        runs.record(Path(folder, "t"))
        return runs.links(Path(folder, "t"))


def whole_or_not_there(name: str, steps: int = runs.STEPS, before: int = 0) -> Callable[[Path, str], None]:
    """The check of a trace: it is whole, or else has no name, or is the one of so many steps that was there."""

    def check(folder: Path, failed: str) -> None:
        path, partial = folder / name, folder / f"{name}.partial"
        if path.exists():
            links = runs.links(path)
            assert links == LINKS[:steps] or (failed and links == LINKS[:before]), f"{name} has {len(links)} steps"
            assert validate(path).ok, f"{name} is not whole"
        else:
            assert failed and not before, f"{name} is missing"
        if partial.exists():
            assert failed, f"{partial.name} stays behind"
            assert validate(partial).verdict in (Verdict.OK, Verdict.UNSEALED, Verdict.TORN_TAIL), partial.name

    return check


COMMITTED = [0]
"""Of the run in progress."""


def record(folder: Path, **options: Any) -> None:
    COMMITTED[0] = 0
    with runs.begin(folder / "t", **options) as recorder:
        while recorder.steps < runs.STEPS:
            runs.step(recorder)
            COMMITTED[0] = recorder.steps // runs.COMMIT_EVERY * runs.COMMIT_EVERY


def check_recorded(folder: Path, failed: str) -> None:
    whole_or_not_there("t")(folder, failed)
    if (folder / "t.partial").exists() and COMMITTED[0]:
        report = validate(folder / "t.partial")
        assert report.steps >= COMMITTED[0], f"{report.steps} of {COMMITTED[0]} committed steps are left"
        found = recover(folder / "t.partial", folder / "found")
        assert runs.links(folder / "found") == LINKS[: report.steps] and len(found.parts) == 1
        (folder / "found").unlink()


def anew(folder: Path) -> None:
    record(folder, overwrite=True)


def resume(folder: Path) -> None:
    with runs.resume(folder / "t", 4) as recorder:
        while recorder.steps < runs.STEPS:
            runs.step(recorder)


def torn(folder: Path) -> None:
    runs.unfinished(folder / "t", 5, torn=1000)


def half_copied(folder: Path) -> None:
    """A finished trace, and what is left of a process that was killed when it went on with it."""
    runs.record(folder / "t", steps=4)
    whole = (folder / "t").read_bytes()
    (folder / "t.partial").write_bytes(whole[: len(whole) // 2])


def go_on(folder: Path) -> None:
    """Add to a finished trace what it has not."""
    if len(runs.links(folder / "t")) < runs.STEPS:
        resume(folder)


def damaged(folder: Path) -> None:
    """A trace of which STEP 2 is lost, so that recovery makes two of it."""
    sizes: list[int] = []
    for steps in (2, 3):
        runs.unfinished(folder / "t", steps)
        sizes.append((folder / "t.partial").stat().st_size)
    runs.record(folder / "t", overwrite=True)
    data = bytearray((folder / "t").read_bytes())
    data[sum(sizes) // 2] ^= 1
    (folder / "t").write_bytes(data)


def recover_it(folder: Path) -> None:
    before = (folder / "t").read_bytes()
    try:
        recover(folder / "t", folder / "new")
    finally:
        assert (folder / "t").read_bytes() == before, "the source was changed"


def check_recovered(folder: Path, failed: str) -> None:
    parts = sorted(folder.glob("new*"))
    if failed == "once":
        assert not parts, f"a recovery that failed has left {[p.name for p in parts]}"
    if not failed:
        assert [(p.name, validate(p).steps) for p in parts] == [("new", 2), ("new.1", runs.STEPS - 4)]
    for part in parts:
        assert part.suffix == ".partial" or validate(part).ok
        part.unlink()


def rollback(folder: Path) -> None:
    rollback_v2(folder / "t", 3, folder / "child")


def check_child(folder: Path, failed: str) -> None:
    whole_or_not_there("t")(folder, "")
    whole_or_not_there("child", 3)(folder, failed)
    for name in ("child", "child.partial"):
        (folder / name).unlink(missing_ok=True)


def unnamed(folder: Path) -> None:
    """Sealed, but its writer died before it got its name."""
    runs.record(folder / "t")
    (folder / "t").rename(folder / "t.partial")


def read_unnamed(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with open_trace(folder / "t") as trace:
            assert [view.record.link for view in trace] == LINKS


def check_named(folder: Path, failed: str) -> None:
    there = [name for name in ("t", "t.partial") if (folder / name).exists()]
    assert len(there) == 1 and validate(folder / there[0]).ok, there


def read_all(folder: Path) -> None:
    with open_trace(folder / "t") as trace:
        for view in trace:
            assert view.record.link == LINKS[view.step]
            assert all((a == view.step + 1).all() for n, a in view.gradients().items() if n == "w")


def judge_it(folder: Path) -> None:
    """What never raises: its answer is right, or that the file cannot be read."""
    for report in (validate(folder / "t"), replay(folder / "t")):
        if report.verdict is Verdict.IO:
            raise OSError(0, str(report.findings[0]), str(folder / "t"))
        assert report.verdict in (Verdict.OK, Verdict.UNPROVEN), report.verdict


def look(folder: Path) -> None:
    """At a run that nobody writes any more; where a lock cannot be had, nobody is known to hold one."""
    with read(folder / "t.partial") as trace:
        if trace.damage is not None and trace.damage.verdict is Verdict.IO:
            raise OSError(0, str(trace.damage), trace.path)
        assert state_of(trace) == "unfinished"


def write_empty(path: Path) -> None:
    path.write_text("{}")


def read_a_certificate(folder: Path) -> None:
    """One that holds nothing: it is read, and then refused."""
    with suppress(CertificateError):
        read_certificate(folder / "certificate.json")


RECORDS = np.zeros((3, 9), np.uint64)


def write_v1(folder: Path) -> None:
    with WriterV1(str(folder / "t"), 0, 0.1, 0) as writer:
        writer.append(RECORDS)
        writer.seal()


def check_v1(folder: Path, failed: str) -> None:
    assert failed == "for good" or not (folder / "t.partial").exists(), "t.partial stays behind"
    if (folder / "t").exists():
        with TraceReaderV1(str(folder / "t")) as trace:
            assert trace.whole_records == len(RECORDS)
    else:
        assert failed


def read_v1(folder: Path) -> None:
    with TraceReaderV1(str(folder / "t")) as trace:
        assert sum(len(block) for block in trace.blocks(trace.whole_records)) == len(RECORDS)
        trace.check_size()


def loss_fn(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum()


BATCHES = [np.full(3, float(k)) for k in range(5)]


def run_of_forks() -> tuple[Any, list[Any]]:
    """The model and the batches, as ``--model`` asks for them."""
    return loss_fn, BATCHES


def trainer(folder: Path) -> Trainer:
    return Trainer(
        loss_fn,
        {"w": np.ones(3)},
        SGD(0.1),
        trace=folder / "t",
        checkpoint=folder / "c",
        checkpoint_every=2,
        mode="eager",
    )


def train(folder: Path) -> None:
    run = trainer(folder)
    if (folder / "c").exists():
        run.load(folder / "c")
    run.fit(BATCHES, epochs=1, progress=False)


def check_trained(folder: Path, failed: str) -> None:
    assert failed == "for good" or not (folder / "c.tmp").exists(), "c.tmp stays behind"
    saved = read_checkpoint(folder / "c").steps if (folder / "c").exists() else 0
    if (folder / "t").exists():
        assert validate(folder / "t").ok and validate(folder / "t").steps == 5
    else:
        assert failed
    if (folder / "t.partial").exists():
        assert validate(folder / "t.partial").steps >= saved, "the trace is behind the checkpoint"


FORKED = 2
"""Steps of a fork."""


def trained(folder: Path) -> None:
    """A run to fork; the kernels that it takes are compiled, and kept in files, at the first time."""
    train(folder)
    fork_it(folder)
    (folder / "new").unlink()


def fork_it(folder: Path) -> None:
    args = argparse.Namespace(paths=[], json=False)
    steps, model = ["--step", "2", "--steps", str(FORKED)], ["--model", "scenarios:run_of_forks"]
    parse(["fork", str(folder / "t"), *steps, *model, "-o", str(folder / "new")], args)
    fork(args)


def check_forked(folder: Path, failed: str) -> None:
    assert failed == "for good" or not (folder / "new.partial").exists(), "new.partial stays behind"
    if (folder / "new").exists():
        assert validate(folder / "new").ok and validate(folder / "new").steps == FORKED
    else:
        assert failed
    for name in ("new", "new.partial"):
        (folder / name).unlink(missing_ok=True)


def save(folder: Path) -> None:
    run = trainer(folder)
    run.load(folder / "c")
    run.save(folder / "c2")


def check_saved(folder: Path, failed: str) -> None:
    assert failed == "for good" or not (folder / "c2.tmp").exists(), "c2.tmp stays behind"
    if (folder / "c2").exists():
        read_checkpoint(folder / "c2")
    else:
        assert failed


def claim_it(folder: Path) -> None:
    assert claim(folder / "claims", "name", "owner") == "owner"


SCENARIOS: dict[str, Scenario] = {
    "record": Scenario(record, check=check_recorded, again=anew),
    "record again": Scenario(
        anew,
        prepare=lambda folder: (runs.record(folder / "t", steps=2), runs.unfinished(folder / "t", 3)),
        check=whole_or_not_there("t", before=2),
        tolerated=lambda number, name: number == 0 or name == "pread",  # is it sealed, and just without its name?
    ),
    "resume": Scenario(
        resume, prepare=torn, check=whole_or_not_there("t"), again=lambda f: (f / "t").exists() or resume(f)
    ),
    "go on": Scenario(go_on, prepare=half_copied, check=whole_or_not_there("t", before=4)),
    "recover": Scenario(recover_it, prepare=damaged, check=check_recovered),
    "roll back": Scenario(rollback, prepare=lambda f: runs.record(f / "t"), check=check_child),
    "give a name": Scenario(read_unnamed, prepare=unnamed, check=check_named, tolerated=lambda number, name: True),
    "read": Scenario(read_all, prepare=lambda f: runs.record(f / "t")),
    "judge": Scenario(judge_it, prepare=lambda f: runs.record(f / "t")),
    "look": Scenario(
        look,
        prepare=lambda f: runs.unfinished(f / "t", 3),
        tolerated=lambda number, name: number > 0 and name in ("open_descriptor", "lock"),  # is it still written?
    ),
    "read a certificate": Scenario(read_a_certificate, prepare=lambda f: write_empty(f / "certificate.json")),
    "write version 1": Scenario(write_v1, check=check_v1),
    "read version 1": Scenario(read_v1, prepare=write_v1),
    "train": Scenario(train, check=check_trained),
    "fork": Scenario(fork_it, prepare=trained, check=check_forked),
    "save": Scenario(save, prepare=train, check=check_saved),
    "claim": Scenario(claim_it),
}
