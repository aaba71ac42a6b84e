"""Steps of a recorded run done again by their recorded gradients: one compiled update, and one call for all digests."""

from typing import Any

import numpy as np

from ...base.arrays import Array
from ...base.errors import DgrrError
from ...base.runs.completed_step import of_group
from ...runtime.captured.captured_update import CapturedUpdate
from ...runtime.optim.groups import Groups
from ...runtime.step.memory import line_aligned
from ...tape.numerics.prepared.places import place_of
from ...tape.numerics.prepared.prepared_calls import PreparedCalls
from ...tape.numerics.xxh3.constants import DIGEST
from ...tape.numerics.xxh3.digests import Digests, Message
from ..v2.format.constants import TensorRole
from ..v2.format.digest import Algorithm, TensorDigest, numpy_dtype, preamble
from ..v2.format.schema import TensorSpec
from ..v2.format.step import STEP
from ..v2.read.reader import StepView, TraceReader
from ..v2.write.tensors import CORRECTIONS
from .recorded_recipe import CannotPrepareError, RecordedRecipe, RulesOfSteps
from .replay_state import ReplayState, Rules, by_name


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
        self._known: dict[tuple[bytes, bool], _Kind | None] = {}
        self._groups: Groups | None = None
        self._held = 0
        self.grads: dict[str, Array] = {}
        """The gradients of the last step: views that are valid until the next one."""

    def done(self, view: StepView) -> bool | None:
        """Do a step; whether gradients and all that they make have the digests that are recorded of them.

        None, and nothing done, where no step like it was prepared. Raises InvalidTraceError where the gradients cannot
        be read.
        """
        kind = self._known.get(self._key(view)) if self._held == self._state.held else None
        if kind is None or not self._same_rules(view):
            return None
        self.grads = kind.grads
        return kind.done(view)

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
        layout = self._trace.layout
        return view.front[STEP.front(layout).places["grads"]], layout.due(view.step)


class _Kind:
    """The steps of a kind."""

    def __init__(self, trace: TraceReader, state: ReplayState, groups: Groups, view: StepView) -> None:
        tensors = trace.schema.tensors
        grads, buffers, self._body = _in_body(trace, view)
        named = {tensors[i].name: array for i, array in grads.items()}
        recipe = RecordedRecipe(groups.groups[0].rule, made=groups)
        params = state.of_role(TensorRole.PARAM)
        self._update = CapturedUpdate(recipe, params, state.of_role(TensorRole.STATE), named).run
        self._buffers = [(state.values[tensors[i].name], array) for i, array in buffers.items()]
        self.grads = named
        """Those of the last step: views that are valid until the next one."""
        whole = range(trace.layout.states) if view.root is not None else ()
        after = [*buffers, *whole]
        digested = [(tensors[i], array) for i, array in grads.items()]
        digested += [(tensors[i], state.values[tensors[i].name]) for i in after]
        declared, size = STEP.front(trace.layout), trace.layout.digest_size
        self._digests = _AllDigests(trace.header.algorithm, digested)
        self._at = slice(declared.fixed, declared.fixed + size * len(digested))
        self._corrections = _corrections(trace, state)
        self._corrections_at = declared.places["corrections"]

    def done(self, view: StepView) -> bool:
        """Do a step; whether all of it is as recorded. Raises InvalidTraceError where its body cannot be read."""
        view.body_into(self._body)
        self._update()
        for mine, recorded in self._buffers:
            np.copyto(mine, recorded)
        front, corrections = view.front, b"".join([array.tobytes() for array in self._corrections])
        return front[self._at] == self._digests() and front[self._corrections_at] == corrections


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


class _AllDigests:
    """The digests of the same arrays again and again, one behind the other."""

    def __init__(self, algorithm: Algorithm, arrays: list[tuple[TensorSpec, Array]]) -> None:
        self._by_parts = [(TensorDigest(algorithm, spec.dtype, spec.shape), array) for spec, array in arrays]
        self._out = np.empty(DIGEST * len(arrays), np.uint8)
        self._at_once: PreparedCalls | None = None
        if algorithm is Algorithm.XXH3_128:
            messages = [self._message(i, spec, array) for i, (spec, array) in enumerate(arrays)]
            self._at_once = PreparedCalls(Digests(messages))

    def _message(self, i: int, spec: TensorSpec, array: Array) -> Message:
        head: Any = np.frombuffer(bytearray(preamble(spec.dtype, spec.shape)), np.uint8)
        out = self._out[DIGEST * i :][:DIGEST]
        return Message(head, array.nbytes, out, place_of(array), numbers=array.dtype)

    def __call__(self) -> bytes:
        if self._at_once is not None and not self._at_once.run():
            return self._out.tobytes()
        return b"".join([digest(array) for digest, array in self._by_parts])
