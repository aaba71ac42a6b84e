"""A power cut at every moment: ``python tests/crash/power_cut.py [RUN …] [--samples N]``.

A run's calls of the system are written down, and every prefix of them is played on a model of a disk, on which only
what was fsynced is sure to survive: the bytes of a file by its own fsync, names by that of the folder. Of the rest
survive nothing, all, or sectors and names by chance. What is left must keep the promises: nothing before the last
COMMIT is lost; what has a final name is whole; a reader answers with a word for it; and the run can go on.
"""

import argparse
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import runs
import scenarios
from services import hooked

from dgrr.runtime.training.saving.checkpoint import read_checkpoint
from dgrr.trace import InvalidTraceError, Verdict, open_trace, validate
from dgrr.trace.file_version import TraceFileError
from dgrr.trace.v1.reader import TraceReaderV1

SECTOR = 512
GOOD = (Verdict.OK, Verdict.UNSEALED, Verdict.TORN_TAIL)
Image = dict[str, bytes]
"""Name → bytes: a folder."""


# What was asked.


@dataclass
class Log:
    """A hook that writes down what changes the files of one folder: (kind, file or name, more)."""

    names: dict[str, int]
    entries: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    _open: dict[int, int] = field(default_factory=dict[int, int])
    _made: int = 1000

    def promise(self, steps: int) -> None:
        """From here on so many steps must survive."""
        self.entries.append(("promise", steps))

    def __call__(self, name: str, service: Callable[..., Any], *args: Any) -> Any:
        position = os.lseek(args[0], 0, os.SEEK_CUR) if name == "write" else 0
        before = set(self.names) if name in ("open_descriptor", "new_file") else set[str]()
        answer = service(*args)
        match name:
            case "open_descriptor" | "new_file":
                self._opened(Path(args[0]), answer if name == "open_descriptor" else answer.fileno(), before)
                if name == "new_file" or args[1] & os.O_TRUNC:
                    self.entries.append(("truncate", self.names[Path(args[0]).name], 0))
            case "write":
                data = b"".join(map(bytes, args[1]))[:answer]
                self.entries.append(("write", self._open[args[0]], position, data))
            case "truncate":
                self.entries.append(("truncate", self._open[args[0]], args[1]))
            case "fsync":
                self.entries.append(("fsync", self._open[args[0]]))
            case "replace":
                source, target = (Path(p).name for p in args)
                self.names[target] = self.names.pop(source)
                self.entries.append(("rename", source, target))
            case "remove":
                del self.names[Path(args[0]).name]
                self.entries.append(("remove", Path(args[0]).name))
            case _:
                pass
        return answer

    def _opened(self, path: Path, descriptor: int, before: set[str]) -> None:
        if path.is_dir():
            self._open[descriptor] = -1
            return
        if path.name not in before:
            self._made += 1
            self.names[path.name] = self._made
            self.entries.append(("make", path.name, self._made))
        self._open[descriptor] = self.names[path.name]


# What survives.


class Disk:
    """What is sure to be there, and what was asked since."""

    def __init__(self, image: Image) -> None:
        self.files = dict(enumerate(image.values()))
        self.names = {name: i for i, name in enumerate(image)}
        self.changes: list[tuple[Any, ...]] = []
        self.moves: list[tuple[Any, ...]] = []

    def play(self, entry: tuple[Any, ...]) -> None:
        """Do what was asked."""
        match entry:
            case ("fsync", -1):
                self.names = named(self.names, self.moves)
                self.moves = []
            case ("fsync", file):
                own = [change for change in self.changes if change[1] == file]
                self.files[file] = changed(self.files.get(file, b""), own)
                self.changes = [change for change in self.changes if change[1] != file]
            case ("write" | "truncate", *_):
                self.changes.append(entry)
            case ("make" | "rename" | "remove", *_):
                self.moves.append(entry)
            case _:
                pass

    def images(self, random: Random, samples: int) -> Iterator[Image]:
        """What a power cut leaves: at least, at most, and by chance."""
        yield self._image([], [])
        yield self._image(self.changes, self.moves)
        yield self._image([], self.moves)
        yield self._image(self.changes, [])
        for _ in range(samples):
            share = random.choice((0.1, 0.5, 0.9))
            changes = [part for change in self.changes for part in parts(change) if random.random() < share]
            yield self._image(changes, [move for move in self.moves if random.random() < share])

    def _image(self, changes: list[tuple[Any, ...]], moves: list[tuple[Any, ...]]) -> Image:
        image = Image()
        for name, file in named(self.names, moves).items():
            image[name] = changed(self.files.get(file, b""), [change for change in changes if change[1] == file])
        return image


