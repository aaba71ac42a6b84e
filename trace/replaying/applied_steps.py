"""Steps of a recorded run done again by their recorded gradients, many in one launch: updates and all digests."""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import islice, takewhile
from typing import NamedTuple

import numpy as np

from ...base.arrays import Array
from ...base.errors import DgrrError
from ...base.runs.completed_step import of_group
from ...runtime.captured.captured_update import CapturedUpdate
from ...runtime.optim.groups import Groups
from ...runtime.step.memory import line_aligned
from ...tape.numerics.prepared.alike import Alike, BytePair
from ...tape.numerics.prepared.moves import Move, Moves
from ...tape.numerics.prepared.places import place_of
from ...tape.numerics.prepared.prepared_calls import Copied, PreparedCalls, PreparedPart
from ...tape.numerics.xxh3.constants import DIGEST
from ...tape.numerics.xxh3.digests import Digests, Message
from ..v2.errors import InvalidTraceError
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Algorithm, TensorDigest, numpy_dtype, preamble
from ..v2.format.schema import TensorSpec
from ..v2.format.step import STEP
from ..v2.read.reader import TraceReader
from ..v2.read.step_view import StepView
from ..v2.write.tensors import CORRECTIONS
from .recorded_recipe import CannotPrepareError, RecordedRecipe, RulesOfSteps
from .replay_state import ReplayState, Rules, by_name

MOST, WINDOW = 64, 1 << 20
"""How many steps, and bytes of what is recorded of them, are one launch."""


class AppliedLaunch(NamedTuple):
    """So many steps were done."""

    steps: int
    agree: bool
    """Whether gradients and all that they make have the digests that are recorded of the last; those before have."""


class AppliedSteps:
    """Applies the steps of a trace in turn.

    Steps of a kind - the same gradients, the state digested or not - are prepared when one of them was done op by op,
    which finds whatever does not fit.

    Args:
        state: before the first of them.
        rules: classes that users wrote.
    """

    def __init__(self, trace: TraceReader, state: ReplayState, rules: Rules) -> None:
        self._trace, self._state = trace, state
        self._rules = RulesOfSteps(trace, by_name(rules))
        places = STEP.front(trace.layout).places
        self._grads_at, self._hyper_at = places["grads"], places["hyper"]
        self._known: dict[tuple[bytes, bool], _Kind | None] = {}
        self._groups: Groups | None = None
        self._held = 0
        self.grads: dict[str, Array] = {}
        """The gradients of the last step: views that are valid until the next one."""

    def several(self, views: Sequence[StepView]) -> AppliedLaunch | None:
        """Do the first of some steps, as many as one launch can have.

        None, and nothing done, where no step like the first was prepared. Raises InvalidTraceError where its gradients
        cannot be read.
        """
        kind = self._known.get(self._key(views[0])) if self._held == self._state.held else None
        if kind is None or not self._same_rules(views[0]):
            return None
        self.grads = kind.grads
        return kind.several(list(takewhile(partial(self._are_alike, views[0]), islice(views, kind.most))))

    def _are_alike(self, first: StepView, view: StepView) -> bool:
        """Whether a step is of the kind of another, by the same numbers of its rules."""
        return view.front[self._hyper_at] == first.front[self._hyper_at] and self._key(view) == self._key(first)

    def _same_rules(self, view: StepView) -> bool:
        """Whether the rules of a step, its rates told to them, are those that were prepared."""
        try:
            return self._rules.of(view) is self._groups
        except DgrrError:
            return False

    def prepare(self, view: StepView) -> None:
        """Have steps like this one, which was done, be prepared from now on, if they can be."""
        key = self._key(view)
        try:
            groups = self._rules.of(view)
            if groups is not self._groups or self._state.held != self._held:
                self._known, self._groups, self._held = {}, groups, self._state.held
            if key not in self._known:
                self._known[key] = None
                self._known[key] = _Kind(self._trace, self._state, groups, view)
        except Exception:  # a user's rule may raise anything: its steps are done op by op
            return

    def _key(self, view: StepView) -> tuple[bytes, bool]:
        return view.front[self._grads_at], self._trace.layout.due(view.step)


