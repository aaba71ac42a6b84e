"""The fronts of the steps of one kind, each made by one compiled call whose places are all decided beforehand."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from .....base.arrays import Array
from .....base.runs.completed_step import CompletedStep
from .....tape.numerics.prepared.given import Given
from .....tape.numerics.prepared.moves import Counter, Move, Moves
from .....tape.numerics.prepared.places import BytePlace, address_of, place_of
from .....tape.numerics.prepared.prepared_calls import PreparedCalls, PreparedPart
from .....tape.numerics.xxh3.constants import DIGEST
from .....tape.numerics.xxh3.digests import Digests, Message
from ...format.constants import TAG_DATA, TAG_ROOT, U32
from ...format.digest import Batch, batch_arrays, dtype_name, preamble
from ...format.fields import bitmap
from ...format.layout import FrameLayout
from ...format.step import STEP, StepScalars
from ...read.prepared.prepared_head import own_bytes, whole, zeros
from ..scalar_names import ScalarNames, step_flags
from ..tensors import RecordedTensors

ArrayKind = tuple[np.dtype[Any], tuple[int, ...]]
"""A dtype and a shape."""

MOST = 64
"""How many steps may be made in one launch."""

_THRESHOLD = STEP.packed("threshold", "threshold")
_SCALE: ArrayKind = (np.dtype(np.float64), ())


class StepKind(NamedTuple):
    """What steps of one kind have in common, besides what the trace says.

    Args:
        due: whether the state is digested.
        grads: the names of the gradients, as a step has them.
        plain: whether a batch is a tuple of arrays.
        names, batch: its arrays, in the order in which they are digested.
    """

    due: bool
    grads: tuple[str, ...]
    clipped: bool
    micro_batches: int
    order: str
    loss: ArrayKind
    plain: bool
    names: tuple[bytes, ...]
    batch: tuple[ArrayKind, ...]


class PreparedFront:
    """Makes the fronts of STEPs of one kind: scalars, digests and link in one launch.

    Args:
        kind: of the steps.
        layout, names, tensors: of the trace.
        link, step: arrays that hold the link of the step before, and the number of the next one.
        before: bytes that are left free in front of the front.
    """

    def __init__(
        self,
        kind: StepKind,
        layout: FrameLayout,
        names: ScalarNames,
        tensors: RecordedTensors,
        link: Array,
        step: Array,
        before: int = 0,
    ) -> None:
        self._kind, self._layout, self._link, self._step, self._bound = kind, layout, link, step, names.bound
        self._declared = STEP.front(layout)
        present = tensors.present(kind.grads)
        self._present, self._tensors = len(present), tensors.in_front(present, due=kind.due)
        corrections = tensors.state_kinds(names.corrections)
        arrays = [kind.loss, *kind.batch, *((t.dtype, t.shape) for t in self._tensors), *corrections]
        given = [*arrays, *[_SCALE] * kind.clipped]
        self._given, self._nbytes = Given(given), [dtype.itemsize * prod(shape) for dtype, shape in given]
        self._first, self._scale_at = 1 + len(kind.batch), len(arrays)
        self._corrections = range(len(arrays) - len(corrections), len(arrays))
        self.body = slice(self._first, self._first + layout.recorded(len(self._tensors), due=kind.due))
        """Which of the arrays of a step have their elements recorded."""
        self._lay_out(present, before)
        self._values_by_name(names, tensors)

    # ------------------------------------------------------------------ what stays

    def _lay_out(self, present: Sequence[int], before: int) -> None:
        """Make the front, with all that is the same in every step."""
        kind, declared = self._kind, self._declared
        self._memory = zeros(before + declared.fixed + DIGEST * (len(self._tensors) + kind.due))
        self._front = self._memory[before:]
        self.front: memoryview = self._front.data
        """The front of the last step."""
        flags = step_flags(clipped=kind.clipped, order=kind.order, micro_batches=kind.micro_batches)
        scalars = StepScalars(np.zeros((), kind.loss[0]), flags, kind.micro_batches, None, ())
        scalars.put(declared.at, self.front)
        self._front[declared.places["grads"]] = own_bytes(bitmap(present, self._layout.schema.params))
        self._before_link = zeros(DIGEST + self._step.nbytes)
        self._data, self._data_places = _data_preimage(kind.names)
        self._root = own_bytes(TAG_ROOT + bytes(DIGEST * (len(self._tensors) - self._present))) if kind.due else None

    def _values_by_name(self, names: ScalarNames, tensors: RecordedTensors) -> None:
        """What takes the arrays, and the hyperparameters, from what a recorder is told."""
        kind = self._kind
        buffers, params, state = tensors.names
        self._said = (len(kind.grads), kind.clipped, kind.micro_batches, kind.order)
        self._batch = _flattened(kind)
        self._grads = _values([params[i] for i in tensors.present(kind.grads)])
        self._buffers, self._params = _values(buffers), _values(params if kind.due else [])
        self._state = _values([*(state if kind.due else []), *names.corrections])
        self._hyper = _values(names.hyperparameters)
        self._numbers = struct.Struct(f"<{len(names.bound) + len(names.hyperparameters)}d")
        self._told, self._told_at = zeros(MOST * self._numbers.size), np.zeros(1, np.int64)
        self._told_bytes, self._told_address = self._told.data, address_of(self._told)

    # ------------------------------------------------------------------ the program

    @cached_property
    def _program(self) -> PreparedCalls:
        return PreparedCalls(*self._parts())

    @cached_property
    def _taking(self) -> PreparedCalls:
        """What looks at the arrays alone."""
        return PreparedCalls(self._given)

    def _parts(self) -> Iterator[PreparedPart]:
        """What is done, in turn: first the arrays are looked at."""
        yield self._given
        yield self._scalars()
        yield Digests([*self._inputs(), *self._digested(), *self._looked_at()])
        yield from self._joined()

    def _scalars(self) -> Moves:
        """What was before the step and what it is told, into their places."""
        front, at = self._front, self._declared.at
        moves = [
            Move(self._before_link[:DIGEST], place_of(self._link)),
            Move(self._before_link[DIGEST:], place_of(self._step)),
            Move(front[at["loss"] :][: self._nbytes[0]], self._given.place(0)),
            Move(front[at["hyper"] :][: self._numbers.size], BytePlace(address_of(self._told_at), self._told_at)),
        ]
        begin = at["corrections"]
        for i in self._corrections:
            moves.append(Move(front[begin:][: self._nbytes[i]], self._given.place(i)))
            begin += self._nbytes[i]
        if self._kind.clipped:
            moves.append(Move(front[self._declared.places["scale"]], self._given.place(self._scale_at)))
        return Moves(moves)

    def _inputs(self) -> Iterator[Message]:
        """The digests of the arrays of the batch."""
        for i, (array, at) in enumerate(zip(self._kind.batch, self._data_places, strict=True)):
            yield _message(array, self._given.place(1 + i), self._data[at:][:DIGEST])

    def _digested(self) -> Iterator[Message]:
        """The digests of the front. Those of the state go into what the root is of too, where buffers stand last."""
        for i, tensor in enumerate(self._tensors):
            again = None
            if self._root is not None and i >= self._present:
                place = (i - self._present - self._layout.schema.buffers) % (len(self._tensors) - self._present)
                again = self._root[len(TAG_ROOT) + DIGEST * place :][:DIGEST]
            out = self._front[self._declared.fixed + DIGEST * i :][:DIGEST]
            yield _message((tensor.dtype, tensor.shape), self._given.place(self._first + i), out, again)

    def _looked_at(self) -> Iterator[Message]:
        """What must be finite, and of which nobody asks for a digest: the loss, and the scale."""
        yield _message(self._kind.loss, self._given.place(0), zeros(DIGEST))
        if self._kind.clipped:
            yield _message(_SCALE, self._given.place(self._scale_at), zeros(DIGEST))

    def _joined(self) -> Iterator[Digests]:
        """The digests of digests: of the batch and of the state, and then the link of the state chain."""
        joined = [whole(self._data, self._front[self._declared.places["input_digest"]])]
        if self._root is not None:
            joined.append(whole(self._root, self._front[-DIGEST:]))
        yield Digests(joined)
        content = self._front[self._declared.at[STEP.chained] :]
        yield Digests([Message(self._before_link, content.nbytes, self._front[:DIGEST], place_of(content))])

    def _counted(self) -> Moves:
        """The state chain goes on, and the count, and what is told."""
        told = Counter(self._told_at, self._numbers.size)
        return Moves([Move(self._link, place_of(self._front))], [Counter(self._step), told])

    # ------------------------------------------------------------------ a step

    def run(self, done: CompletedStep) -> tuple[Array, ...] | None:
        """Make the front of a step: the arrays that it is of.

        None, with nothing done, where it is none of this kind, or an array is not as it is written: of another dtype,
        shape or order, or with an infinity or NaN.
        """
        arrays = self.arrays(done, None if done.clip is None else np.asarray(done.clip[1], np.float64))
        if arrays is None:
            return None
        self._tell(done.clip, [done.hyper])
        self._given.take(arrays)
        return None if self._program.run() else arrays

    def rows(self, first: CompletedStep, hyper: Sequence[Mapping[str, float]], scale: Array | None) -> Array | None:
        """Rows of the machine that make those of steps in turn, each run behind its step; at most `MOST`.

        All have the arrays of the first, the scale of clipping where it lies, and each its hyperparameters. None, where
        that one is of another kind.
        """
        arrays = self.arrays(first, scale)
        if arrays is None:
            return None
        self._given.take(arrays)
        if self._taking.run():
            return None
        self._tell(first.clip, hyper)
        return self._program.rows()[1:]

    def arrays(self, done: CompletedStep, scale: Array | None) -> tuple[Array, ...] | None:
        """The arrays of a step, the scale behind them; None if it is of another kind."""
        batch = self._batch(done.batch)
        if batch is None or self._said != (len(done.grads), scale is not None, done.micro_batches, done.order):
            return None
        try:
            arrays = (np.asarray(done.loss), *batch, *self._grads(done.grads))
            if self._layout.schema.buffers:
                arrays += self._buffers(done.model_state)
            if self._kind.due:
                arrays += self._params(done.params)
            arrays += self._state(done.state)
        except KeyError:
            return None
        return arrays if scale is None else (*arrays, scale)

    def _tell(self, clip: tuple[float, float] | None, hyper: Sequence[Mapping[str, float]]) -> None:
        """The threshold of the next steps, and the hyperparameters of each."""
        if clip is not None:
            _THRESHOLD.pack_into(self.front, self._declared.at["threshold"], clip[0])
        told, size = self._told, self._numbers.size
        alike = len(hyper) > 1 and len(set(map(id, hyper))) == 1  # as where no schedule says otherwise
        for i, each in enumerate(hyper[:1] if alike else hyper):
            self._numbers.pack_into(self._told_bytes, i * size, *self._bound, *self._hyper(each))
        if alike:
            told.reshape(MOST, size)[1 : len(hyper)] = told[:size]
        self._told_at[0] = self._told_address


def _values(names: Sequence[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """What takes the values of some names from a mapping."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda found: tuple([found[name] for name in names])


def _flattened(kind: StepKind) -> Callable[[Batch], Sequence[Array] | None]:
    """What gives the arrays of a batch of a kind in the order in which they are digested; None for a batch of another.

    Whether they are arrays, and of its dtypes and shapes, is not asked.
    """
    if kind.plain:
        count = len(kind.batch)
        return lambda batch: batch if isinstance(batch, tuple) and len(batch) == count else None
    return lambda batch: found[1] if (found := batch_arrays(batch))[0] == kind.names else None


def _message(kind: ArrayKind, place: BytePlace, out: Array, again: Array | None = None) -> Message:
    dtype, shape = kind
    head = own_bytes(preamble(dtype_name(dtype), shape))
    return Message(head, dtype.itemsize * prod(shape), out, place, again, numbers=dtype)


def _data_preimage(names: Sequence[bytes]) -> tuple[Array, list[int]]:
    """What the digest of a batch is of, and where in it the digests of its arrays go."""
    parts, places = [TAG_DATA, U32.pack(len(names))], list[int]()
    for name in names:
        parts += (U32.pack(len(name)), name)
        places.append(sum(map(len, parts)))
        parts.append(bytes(DIGEST))
    return own_bytes(b"".join(parts)), places
