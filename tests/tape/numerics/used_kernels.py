"""Which kernels are used with which dtypes, as JSON: a program that runs every op, derivative and optimizer.

What runs is a kernel that does nothing, so that this takes seconds where no kernel is compiled yet.
"""

import json
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import capture
from dgrr.runtime.optim import SGD, Adam, AdamW, Cosine, RMSprop, Rule, clip_by_global_norm, clip_by_value
from dgrr.runtime.optim.averages import Averages
from dgrr.tape import AnyTensor, ops, set_threads
from dgrr.tape.numerics.crc32.checksums import Checksum, Checksums
from dgrr.tape.numerics.engine.kernel import KERNELS, Kernel
from dgrr.tape.numerics.prepared.alike import Alike, BytePair
from dgrr.tape.numerics.prepared.given import Given
from dgrr.tape.numerics.prepared.moves import Appended, Counter, Move, Moves
from dgrr.tape.numerics.prepared.number_means import NumberMeans
from dgrr.tape.numerics.prepared.places import place_of
from dgrr.tape.numerics.prepared.prepared_calls import PreparedCalls
from dgrr.tape.numerics.xxh3.digests import LONG, Digests, Message
from dgrr.tape.ops import OPS
from dgrr.tape.record.samples import Make

from ...runtime.optim.made import RULES, SCHEDULES

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def does_nothing(table: Any, ints: Any, part: Any, parts: Any) -> Any:
    return 0


def find_used() -> dict[str, list[str]]:
    """The dtypes that each kernel is used with, in a process that computes nothing else."""
    found: dict[str, list[str]] = {name: [] for name in KERNELS}
    nothing = Kernel(does_nothing).address(FLOATS[0])

    def noted(kernel: Kernel, dtype: np.dtype[Any]) -> int:
        if dtype.name not in found[kernel.name]:
            found[kernel.name].append(dtype.name)
        return nothing

    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(Kernel, "address", noted)
        patch.setattr("dgrr.runtime.lower.bind.compile_side_by_side", lambda _: None)
        _run_everything()
    return found


def _run_everything() -> None:
    for op in OPS.values():
        for dtype in FLOATS:
            for sample in op.samples(Make(dtype)):
                inputs, attrs = op.bind(sample.arrays, sample.attrs)
                values = [None if x is None else AnyTensor(np.asarray(x)) for x in inputs]
                y = op.compute(values, attrs)
                if y.dtype in FLOATS:
                    op.pull(y, values, y, attrs, [x is not None and x.dtype in FLOATS for x in values])
    for dtype in FLOATS:
        for rule in rules():
            params = {"w": np.ones((3, 3), dtype)}
            rule.step(params, {"w": np.ones((3, 3), dtype)}, rule.init(params))
        Averages(0.5, ["w"]).step(params, {"ema/w": np.ones((3, 3), dtype)})
        clip_by_global_norm(params, 1.0)
        clip_by_value(params, 1.0)
        _captured(dtype)
    _digested()


def _digested() -> None:
    """What recorders and readers of traces run, on several threads."""
    set_threads(2)
    data, out = np.zeros(4 * LONG, np.uint8), np.zeros(16, np.uint8)
    digests = Digests([Message(data[:8], data.nbytes, out, place_of(data))])
    held, used, given = np.zeros(64, np.uint8), np.zeros(1, np.int64), Given([(data.dtype, data.shape)])
    given.take((data,))
    sums, moves = Checksums([Checksum(out, out[:4])]), Moves([Move(out, given.place(0))], [Counter(used)])
    alike = Alike([BytePair(out, out)])
    assert PreparedCalls(given, digests, sums, moves, Appended([(place_of(out), 16)], held, used), alike).run() == 0
    for dtype in (*FLOATS, np.dtype(np.int64), np.dtype(np.bool_)):
        number = np.ones((), dtype)
        assert PreparedCalls(NumberMeans(np.zeros(1), [[number, number]])).run() == 0


def rules() -> list[Rule]:
    """Each, and those whose kernel depends on what they are made with in every way."""
    both = (False, True)
    steps = [SGD(0.1, momentum, maximize=m) for momentum in (0.0, 0.9) for m in both]
    moments = [kind(amsgrad=a, maximize=m) for kind in (Adam, AdamW) for a in both for m in both]
    roots = [RMSprop(momentum=momentum, centered=c) for momentum in (0.0, 0.9) for c in both]
    return [*RULES, *map(SGD, SCHEDULES), *steps, *moments, *roots]


def _captured(dtype: np.dtype[Any]) -> None:
    """Compile a step with what only plans call: copies, chains, loops, choices, what is packed for loops, slices that
    are joined, the fused loss, a schedule, checks, a new state."""

    def loss_fn(p: Any, batch: Any, ctx: Any) -> Any:
        inputs, labels = batch
        hidden = ops.tanh(ops.scale(ops.linear(inputs, ops.concat(ops.split(p["w"], 2))), 2.0))
        loss = ops.cross_entropy(ops.linear(hidden, ops.relu(p["v"].T)), labels)
        last, _ = ops.scan(lambda c, x: (ops.tanh(ops.add(c, x @ p["s"].T)), c), inputs[0], inputs)
        last = ops.cond(last.sum() > 0.0, ops.neg, ops.relu, last)
        return loss, {"mean": ops.add(ops.reduce_mean(inputs, 0), last)}

    params = {"w": np.ones((8, 3), dtype), "v": np.ones((8, 4), dtype), "s": np.ones((3, 3), dtype)}
    batch = (np.ones((300, 3), dtype), np.zeros(300, np.int64))
    state = {"mean": np.ones(3, dtype)}
    step = capture(loss_fn, params, SGD(Cosine(0.1, 5)), batch, model_state=state, clip_norm=1.0, clip_value=1.0)
    called = {kernel.name for kernel in step.with_kernel("gemm", "reference").lowered.kernels()}
    assert {
        "snapshot",
        "assign",
        "copy",
        "chain",
        "loop",
        "choice",
        "finite",
        "cosine_rate",
        "join_columns",
        "cross_entropy_rows_with_grad",
        "gemm_reference",
        "pack_panels",
    } <= called


if __name__ == "__main__":
    print(json.dumps(find_used()))
