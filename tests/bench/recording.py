"""What recording costs: ``python tests/bench/recording.py [--models NAME …] [--calls]``.

For each model, the time of a step as it is captured; in a `Trainer` that records nothing, digests, gradients, or
digests and the ops of the first step; of a step that is replayed, with the model from a trace of digests, and from
recorded gradients alone; of one whose gradients are validated; of the hash alone, over the very arrays whose digests a
step has; and of writing its gradients alone. Rounds alternate; the table shows medians, in microseconds, beside what
each may take: digests the bare step, its hash and two microseconds, gradients their writing too, a trainer 1.05 times
the bare step, and a replay 1.3 times. ``--folder /dev/shm`` writes to memory. With ``--calls`` it is the Python calls
of a step that are counted instead, and in brackets those of them in the trace wing.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from time import perf_counter
from types import FrameType
from typing import Any

import numpy as np
from engines.dgrr_engine import captured
from engines.dgrr_models import loss_fn_of, renamed
from engines.models import LEARNING_RATE, MODELS, Batch, Model, Params, Transformer
from rich.console import Console
from rich.table import Table

from dgrr import trace
from dgrr.runtime import Adam, CapturedStep, Keep, Trainer
from dgrr.tape import get_threads, set_threads
from dgrr.tape.numerics.prepared.places import place_of
from dgrr.tape.numerics.prepared.prepared_calls import PreparedCalls
from dgrr.tape.numerics.xxh3.digests import Digests, Message

NAMES = ("8-8-8", "64-128-128-10", "784-512-512-10", "cnn-8x8", "transformer")
GPT = Transformer(symbols=64, tokens=64, width=128, heads=4, hidden=512, blocks=4, batch=16, goal=0)
RECORDED: dict[str, Model] = {**{name: MODELS[name] for name in NAMES}, "gpt-4x128": GPT}
WARM = 5
"""Steps of each run before its time is taken."""
ALLOWED = 2e-6
"""Seconds that recording a step may take besides hashing."""
WING = str(Path(trace.__file__).parent)
FEWEST, MOST = 20, 5000
"""Steps of a round."""
MOST_WRITTEN = 1 << 28
"""Bytes that are written to measure that."""
FEW, MORE = 300, 2000
"""Steps of a run whose calls are counted, and those by which another is longer."""


@dataclass(eq=False)
class Case:
    """A model, and the folder of the traces of its runs."""

    model: Model
    folder: Path

    @cached_property
    def step(self) -> CapturedStep:
        """The bare step, once run."""
        step = captured(self.model, self.model.params())
        step(self.batches[0])
        return step

    @cached_property
    def batches(self) -> list[Batch]:
        """Those that are taken in turn."""
        return self.model.batches()

    @cached_property
    def params(self) -> Params:
        """Start values."""
        return renamed(self.model.params())

    def stream(self, steps: int) -> list[Batch]:
        """A batch for each step."""
        return list(islice(cycle(self.batches), steps))

    def fit(self, steps: int, keep: Keep | None = None) -> Trainer:
        """A run of so many steps."""
        trainer = Trainer(loss_fn_of(self.model), self.params, Adam(LEARNING_RATE), trace=keep)
        trainer.fit(self.stream(steps), progress=False)
        return trainer

    def keep(self, name: str) -> Keep:
        """What is kept of a run of a column."""
        chosen: dict[str, Any] = {"digest": {"record": "digest"}, "ops": {"record": "digest", "ops": "first"}}
        return Keep(self.folder / name, overwrite=True, **chosen.get(name, {"record": "grads"}))


def bare(case: Case, steps: int) -> float:
    """Seconds of a captured step."""
    step, batches = case.step, case.stream(steps)
    began = perf_counter()
    for batch in batches:
        step(batch)
    return (perf_counter() - began) / steps


def hashed(case: Case, steps: int) -> float:
    """Seconds that it takes to digest what a step has digests of."""
    program = PreparedCalls(Digests(messages(case)))
    program.run()
    began = perf_counter()
    for _ in range(steps):
        program.run()
    return (perf_counter() - began) / steps


def messages(case: Case) -> list[Message]:
    """The arrays of a step, each with as long a head as a digest has."""
    step, out = case.step, np.zeros(16, np.uint8)
    arrays = (*case.batches[0], *step.consumed.values(), *step.params.values(), *step.state.values())
    heads = [np.zeros(8 + 8 * array.ndim, np.uint8) for array in arrays]
    return [Message(h, a.nbytes, out, place_of(a), numbers=a.dtype) for h, a in zip(heads, arrays, strict=True)]


def written(case: Case, steps: int) -> float:
    """Seconds that it takes to write the gradients of a step."""
    grads = [array.data.cast("B") for array in case.step.consumed.values()]
    steps = min(steps, max(FEWEST, MOST_WRITTEN // sum(map(len, grads))))
    with (case.folder / "written").open("wb", buffering=0) as file:
        began = perf_counter()
        for _ in range(steps):
            os.writev(file.fileno(), grads)
        return (perf_counter() - began) / steps


def validated(case: Case, steps: int) -> float:
    """Seconds of a step more whose gradients are validated."""
    found = list[float]()
    for n in (WARM, WARM + steps):
        case.fit(n, case.keep("grads"))
        began = perf_counter()
        if not trace.validate(case.folder / "grads").ok:
            raise SystemExit("the trace of gradients is not valid")
        found.append(perf_counter() - began)
    return (found[1] - found[0]) / steps


def of_fit(name: str | None) -> Callable[[Case, int], float]:
    """Seconds of a step of a run, from one that was told to the last: the beginning and the end are left out."""

    def seconds(case: Case, steps: int) -> float:
        told = case.fit(steps + WARM, None if name is None else case.keep(name)).history.steps["seconds"]
        first = int(np.searchsorted(told, told[WARM - 1], "right")) - 1  # the last of those told together
        return float(told[-1] - told[first]) / (len(told) - 1 - first)

    return seconds


def of_replay(name: str) -> Callable[[Case, int], float]:
    """Seconds of a step more that is replayed."""

    def seconds(case: Case, steps: int) -> float:
        few, many = (replayed(case, name, n) for n in (WARM, WARM + steps))
        return (many - few) / steps

    return seconds


def replayed(case: Case, name: str, steps: int) -> float:
    """Seconds that the replay of a run takes: of digests with the model, of gradients from these alone."""
    case.fit(steps, case.keep(name))
    model = {"loss_fn": loss_fn_of(case.model), "batches": case.stream(steps)} if name == "digest" else {}
    began = perf_counter()
    report = trace.replay(case.folder / name, **model)
    took = perf_counter() - began
    if not report.ok:
        raise SystemExit(f"the replay of {name} did not hold: {report}")
    return took


COLUMNS: dict[str, Callable[[Case, int], float]] = {
    "bare": bare,
    "hash": hashed,
    "written": written,
    "trainer": of_fit(None),
    "digest": of_fit("digest"),
    "grads": of_fit("grads"),
    "ops": of_fit("ops"),
    "replay with model": of_replay("digest"),
    "replay of grads": of_replay("grads"),
    "validate": validated,
}


def allowed(name: str, found: dict[str, float]) -> float | None:
    """Seconds that a column may take, by others; None where nothing is said of it."""
    recorded = found["bare"] + found["hash"] + ALLOWED
    of_bare = {"trainer": 1.05, "replay with model": 1.3, "replay of grads": 1.3}
    own = {"digest": recorded, "ops": recorded, "grads": recorded + found["written"]}
    return own.get(name, of_bare[name] * found["bare"] if name in of_bare else None)


def times(case: Case, rounds: int, seconds: float) -> dict[str, float]:
    """The median seconds of a step by column; in each round a column has about so many seconds."""
    once = bare(case, FEWEST)
    steps = min(MOST, max(FEWEST, round(seconds / once)))
    found = [{name: column(case, steps) for name, column in COLUMNS.items()} for _ in range(rounds)]
    return {name: median(row[name] for row in found) for name in COLUMNS}


# Python calls.


@contextmanager
def counting(found: Counter[str]) -> Iterator[None]:
    """Count the Python functions that are called, by the file that they stand in."""

    def note(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            found[frame.f_code.co_filename] += 1

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


def calls(act: Callable[[int], object]) -> tuple[float, float]:
    """Of each step more of a run, the Python calls, and those of them in the trace wing."""
    few, many = Counter[str](), Counter[str]()
    for found, n in ((Counter[str](), FEW), (few, FEW), (many, FEW + MORE)):  # the first compiles
        with counting(found):
            act(n)
    many.subtract(few)
    own = sum(count for file, count in many.items() if WING in file)
    return many.total() / MORE, own / MORE


def counted(case: Case) -> dict[str, tuple[float, float]]:
    """Python calls by column."""
    acts: dict[str, Callable[[int], object]] = {"bare": lambda n: bare(case, n), "trainer": case.fit}
    for name in ("digest", "grads", "ops"):
        acts[name] = lambda n, name=name: case.fit(n, case.keep(name))
    acts |= {f"replay of {name}": lambda n, name=name: replayed(case, name, n) for name in ("digest", "grads")}
    found = {name: calls(act) for name, act in acts.items()}
    for name in ("digest", "grads"):  # a step is recorded before it is replayed
        found[f"replay of {name}"] = _less(found[f"replay of {name}"], found[name])
    return found


def _less(both: tuple[float, float], one: tuple[float, float]) -> tuple[float, float]:
    return both[0] - one[0], both[1] - one[1]


# Tables.


def shown_times(name: str, case: Case, found: dict[str, float]) -> Table:
    """The times of a model."""
    nbytes = sum(message.nbytes for message in messages(case))
    grads = sum(grad.nbytes for grad in case.step.consumed.values())
    rates = {
        "hashed": nbytes / found["hash"],
        "written": grads / found["written"],
        "validated": grads / found["validate"],
    }
    said = ", ".join(f"{what} at {rate / 1e9:.1f} GB/s" for what, rate in rates.items())
    title = f"{name}: {nbytes / 1e6:.3f} MB, of them {grads / 1e6:.3f} gradients, {said}, {get_threads()} threads"
    table = Table("", "us", "over bare", "over what it may take", title=title)
    for column, seconds in found.items():
        most = allowed(column, found)
        over = "" if most is None else f"{seconds / most:.2f}"
        table.add_row(column, f"{seconds * 1e6:.2f}", f"{seconds / found['bare']:.2f}", over)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=RECORDED, default=list(RECORDED))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each column in a round")
    parser.add_argument("--threads", type=int, default=get_threads())
    parser.add_argument("--folder", type=Path, help="where traces are written; default: a temporary one")
    parser.add_argument("--calls", action="store_true", help="count Python calls instead")
    args = parser.parse_args()
    set_threads(args.threads)
    console = Console()
    for name in args.models:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            case = Case(RECORDED[name], Path(folder))
            if args.calls:
                every = counted(case).items()
                console.print(f"{name}:", ", ".join(f"{column} {n:.1f} ({own:.1f})" for column, (n, own) in every))
            else:
                console.print(shown_times(name, case, times(case, args.rounds, args.seconds)))


if __name__ == "__main__":
    main()
