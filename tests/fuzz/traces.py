"""Hostile traces against every reader: ``python tests/fuzz/traces.py [--seconds S] [--first SEED] [--files N]``.

Each file is one that is whole, changed, and made consistent again, so that the change is read. No reader may raise
anything but its own errors, take longer than ten seconds, or take more than 256 MiB beyond what it began with; a file
whose links were left wrong must not be called whole. What is found is printed with its seed, which makes it again;
exit code 1 if there was anything.
"""

import argparse
import resource
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import numpy as np
from mutate import mutated

from dgrr.runtime import SGD, Adam, Keep, Trainer
from dgrr.tape import DgrrError, ops
from dgrr.trace import (
    NotRecordedError,
    Trace,
    TraceWriteError,
    compare,
    export,
    open_trace,
    recover,
    replay,
    state_after,
    validate,
)
from dgrr.trace.file_version import TraceFileError
from dgrr.trace.replaying.replay_state import UnknownRuleError
from dgrr.trace.v2.repair.rollback import rollback_v2
from dgrr.trace.v2.write.resume import Unfinished

ALLOWANCE, SECONDS = 256 << 20, 10
ALLOWED = (TraceFileError, NotRecordedError, UnknownRuleError, DgrrError)
"""What reading may raise for what is in a file."""


def loss_fn(p: Any, batch: Any) -> Any:
    """A line."""
    x, y = batch
    error = ops.linear(x, p["w"], p["b"]) - y
    return (error * error).mean(), {"error": error.mean(), "largest": error.max()}


BATCHES = [tuple(np.random.default_rng(k).standard_normal((4, n)).astype(np.float32) for n in (3, 2)) for k in range(4)]
PARAMS = {"w": np.full((2, 3), 0.25, np.float32), "b": np.zeros(2, np.float32)}
RUNS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"optimizer": Adam(1e-2), "clip_value": 0.5}, {"ops": "every", "notes": {"lr": 1e-2, "layers": [3, 2]}}),
    ({"optimizer": SGD(0.1, momentum=0.5), "clip_norm": 0.1}, {"record": "digest", "ops": [1]}),
    ({"optimizer": SGD(0.1), "accumulate": 2}, {}),
)
"""How they train, and what is kept of them."""


def seeds(folder: Path) -> list[bytes]:
    """Whole traces of several kinds."""
    made: list[bytes] = []
    for i, (options, kept) in enumerate(RUNS):
        path = folder / f"seed{i}"
        Trainer(loss_fn, PARAMS, **options, trace=Keep(path, **kept)).fit(
            BATCHES, progress=False, validation=BATCHES[:1], validate_every=2
        )
        made.append(path.read_bytes())
    return made


def read_all(trace: Trace) -> None:
    """Everything that a trace offers."""
    _ = trace.loss, list(trace.events()), trace.noted(), trace.validations(), trace.keyframe_digests(0)
    for view in trace:
        _ = view.hyper, view.state_digests, view.buffer_digests, view.ops(), view.metrics()
        for name in (t.name for t in trace.schema.tensors):
            for what in ("grad", "after", "before"):
                with suppress(NotRecordedError):
                    trace.tensor(name, step=view.step, what=what)


def opened(path: Path, mode: Any) -> None:
    """Read all of a file in one mode."""
    with open_trace(path, mode=mode) as trace:
        read_all(trace)


def resumed(path: Path) -> None:
    """All that a resumption reads: of an unfinished file, and of what was cut off from it before."""
    for name in ("unfinished.partial", "unfinished.torn"):
        path.with_name(name).write_bytes(path.read_bytes())
    with suppress(TraceWriteError), Unfinished(path.with_name("unfinished"), 1):
        pass


def recovered(whole: Path, path: Path) -> object:
    """A recovery from a whole file and a tail."""
    tail = path.with_name("t.torn")
    tail.write_bytes(path.read_bytes())
    return recover([whole, tail], path.with_name("recovered-too"))


def readers(path: Path, whole: Path) -> dict[str, Callable[[], object]]:
    """All that reads a file, by name."""
    child = path.with_name("child")
    for made in (child, *path.parent.glob("recovered*")):
        made.unlink(missing_ok=True)
    return {
        "validate": lambda: validate(path),
        **{
            f"open {mode}": lambda mode=mode: opened(path, mode)
            for mode in ("strict", "tolerate_tail", "point_in_time", "salvage")
        },
        "compare": lambda: compare(whole, path),
        "replay": lambda: replay(path),
        "replay with the model": lambda: replay(path, loss_fn=loss_fn, batches=BATCHES),
        "state after": lambda: state_after(path, 0),
        "rollback": lambda: rollback_v2(path, 1, child),
        "recover": lambda: recover(path, path.with_name("recovered")),
        "recover a tail": lambda: recovered(whole, path),
        "resume": lambda: resumed(path),
        "export": lambda: export(path, path.with_name("table"), "csv", form="long"),
    }


NEVER_RAISES = ("validate", "compare", "replay", "replay with the model")


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError after so many seconds."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def faults(path: Path, whole: Path, verdicts: Counter[str]) -> Iterator[str]:
    """What is wrong with how a file is read."""
    for name, read in readers(path, whole).items():
        try:
            with at_most(SECONDS), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = read()
        except ALLOWED as error:
            if name in NEVER_RAISES or "does not validate" in str(error):
                yield f"{name}: raised {type(error).__name__}: {error}"
        except IndexError as error:
            if name not in ("state after",):
                yield f"{name}: raised IndexError: {error}"
        except ValueError as error:
            if name != "rollback" or "rollback: step: expected" not in str(error):
                yield f"{name}: raised {type(error).__name__}: {error}"
        except Exception as error:
            yield f"{name}: raised {type(error).__name__}: {str(error)[:200]}"
        else:
            if name == "validate":
                verdicts[answer.verdict.value] += 1  # type: ignore[attr-defined]
            if name.startswith("recover") and not all(validate(part.path).ok for part in answer.parts):  # type: ignore[attr-defined]
                yield "recover: what it wrote is not whole"
            if name == "rollback" and not validate(path.with_name("child")).ok:
                yield "rollback: the child is not whole"


def run(seconds: float, first: int, files: int | None) -> int:
    """Fuzz until the time or the files are used up; the number of findings."""
    found, verdicts = 0, Counter[str]()
    with TemporaryDirectory() as folder:
        path, whole = Path(folder, "t"), Path(folder, "seed0")
        known = seeds(Path(folder))
        _cap()
        end, seed = time.monotonic() + seconds, first
        while time.monotonic() < end and (files is None or seed < first + files):
            path.write_bytes(mutated(known, Random(seed)))
            for text in faults(path, whole, verdicts):
                found += 1
                print(f"seed {seed}: {text}", flush=True)
            seed += 1
    print(f"{seed - first} files, {found} findings; " + ", ".join(f"{v} {n}" for v, n in verdicts.most_common()))
    return found


def _cap() -> None:
    """Allow so much memory beyond what the process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ALLOWANCE,) * 2)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--files", type=int, default=None, help="at most so many files")
    given = parser.parse_args()
    return 1 if run(given.seconds, given.first, given.files) else 0


if __name__ == "__main__":
    sys.exit(main())
