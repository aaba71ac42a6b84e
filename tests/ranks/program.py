"""What the tests start on several ranks: ``mpiexec -n N python -m dgrr.runtime.ranks program.py COMMAND FOLDER``.

Without MPI, as ``python program.py COMMAND FOLDER``, it is the one process to which all others are compared. What a
rank found is written to ``FOLDER/RANK.json``.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from models import BATCH, MODELS, Model, model

from dgrr.runtime import Adam, Callback, Trainer
from dgrr.runtime.ranks import shards

EPOCHS, ACCUMULATE = 2, 11
"""66 digits are 22 batches of 3, two steps in an epoch; 11 is no multiple of 2, 3, 4 or 8."""
KILLED_AT, SAVED_EVERY = 3, 2
"""Steps that are done when a rank is killed, and the distance of checkpoints."""


class Reads:
    """Counts the samples that are read, by their first element."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *arrays: Any) -> Any:
        self.count += 1
        return arrays


class Slow(Callback):
    """Holds one rank up."""

    def on_step(self, trainer: Any, step: int, loss: float) -> None:
        time.sleep(0.05)


class Ends(Callback):
    """Ends this process, or raises, when so many steps are done."""

    def __init__(self, how: str) -> None:
        self.how = how

    def on_step(self, trainer: Any, step: int, loss: float) -> None:
        if step + 1 < KILLED_AT:
            return
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "exit":
            sys.exit("this rank has had enough")
        raise ValueError("a text that names what went wrong")


def trainer(made: Model, ranks: Any, **options: Any) -> Trainer:
    return Trainer(
        made.loss_fn,
        made.params,
        Adam(1e-2),
        model_state=made.model_state,
        seed=3,
        accumulate=ACCUMULATE,
        order="tree",
        ranks=ranks,
        **options,
    )


def batches(made: Model) -> Any:
    return made.data.batches(BATCH, seed=1)


def trained(folder: Path, name: str, dtype: str, ranks: Any, **options: Any) -> dict[str, Any]:
    """One run from beginning to end, recorded."""
    made, reads = model(name, dtype), Reads()
    noted = Model(made.loss_fn, made.params, made.model_state, made.data.map(reads))
    run = trainer(noted, ranks, trace=folder / f"{name}-{dtype}.dgrr", **options)
    held_out = made.data.take(20).batches(6) if name == "mlp" else None
    result = run.fit(batches(noted), epochs=EPOCHS if held_out else 1, validation=held_out)
    figures = result.history.epochs["validation_accuracy"].tolist() if held_out else []
    return {
        "digest": result.state_digest,
        "losses": [float(loss).hex() for loss in result.losses],
        "figures": [*figures, run.evaluate(made.data.batches(6)).hex() if held_out else None],
        "read": reads.count,
        "state": sum(array.nbytes for array in run.state.values()),
    }


def train(folder: Path, ranks: Any) -> dict[str, Any]:
    """Every model in both types; on three ranks one of them is slow."""
    slow = [Slow()] if ranks is not None and (ranks.rank, ranks.size) == (1, 3) else []
    return {
        f"{name} {dtype}": trained(folder, name, dtype, ranks, callbacks=slow)
        for name in MODELS
        for dtype in ("float32", "float64")
    }


def end(folder: Path, ranks: Any, how: str) -> dict[str, Any]:
    """A run of which rank 1 does not survive the second step."""
    ends = [Ends(how)] if ranks.rank == 1 else []
    options = {"checkpoint": folder / "run.ckpt", "checkpoint_every": SAVED_EVERY}
    return trained(folder, "mlp", "float32", ranks, callbacks=ends, **options)


def resume(folder: Path, ranks: Any) -> dict[str, Any]:
    """The same run from its checkpoint on."""
    made = model("mlp", "float32")
    run = trainer(made, ranks, trace=folder / "mlp-float32.dgrr", checkpoint=folder / "run.ckpt")
    run.load(folder / "run.ckpt")
    result = run.fit(batches(made), epochs=EPOCHS)
    return {"digest": result.state_digest, "steps": result.steps}


def exchange(folder: Path, ranks: Any) -> dict[str, Any]:
    """Rows of bytes to their owners, several of them under way at once: small, large, and with shards of no bytes."""
    size, rank = ranks.size, ranks.rank
    for round, counts in enumerate(([1] * size, [1 + (r % 3) for r in range(size)])):
        for bounds in ([64 * r for r in range(size + 1)], [0] * size + [192], [2**15 * r for r in range(size + 1)]):
            several = [
                [[drawn(bounds[-1], round, n, r, k) for k in range(count)] for r, count in enumerate(counts)]
                for n in range(3)
            ]
            waits = [ranks.scatter(rows[rank], bounds, counts) for rows in several]
            for rows, arrived in zip(several, [wait() for wait in waits], strict=True):
                expected = [row[bounds[rank] : bounds[rank + 1]].tolist() for of_rank in rows for row in of_rank]
                assert [part.tolist() for part in arrived] == expected
            rows = several[0]
            whole = np.zeros(bounds[-1], np.uint8)
            whole[bounds[rank] : bounds[rank + 1]] = rows[0][0][bounds[rank] : bounds[rank + 1]]
            own = whole[bounds[rank] : bounds[rank + 1]].copy()
            ranks.gather(whole, bounds)
            assert whole.tolist() == rows[0][0].tolist()
            assert ranks.collect(own, bounds).tolist() == (whole.tolist() if rank == 0 else [])
    values = np.array([rank, -rank, 2**62 + rank])
    ranks.largest(values)
    assert values.tolist() == [size - 1, 0, 2**62 + size - 1]
    return {"overlap": ranks.overlap}


def drawn(nbytes: int, *key: int) -> Any:
    return np.random.default_rng(key).integers(0, 256, nbytes).astype(np.uint8)


def main(command: str, place: str) -> None:
    ranks, shards.SEGMENT = None, 1 << 10  # small models are exchanged in several segments, as large ones are
    if "mpi4py.MPI" in sys.modules:  # which the launcher has begun
        from dgrr.runtime.ranks import init

        ranks = init()
    folder, found = Path(place), dict[str, Any]()
    for each in command.split("+"):
        if each == "train":
            found = train(folder, ranks)
        elif each == "resume":
            found = resume(folder, ranks)
        elif each == "exchange":
            for overlap in (True, False):
                exchange(folder, init(overlap=overlap))
        else:
            found = end(folder, ranks, each)
    (folder / f"{0 if ranks is None else ranks.rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