class _Kind:
    """The steps of a kind."""

    def __init__(self, trace: TraceReader, state: ReplayState, groups: Groups, view: StepView) -> None:
        tensors = trace.schema.tensors
        grads, buffers, self._body = _in_body(trace, view)
        self.grads = {tensors[i].name: array for i, array in grads.items()}
        """Those of the last step: views that are valid until the next one."""
        recipe = RecordedRecipe(groups.groups[0].rule, made=groups)
        params, states = map(state.of_role, (TensorRole.PARAM, TensorRole.STATE))
        after = [*buffers, *(range(trace.layout.states) if view.root is not None else ())]
        made = [(tensors[i], array) for i, array in grads.items()]
        made += [(tensors[i], state.values[tensors[i].name]) for i in after]
        declared, self._algorithm = STEP.front(trace.layout), trace.header.algorithm
        digests = slice(declared.fixed, declared.fixed + trace.layout.digest_size * len(made))
        self._at = (digests, declared.places["corrections"])
        self._made, self._corrections = made, _corrections(trace, state)
        self._recorded = np.empty(sum(at.stop - at.start for at in self._at), np.uint8)
        update = CapturedUpdate(recipe, params, states, self.grads)
        moved = [Move(_flat(state.values[tensors[i].name]), place_of(array)) for i, array in buffers.items()]
        self._proves = self._algorithm is Algorithm.XXH3_128
        self._program = PreparedCalls(update, Moves(moved), *(self._held() if self._proves else ()))
        self._copied = Copied([(np.frombuffer(self._body, np.uint8), 0), (self._recorded, len(self._body))])
        self._stride = len(self._body) + len(self._recorded)
        self.most = max(1, min(MOST, WINDOW // self._stride)) if self._proves else 1
        """How many steps one launch can have."""

    def _held(self) -> Iterator[PreparedPart]:
        """What holds all that was made against what is recorded of it."""
        digests = self._at[0].stop - self._at[0].start
        out = np.empty(digests, np.uint8)
        yield Digests([_message(*each, out[DIGEST * i :][:DIGEST]) for i, each in enumerate(self._made)])
        pairs, at = [BytePair(out, self._recorded[:digests])], digests
        for array in self._corrections:
            pairs.append(BytePair(array, self._recorded[at:][: array.nbytes]))
            at += array.nbytes
        if at != len(self._recorded):
            raise CannotPrepareError
        yield Alike(pairs)

    @cached_property
    def _window(self) -> Array:
        """What is read of the steps of a launch."""
        return np.empty(self.most * self._stride, np.uint8)

    def several(self, views: Sequence[StepView]) -> AppliedLaunch:
        """Do steps. Raises InvalidTraceError where the body of the first cannot be read."""
        if len(views) == 1:
            self._read(views[0], self._body, self._recorded.data)
            agree = not self._program.run() and self._proves
            return AppliedLaunch(1, agree=agree or self._agrees(views[0]))
        places = self._stride * np.arange(self._read_ahead(views))
        done = self._program.run_on(self._copied.of(self._window, places), len(places))
        if done == len(places):
            return AppliedLaunch(done, agree=True)
        return AppliedLaunch(done + 1, agree=self._agrees(views[done]))

    def _read_ahead(self, views: Sequence[StepView]) -> int:
        """Read steps into the window, up to the first that cannot be: how many."""
        for i, view in enumerate(views):
            memory = self._window[self._stride * i :][: self._stride].data
            try:
                self._read(view, memory[: len(self._body)], memory[len(self._body) :])
            except InvalidTraceError:
                if not i:
                    raise
                return i
        return len(views)

    def _read(self, view: StepView, body: memoryview, recorded: memoryview) -> None:
        view.body_into(body)
        recorded[:] = b"".join([view.front[at] for at in self._at])

    def _agrees(self, view: StepView) -> bool:
        """The same as the program finds, of the step just done, by its parts."""
        digests = [TensorDigest(self._algorithm, spec.dtype, spec.shape)(array) for spec, array in self._made]
        corrections = [array.tobytes() for array in self._corrections]
        return [view.front[at] for at in self._at] == [b"".join(digests), b"".join(corrections)]


def _flat(array: Array) -> Array:
    """The bytes of an array. Raises CannotPrepareError for one that does not lie as kernels take it."""
    if not array.flags.c_contiguous:
        raise CannotPrepareError
    return array.reshape(-1).view(np.uint8)


def _message(spec: TensorSpec, array: Array, out: Array) -> Message:
    head = np.frombuffer(bytearray(preamble(spec.dtype, spec.shape)), np.uint8)
    return Message(head, array.nbytes, out, place_of(array), numbers=array.dtype)


def _in_body(trace: TraceReader, view: StepView) -> tuple[dict[int, Array], dict[int, Array], memoryview]:
    """Gradients and buffers by position as they lie in the body of a step, and the memory that this is to be read to.

    Raises CannotPrepareError for arrays that do not lie as kernels take them.
    """
    if not trace.schema.is_plain:
        raise CannotPrepareError
    tensors, grads, buffers = trace.schema.tensors, dict[int, Array](), dict[int, Array]()
    extents = [e for e in view.extents() if e.what == "grad" or tensors[e.tensor].role is TensorRole.BUFFER]
    memory = line_aligned(sum(e.nbytes for e in extents))
    for e in extents:
        dtype = numpy_dtype(tensors[e.tensor].dtype)
        if e.offset % dtype.itemsize:
            raise CannotPrepareError
        array = memory[e.offset : e.offset + e.nbytes].view(dtype).reshape(tensors[e.tensor].shape)
        (grads if e.what == "grad" else buffers)[e.tensor] = array
    return grads, buffers, memory.data


def _corrections(trace: TraceReader, state: ReplayState) -> list[Array]:
    """The arrays that hold the bias corrections that steps record. Raises CannotPrepareError."""
    names = [of_group(CORRECTIONS, i) for i, group in enumerate(trace.schema.rules) if group.corrections]
    if any(name not in state.values for name in names):
        raise CannotPrepareError
    return [state.values[name] for name in names]