def parts(change: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The sectors of a write, each of which survives or not; a lost one within a longer file is of zeros."""
    if change[0] != "write":
        yield change
        return
    _, file, offset, data = change
    end = offset + len(data)
    bounds = [offset, *range((offset // SECTOR + 1) * SECTOR, end, SECTOR), end]
    for start, stop in pairwise(bounds):
        yield "write", file, start, data[start - offset : stop - offset]


def changed(data: bytes, changes: list[tuple[Any, ...]]) -> bytes:
    """A file after what was asked of it."""
    content = bytearray(data)
    for kind, _, at, *more in changes:
        if kind == "truncate":
            content[:] = content[:at].ljust(at, b"\0")
        else:
            content[:] = content.ljust(at, b"\0")
            content[at : at + len(more[0])] = more[0]
    return bytes(content)


def named(names: dict[str, int], moves: list[tuple[Any, ...]]) -> dict[str, int]:
    """The names after what was asked of a folder."""
    found = dict(names)
    for kind, name, *more in moves:
        if kind == "make":
            found[name] = more[0]
        elif kind == "rename" and name in found:
            found[more[0]] = found.pop(name)
        elif kind == "remove":
            found.pop(name, None)
    return found


# What is run, and what must hold.


def steps_recorded(folder: Path, log: Log, recorder: Any) -> None:
    with recorder:
        while recorder.steps < runs.STEPS:
            runs.step(recorder)
            if recorder.steps % runs.COMMIT_EVERY == 0:
                log.promise(recorder.steps)
    log.promise(runs.STEPS)


def begun(folder: Path, log: Log) -> None:
    steps_recorded(folder, log, runs.begin(folder / "t"))


def overwritten(folder: Path, log: Log) -> None:
    steps_recorded(folder, log, runs.begin(folder / "t", overwrite=True))


def resumed(folder: Path, log: Log) -> None:
    log.promise(4)
    steps_recorded(folder, log, runs.resume(folder / "t", 4))


def trained(folder: Path, log: Log) -> None:
    scenarios.train(folder)


def version_1(folder: Path, log: Log) -> None:
    scenarios.write_v1(folder)


def old(folder: Path) -> None:
    runs.record(folder / "t", steps=2)
    runs.unfinished(folder / "t", 3)


def check_trace(folder: Path, promised: int, go_on: bool) -> None:
    """One run's trace, finished or not."""
    path, partial = folder / "t", folder / "t.partial"
    if path.exists():
        assert runs.links(path) in (scenarios.LINKS, scenarios.LINKS[:2]) and validate(path).ok, (
            "the final name is wrong"
        )
    kept = len(runs.links(path)) if path.exists() else 0
    if partial.exists():
        report = validate(partial)
        assert report.verdict in GOOD, f"t.partial: {report.findings[0]}"
        kept = max(kept, report.steps)
        opened(path)
    assert kept >= promised, f"{kept} steps are left of {promised}"
    if go_on and not path.exists():
        again(path, promised)


def opened(path: Path) -> None:
    try:
        with open_trace(path, mode="tolerate_tail") as trace:
            assert [view.record.link for view in trace] == scenarios.LINKS[: len(trace)]
    except TraceFileError as error:
        if not isinstance(error, InvalidTraceError) or error.verdict not in GOOD:
            raise


def again(path: Path, promised: int) -> None:
    """The process begins anew, or goes on behind what was promised."""
    if promised:
        recorder = runs.resume(path, promised)
        while recorder.steps < runs.STEPS:
            runs.step(recorder)
        recorder.seal()
    else:
        runs.record(path, overwrite=True)
    assert runs.links(path) == scenarios.LINKS


def check_training(folder: Path, promised: int, go_on: bool) -> None:
    """The trace is never behind the checkpoint, and training goes on from both."""
    saved = read_checkpoint(folder / "c").steps if (folder / "c").exists() else 0
    names = [name for name in ("t", "t.partial") if (folder / name).exists()]
    assert all(validate(folder / name).verdict in GOOD for name in names)
    assert max([validate(folder / name).steps for name in names], default=0) >= saved, "the trace is behind"
    assert "t" not in names or validate(folder / "t").ok
    if go_on and "t" not in names:
        scenarios.train(folder)
        assert validate(folder / "t").ok and validate(folder / "t").steps == 5


def check_version_1(folder: Path, promised: int, go_on: bool) -> None:
    if (folder / "t").exists():
        with TraceReaderV1(str(folder / "t")) as trace:
            assert trace.whole_records == len(scenarios.RECORDS)


RUNS: dict[str, tuple[Callable[[Path], object], Callable[[Path, Log], object], Callable[[Path, int, bool], None]]] = {
    "begin": (lambda folder: None, begun, check_trace),
    "overwrite": (old, overwritten, check_trace),
    "resume": (scenarios.torn, resumed, check_trace),
    "train": (lambda folder: None, trained, check_training),
    "version 1": (lambda folder: None, version_1, check_version_1),
}


def image_of(folder: Path) -> Image:
    """The files of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def simulate(title: str, samples: int) -> tuple[int, int, int]:
    """One run: the numbers of calls, of images, and of findings."""
    prepare, act, check = RUNS[title]
    with TemporaryDirectory() as root:
        folder = Path(root, "run")
        folder.mkdir()
        prepare(folder)
        disk = Disk(image_of(folder))
        log = Log(dict(disk.names))
        with hooked(log):
            act(folder, log)
        random, seen, found, promised = Random(title), set[bytes](), 0, 0
        for number, entry in enumerate(log.entries, 1):
            disk.play(entry)
            promised = entry[1] if entry[0] == "promise" else promised
            for image in disk.images(random, samples):
                key = sha256(repr((promised, image)).encode()).digest()
                if key in seen:
                    continue
                seen.add(key)
                if text := wrong(Path(root, str(len(seen))), image, check, promised, len(seen) % 4 == 1):
                    found += 1
                    print(f"{title}, after {number} calls ({entry[0]}): {text}", flush=True)
    return len(log.entries), len(seen), found


def wrong(folder: Path, image: Image, check: Callable[..., None], promised: int, go_on: bool) -> str:
    """What is wrong with what is left, or nothing."""
    folder.mkdir()
    for name, data in image.items():
        (folder / name).write_bytes(data)
    try:
        check(folder, promised, go_on)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    return ""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("titles", nargs="*", metavar="RUN", choices=[*RUNS, []], help="default: all")
    parser.add_argument("--samples", type=int, default=20, help="so many survivals by chance of each moment")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of `.partial` files
    scenarios.LINKS[:] = scenarios.expected_links()
    total = Counter[str]()
    for title in given.titles or RUNS:
        calls, images, found = simulate(title, given.samples)
        print(f"{title}: {calls} calls, {images} images, {found} findings", flush=True)
        total.update(calls=calls, images=images, findings=found)
    print(", ".join(f"{count} {what}" for what, count in total.items()))
    return 1 if total["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
