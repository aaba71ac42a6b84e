"""Sealed traces of many steps, of one number each: written frame by frame, since nothing of them is computed."""

from pathlib import Path

import numpy as np

from dgrr.trace import open_trace
from dgrr.trace.v2.format.constants import BATCH_ID_LENGTH, StepFlag
from dgrr.trace.v2.format.digest import state_root
from dgrr.trace.v2.format.frames import KEYFRAME
from dgrr.trace.v2.format.step import StepRecord, encode_step
from dgrr.trace.v2.write.writer import TraceWriter

from ...keeping import recorder_of


def long_trace(path: Path, steps: int, *, differs_from: int | None = None) -> Path:
    """A bare trace of so many steps; from `differs_from` on, the loss of each is another."""
    law = {"rule": "sgd@1", "hyperparameters": ["lr"], "numerics": 1, "record": "bare", "state_every": 1 << 20}
    model = path.with_name(f"{path.name}.model")
    recorder = recorder_of(model, params={"w": np.zeros(1)}, state={"step": np.array(0)}, **law)  # type: ignore[arg-type]
    recorder.seal()
    with open_trace(model) as trace:
        header, schema = trace.header, trace.schema
        digests = tuple(trace.keyframe_digests(0).values())
        environment = next(event.text for _, event in trace.events())
        writer = TraceWriter.create(path, header, schema, commit_every=None)
    _begin(writer, digests)
    writer.event("environment", environment)
    hash, layout = header.algorithm.hash, writer.layout
    zero = hash(b"")
    for k in range(steps):
        loss = np.array(0.5 if differs_from is None or k < differs_from else 0.25)
        due = layout.due(k)
        record = StepRecord(
            step=k,
            link=b"",
            batch_id=bytes(BATCH_ID_LENGTH),
            loss=loss,
            flags=StepFlag(0),
            micro_batches=1,
            clip=None,
            input_digest=zero,
            hyper=(0.1,),
            corrections=(),
            grads=(0,),
            digests=(zero, *(digests if due else ())),
            root=zero if due else None,
        )
        writer.step(encode_step(layout, writer.link, record), [])
    writer.seal()
    return path


def _begin(writer: TraceWriter, digests: tuple[bytes, ...]) -> None:
    root = state_root(writer.header.algorithm, digests)
    writer.keyframe(
        KEYFRAME.front(writer.layout).encode(generator=b"", cursor=b"", digests=digests, root=root), root, []
    )
