"""Valid traces that say anything: every CRC, digest, chain and root is right, whatever the values mean."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dgrr.tape import NUMERICS
from dgrr.trace.v2.format.constants import RecordMode, StepFlag, TensorRole
from dgrr.trace.v2.format.digest import NUMPY_DTYPES, Algorithm, InputDigest, canonical, raw, state_root, tensor_digest
from dgrr.trace.v2.format.frames import KEYFRAME
from dgrr.trace.v2.format.header import Header
from dgrr.trace.v2.format.limits import Limits
from dgrr.trace.v2.format.schema import Group, Schema, TensorSpec
from dgrr.trace.v2.format.step import StepRecord, encode_step
from dgrr.trace.v2.write.writer import TraceWriter

Arrays = dict[str, Any]
BATCH = (np.ones((2, 3)), np.zeros((2, 1)))
ALGORITHM = Algorithm.XXH3_128


@dataclass
class SaidStep:
    """What a file says of one step."""

    state: Arrays
    grads: Arrays = field(default_factory=dict[str, Any])
    hyper: Sequence[float] = ()
    corrections: Sequence[float] = ()
    clip: tuple[float, float] | None = None
    loss: Any = field(default_factory=lambda: np.array(1.0))
    micro_batches: int = 1
    batch: Any = BATCH


def spec(name: str, role: TensorRole, array: Any) -> TensorSpec:
    """How a schema describes an array."""
    dtype = next(short for short, dtype in NUMPY_DTYPES.items() if dtype == array.dtype)
    return TensorSpec(name, role, dtype, array.shape)


def write(
    path: Path,
    roles: dict[str, TensorRole],
    groups: Sequence[Group],
    start: Arrays,
    steps: Sequence[SaidStep],
    mode: RecordMode = RecordMode.GRADS,
    numerics: int = NUMERICS,
) -> Path:
    """A sealed trace of float32 or float64 params and whatever state."""
    schema = Schema(tuple(spec(name, role, start[name]) for name, role in roles.items()), tuple(groups))
    schema.check(Limits())
    header = Header(bytes(16), 0, 7, ALGORITHM, mode, 1, numerics, 1 << 26)
    writer = TraceWriter.create(path, header, schema)
    arrays = [canonical(start[name]) for name in roles]
    digests = [tensor_digest(ALGORITHM, array) for array in arrays]
    root = state_root(ALGORITHM, digests)
    writer.keyframe(
        KEYFRAME.front(writer.layout).encode(generator=b"", cursor=b"", digests=digests, root=root),
        root,
        [raw(array) for array in arrays if mode.has_keyframes],
    )
    for number, said in enumerate(steps):
        _step(writer, roles, number, said)
    writer.seal()
    return path


def _step(writer: TraceWriter, roles: dict[str, TensorRole], number: int, said: SaidStep) -> None:
    names = list(roles)
    grads = [canonical(said.grads[name]) for name in names if name in said.grads]
    after = {name: canonical(said.state[name]) for name in names}
    buffers = [after[name] for name in names if roles[name] is TensorRole.BUFFER]
    rest = [after[name] for name in names if roles[name] is not TensorRole.BUFFER]
    loss = np.asarray(said.loss)
    finite = np.isfinite(loss) and all(np.isfinite(grad).all() for grad in grads)
    clipped = StepFlag.CLIPPED if said.clip else StepFlag(0)
    record = StepRecord(
        step=number,
        link=b"",
        batch_id=bytes(16),
        loss=loss,
        flags=clipped if finite else clipped | StepFlag.NON_FINITE,
        micro_batches=said.micro_batches,
        clip=said.clip,
        input_digest=InputDigest(ALGORITHM)(said.batch),
        hyper=tuple(said.hyper),
        corrections=tuple(said.corrections),
        grads=tuple(i for i, name in enumerate(names) if name in said.grads),
        digests=tuple(tensor_digest(ALGORITHM, array) for array in (*grads, *buffers, *rest)),
        root=state_root(ALGORITHM, [tensor_digest(ALGORITHM, array) for array in (*rest, *buffers)]),
    )
    front = encode_step(writer.layout, writer.link, record)
    mode = writer.header.mode
    body = grads + buffers + (rest if mode is RecordMode.FULL else []) if mode.has_gradients else []
    writer.step(front, [raw(array) for array in body])
