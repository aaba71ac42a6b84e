"""One step of two traces: everything in it that differs, in order of execution."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from ...base.arrays import Array
from ...base.runs.called_op import CalledOp
from ..v2.errors import NotRecordedError
from ..v2.format.constants import FLOATS, TensorRole
from ..v2.format.digest import dtype_name
from ..v2.format.schema import TensorSpec
from ..v2.format.sketch import length, sketch
from ..v2.read.op_digests import OpDigests
from ..v2.read.reader import TraceReader
from ..v2.read.recorded import What as Recorded
from ..v2.read.step_view import StepView
from .policy import Policy
from .settings import Differing, differing, step_of
from .tensors import Side, TensorDifference, tensor_difference

Digests = dict[str, bytes]


@dataclass(slots=True)
class StepDifference:
    """What differs in a step: its data, what it was told, and tensors; empty lists are false.

    `forward` are the loss, the buffers and the gradients, which the model makes; `after` what the rule makes of them.
    """

    data: bool
    told: Differing
    forward: list[TensorDifference]
    after: list[TensorDifference]
    chain: bool = False
    """Whether derived numbers differ: the scale of clipping, or bias corrections."""

    def __bool__(self) -> bool:
        return bool(self.data or self.told or self.forward or self.after or self.chain)


@dataclass(slots=True)
class Pair:
    """Two traces of one schema and how close they must be; counts what could not be decided.

    Args:
        unknown: titles of what may differ by more than the policy allows, since no values of it are recorded; of the
            state alone it is left out, which follows from the gradients. What is recorded at other steps is `known`.
        skipped: how many tensors were not compared for that reason.
        compiled: the steps whose layers could not be compared, as one run was compiled.
        first: the step of `a` that step 0 of `b` is, where `b` was begun from a recorded state. Every step is called by
            its number in `a`.
    """

    a: TraceReader
    b: TraceReader
    policy: Policy
    unknown: set[str] = field(default_factory=set[str])
    known: set[str] = field(default_factory=set[str])
    skipped: int = 0
    compiled: set[int] = field(default_factory=set[int])
    first: int = 0

    @property
    def one_digest(self) -> bool:
        """Whether digests can be compared at all."""
        return self.a.header.algorithm == self.b.header.algorithm

    @property
    def one_digest_on_the_way(self) -> bool:
        """Whether digests of what was computed on the way can be compared."""
        return self.one_digest and self.a.header.additive == self.b.header.additive

    @property
    def steps(self) -> range:
        """The steps that both have."""
        return range(self.first, min(len(self.a), self.first + len(self.b)))

    def start(self) -> list[TensorDifference]:
        """What differs before the first step that is compared."""
        return list(self._tensors(self.first, "before", _before(self.a, self.first), _before(self.b, 0)))

    def views(self, k: int) -> tuple[StepView, StepView]:
        """Step k of both."""
        return self.a[k], self.b[k - self.first]

    def ops(self, k: int) -> tuple[OpDigests | None, OpDigests | None]:
        """The digests of everything that step k computed, in both; None where they are not recorded."""
        return self.a.ops(k), self.b.ops(k - self.first)

    def calls(self, k: int) -> tuple[tuple[CalledOp, ...], tuple[CalledOp, ...]] | None:
        """Every call of an op inside step k, in both; None where they are not recorded, or digested otherwise."""
        a, b = self.a.calls(k), self.b.calls(k - self.first)
        return (a, b) if a and b and self.one_digest_on_the_way else None

    def step(self, k: int) -> StepDifference:
        """What differs in step k."""
        x, y = self.views(k)
        bitwise = self.policy.bitwise
        return StepDifference(
            data=self.one_digest and x.input_digest != y.input_digest,
            told=differing(step_of(self.a, x), step_of(self.b, y)),
            forward=[
                *self._loss(x, y),
                *self._tensors(k, "after", x.buffer_digests, y.buffer_digests),
                *self._tensors(k, "grad", _reversed(x.grad_digests), _reversed(y.grad_digests)),
            ],
            after=list(self._tensors(k, "after", _updated(x), _updated(y))) if x.root and y.root else [],
            chain=bitwise and (x.corrections, x.clip) != (y.corrections, y.clip),
        )

    def final(self) -> list[TensorDifference]:
        """What differs in the final state, where both traces hold its digests."""
        a, b = self.a.seal, self.b.seal
        if a is None or b is None or not (a.final and b.final and len(self.a) == self.first + len(self.b)):
            return []
        names = [t.name for t in self.a.schema.tensors]
        left, right = (dict(zip(names, seal.final[:-1], strict=True)) for seal in (a, b))
        return list(self._tensors(len(self.a) - 1, "after", left, right)) if len(self.a) else []

    def _loss(self, x: StepView, y: StepView) -> Iterator[TensorDifference]:
        left, right = x.record.loss, y.record.loss
        dtypes = list(dict.fromkeys(dtype_name(loss.dtype) for loss in (left, right)))
        if len(dtypes) > 1:
            left, right = left.astype(np.float64), right.astype(np.float64)
        found = tensor_difference("loss", "loss", " and ".join(dtypes), left, right, self.policy.of("loss"))
        if found is not None:
            yield found
        elif len(dtypes) > 1:
            yield TensorDifference("loss", "loss", (), " and ".join(dtypes), differing=0)

    def _tensors(self, step: int, what: Recorded, x: Digests, y: Digests) -> Iterator[TensorDifference]:
        for name in {**x, **y}:
            found = self._tensor(step, what, name, x.get(name), y.get(name))
            if found is not None:
                yield found

    def _tensor(
        self, step: int, what: Recorded, name: str, x: bytes | None, y: bytes | None
    ) -> TensorDifference | None:
        spec = self.a.schema.tensors[self.a.schema.position[name]]
        if x is None or y is None:
            only: Side = "a" if y is None else "b"
            return TensorDifference(name, what, spec.shape, spec.dtype, only_in=only)
        if self.one_digest and x == y:
            return None
        arrays = self._values(step, what, name)
        tolerance = self.policy.of(name)
        unread = TensorDifference(name, what, spec.shape, spec.dtype)
        if arrays is not None:
            self.known.add(unread.title)
            return tensor_difference(name, what, spec.dtype, *arrays, tolerance)
        if self.one_digest and (tolerance.bitwise or spec.dtype not in FLOATS):
            return unread
        apart = self.apart(step, what, name)
        allowed = None if apart is None else tolerance.allows(*apart, math.prod(spec.shape))
        if apart is not None and allowed is not None:
            self.known |= {unread.title, *_held_with(spec)}
            return None if allowed else replace(unread, apart=apart[0] / apart[1] if apart[1] else math.inf)
        if what != "after" or spec.role is TensorRole.BUFFER:
            self.unknown.add(unread.title)
        self.skipped += 1
        return None

    def apart(self, step: int, what: Recorded, name: str) -> tuple[float, float] | None:
        """About how far a tensor of two runs is apart, and its norm; None where one has neither sketch nor values."""
        x, y = _sketch(self.a, step, what, name), _sketch(self.b, step - self.first, what, name)
        if x is None or y is None:
            return None
        return length([i - j for i, j in zip(x, y, strict=True)]), length(x)

    def _values(self, step: int, what: Recorded, name: str) -> tuple[Array, Array] | None:
        """Both values, if both are recorded."""
        try:
            x = _value(self.a, step, what, name)
            y = _value(self.b, step - self.first, what, name)
        except NotRecordedError:
            return None
        return x, y


def _before(trace: TraceReader, step: int) -> Digests:
    return trace.keyframe_digests(step) if trace.has_keyframe(step) else trace[step - 1].state_digests


def _held_with(spec: TensorSpec) -> list[str]:
    """What is compared with a tensor after the last step: of a param's state, the gradients that it is made of."""
    kept, _, owner = spec.name.partition("/")
    if spec.role is not TensorRole.STATE or kept == "step":  # a count says nothing of gradients
        return []
    return [TensorDifference(owner, "grad", spec.shape, spec.dtype).title] if owner else []


def _value(trace: TraceReader, step: int, what: Recorded, name: str) -> Array:
    if what == "before":
        return trace.keyframe(step)[name]
    return trace.tensor(name, step=step, what=what)


def _sketch(trace: TraceReader, step: int, what: Recorded, name: str) -> tuple[float, ...] | None:
    """That which is recorded, or that of what is."""
    if what == "before":
        return None
    found = trace.sketch(name, step=step, what=what)
    if found is None:
        with suppress(NotRecordedError):
            found = sketch(trace.tensor(name, step=step, what=what))
    return found


def _reversed(digests: Digests) -> Digests:
    """In the order of the way back: those of the last layer first."""
    return dict(reversed(digests.items()))


def _updated(view: StepView) -> Digests:
    """The tensors that the rule makes: without buffers."""
    return {name: digest for name, digest in view.state_digests.items() if name not in view.buffer_digests}
