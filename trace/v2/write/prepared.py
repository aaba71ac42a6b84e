"""The fronts of steps, each made in one compiled call, whose places are decided at the first step of its kind."""

import struct
from collections.abc import Iterator, Sequence
from math import prod
from operator import attrgetter, is_
from typing import Any

import numpy as np

from ....base.arrays import Array
from ....base.completed_step import CompletedStep
from ....tape.numerics.xxh3.constants import DIGEST
from ....tape.numerics.xxh3.digests import Digests, Message
from ..format.constants import TAG_DATA, TAG_ROOT, U32
from ..format.digest import batch_arrays, dtype_name, preamble
from ..format.layout import FrameLayout
from ..format.step import StepScalars, bitmap
from .tensors import RecordedTensor, RecordedTensors

KINDS = 64
"""How many kinds of steps are kept prepared; with more, as batches of ever other shapes make them, all begin anew."""

_KIND = attrgetter("dtype", "shape")
_BEFORE = struct.Struct("<16sQ")
_NOTHING = np.zeros(0, np.uint8)


class PreparedFront:
    """The front of the steps of one kind: the same gradients, batches alike, the state digested or not.

    Args:
        layout: where everything stands in the front.
        present: the positions of the params that have a gradient.
        names, batch: the arrays of one of the batches, in the order in which they are digested.
        tensors: in the order of the front: gradients, buffers, then all params and state if due.
        due: whether the state is digested.
    """

    def __init__(
        self,
        layout: FrameLayout,
        present: Sequence[int],
        names: Sequence[bytes],
        batch: Sequence[Array],
        tensors: Sequence[RecordedTensor],
        *,
        due: bool,
    ) -> None:
        self._layout, self._tensors = layout, tensors
        self._before = np.zeros(_BEFORE.size, np.uint8)
        self._front = front = np.zeros(layout.digests_at + DIGEST * (len(tensors) + due), np.uint8)
        front[layout.bitmap_at : layout.digests_at] = _bytes(bitmap(layout, present))
        root = _bytes(TAG_ROOT + bytes(DIGEST * (len(tensors) - len(present)))) if due else None
        data, places = _data_preimage(names)
        inputs = [_message(a.dtype, a.shape, data[at:][:DIGEST]) for a, at in zip(batch, places, strict=True)]
        digested = [Message(_NOTHING, data.nbytes, front[layout.input_at :][:DIGEST], data)]
        if root is not None:
            digested.append(Message(_NOTHING, root.nbytes, front[-DIGEST:], root))
        content = front[layout.scalars_at :]
        link = Message(self._before, content.nbytes, front[:DIGEST], content)
        self._digests = Digests([[*inputs, *self._messages(len(present), root)], digested, [link]])
        self._pointed: list[Array | None] = [None] * (len(batch) + len(tensors))

    def _messages(self, present: int, root: Array | None) -> Iterator[Message]:
        """The digests of the front. Those of the state go into what the root is of too, where buffers stand last."""
        for i, tensor in enumerate(self._tensors):
            again = None
            if root is not None and i >= present:
                place = (i - present - self._layout.schema.buffers) % (len(self._tensors) - present)
                again = root[len(TAG_ROOT) + DIGEST * place :][:DIGEST]
            out = self._front[self._layout.digests_at + DIGEST * i :][:DIGEST]
            yield _message(tensor.dtype, tensor.shape, out, again)

    def make(self, previous: bytes, step: int, scalars: StepScalars, arrays: Sequence[Array]) -> bytes | None:
        """The front of a step behind the link ``previous``; ``arrays`` are those of its batch, then its tensors.

        None, where an array is not as it is written: of another dtype, shape or order, or with an infinity or NaN.
        """
        if not all(map(is_, arrays, self._pointed)) and not self._point(arrays):
            return None
        _BEFORE.pack_into(self._before.data, 0, previous, step)
        scalars.put(self._layout, self._front)
        return None if self._digests.run() else self._front.tobytes()

    def _point(self, arrays: Sequence[Array]) -> bool:
        """Digest these arrays from now on; False if one of them is not as the format writes it."""
        inputs = len(arrays) - len(self._tensors)
        for i, array in enumerate(arrays):
            if array is self._pointed[i]:
                continue
            fits = i < inputs or self._tensors[i - inputs].fits(array)
            if not fits or not array.flags.c_contiguous or not array.dtype.isnative:
                return False
            self._digests.point(i, array)
            self._pointed[i] = array
        return True


def _bytes(data: bytes) -> Array:
    """Bytes as an array of its own."""
    return np.frombuffer(bytearray(data), np.uint8)


def _message(dtype: np.dtype[Any], shape: Sequence[int], out: Array, again: Array | None = None) -> Message:
    head = _bytes(preamble(dtype_name(dtype), shape))
    return Message(head, dtype.itemsize * prod(shape), out, again=again, numbers=dtype)


def _data_preimage(names: Sequence[bytes]) -> tuple[Array, list[int]]:
    """What the digest of a batch is of, and where in it the digests of its arrays go."""
    parts, places = [TAG_DATA, U32.pack(len(names))], list[int]()
    for name in names:
        parts += (U32.pack(len(name)), name)
        places.append(sum(map(len, parts)))
        parts.append(bytes(DIGEST))
    return _bytes(b"".join(parts)), places


class PreparedFronts:
    """The fronts of the steps of a run, prepared kind by kind."""

    def __init__(self, layout: FrameLayout, tensors: RecordedTensors) -> None:
        self._layout, self._tensors = layout, tensors
        self._known: dict[Any, PreparedFront] = {}

    def make(
        self,
        previous: bytes,
        done: CompletedStep,
        scalars: StepScalars,
        present: Sequence[int],
        arrays: Sequence[Array],
        *,
        due: bool,
    ) -> bytes | None:
        """The front of a step behind the link ``previous``, or None where `PreparedFront.make` makes none.

        ``arrays`` are the gradients of the params that are ``present``, buffers, and params and state if ``due``.
        """
        names, batch = batch_arrays(done.batch)
        key = (due, present, names, *map(_KIND, batch))
        prepared = self._known.get(key)
        if prepared is None:
            if len(self._known) == KINDS:
                self._known.clear()
            tensors = self._tensors.in_front(present, due=due)
            prepared = PreparedFront(self._layout, present, names, batch, tensors, due=due)
            self._known[key] = prepared
        return prepared.make(previous, done.step, scalars, (*batch, *arrays))
