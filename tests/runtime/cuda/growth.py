"""How the work of one thread grows with the size of what its kernel is given, kernel by kernel.

Samples of op records are grown along each size that their axes have. What is translated runs thread by thread on the
GPU that is this machine, which counts instructions; of what is written, threads and work follow from its words.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from dgrr.base.arrays import Array
from dgrr.base.errors import DgrrError
from dgrr.runtime import capture_function
from dgrr.runtime.cuda.bind import _wanted
from dgrr.runtime.ir.forward import forward_graph, record_forward
from dgrr.runtime.lower.compile import compile_graph
from dgrr.runtime.lower.plan import BindingPlan, operand_strides
from dgrr.runtime.lower.program import LoweredOp
from dgrr.tape.numerics.cuda.code import Wanted
from dgrr.tape.numerics.engine.launch import Words
from dgrr.tape.ops.cuda_forms import FORMS
from dgrr.tape.record.op import OPS
from dgrr.tape.record.samples import Make, Sample

RUN, SHAPED = (3, 12), (32, 256)
"""By how much axes are grown, where kernels run and where only their words are made."""

MOST = {RUN: 1 << 12, SHAPED: 1 << 18}
"""Elements of an array that was grown: what would be larger is left out."""

TIMES = 2
"""Pairs of calls by which each translated kernel is held, of every op that has it first."""

WRITTEN = frozenset(FORMS)


@dataclass(frozen=True)
class Call:
    """An op on arrays that were grown."""

    op: str
    arrays: tuple[Array | None, ...]
    attrs: Mapping[str, Any]

    def __call__(self, *arrays: Any) -> Any:
        given = iter(arrays)
        return OPS[self.op](*[None if a is None else next(given) for a in self.arrays], **self.attrs)

    @property
    def given(self) -> tuple[Array, ...]:
        """The arrays that are there."""
        return tuple([a for a in self.arrays if a is not None])

    def plan(self) -> BindingPlan:
        """What is bound of it."""
        recording = record_forward(lambda p, given, context: self(*given), {}, self.given, {}, 0, unrolls=True)
        return compile_graph(*forward_graph(recording))


def grown(op: str, sample: Sample, size: int, by: int) -> Iterator[Call]:
    """A sample whose axes of one size are so many times as long; then its attributes too, or its diagonals larger."""

    def larger(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(map(larger, value))
        return value * by if type(value) is int and value == size else value

    arrays = tuple([None if a is None else np.resize(a, larger(a.shape)) for a in sample.arrays])
    if any(a is not None and size in a.shape for a in sample.arrays):
        yield Call(op, arrays, sample.attrs)
    yield Call(op, arrays, {name: larger(value) for name, value in sample.attrs.items()})
    yield Call(op, tuple(map(_dominant, arrays)), sample.attrs)


def _dominant(array: Array | None) -> Array | None:
    """A square matrix that can be factored."""
    if array is None or array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.dtype.kind != "f":
        return array
    return np.asarray(array + 4 * len(array) * np.eye(array.shape[-1], dtype=array.dtype))


def _sizes(value: Any) -> tuple[int, ...]:
    """The numbers of an attribute that may be sizes."""
    if isinstance(value, tuple | list):
        return tuple([n for each in value for n in _sizes(each)])
    return (value,) if type(value) is int else ()


def pairs(op: str, by: tuple[int, int]) -> Iterator[tuple[Call, Call]]:
    """Each sample of an op in two sizes, one axis size after the other."""
    for sample in OPS[op].samples(Make(np.float32)):
        shapes = [a.shape for a in sample.arrays if a is not None]
        if any(0 in shape for shape in shapes):
            continue
        shapes += [value for value in map(_sizes, sample.attrs.values()) if value]
        for size in sorted({n for shape in shapes for n in shape if n > 1}):
            if max(prod(n * by[1] if n == size else n for n in shape) for shape in shapes) > MOST[by]:
                continue
            for small, large in zip(*(grown(op, sample, size, k) for k in by), strict=True):
                try:
                    plans = small.plan(), large.plan()
                except DgrrError:
                    continue
                if plans[0].program.kernels() == plans[1].program.kernels():
                    yield small, large
                    break


def written_work(plan: BindingPlan) -> dict[str, float]:
    """The work of a thread of each written kernel: the elements that it touches, or its operations if they are more."""
    found = dict[str, float]()
    for op in plan.program.ops:
        form = FORMS.get(op.kernel.name)
        if form is None:
            continue
        launches = form.launches(op.element, _words(plan, op))
        threads = max([prod(launch.grid) * prod(launch.block) for launch in launches], default=1)
        touched = sum(plan.program.layout(v).touched for v in op.table) / op.element.itemsize
        found[op.kernel.name] = max(op.flops, touched) / threads
    return found


def _words(plan: BindingPlan, op: LoweredOp) -> tuple[int, ...]:
    words = op.words if isinstance(op.words, Words) else op.words.words(operand_strides(plan.program, op))
    return tuple([int(word) for word in words.values])


def calls_of_translated() -> list[tuple[Call, Call]]:
    """Calls in two sizes of all ops that have kernels without a written form."""
    held, found = Counter[str](), list[tuple[Call, Call]]()
    for op in OPS:
        for small, large in pairs(op, RUN):
            names = {kernel.name for kernel in small.plan().program.kernels()}
            if "gemm" not in names and any(held[name] < TIMES for name in names - WRITTEN):
                held.update(names)
                found.append((small, large))
    return found


def wanted(calls: Iterable[Call]) -> list[Wanted]:
    """What of some calls is translated."""
    return list(dict.fromkeys(one for call in calls for one in _wanted(call.plan())))


def has_grown(small: float, large: float, least: float = 0) -> bool:
    """Whether work has grown, where the larger size is four times the smaller at least."""
    return large > 1.5 * small + least


class Runner:
    """Runs calls on the GPU that is this machine, and says how many instructions the busiest threads have run."""

    def __init__(self, stand_in: Any) -> None:
        self._stand_in = stand_in

    def __call__(self, call: Call) -> dict[str, int]:
        """By kernel."""
        self._stand_in.GPU.busiest.clear()
        capture_function(call, device="cuda")(*call.given)
        return self.by_kernel()

    def by_kernel(self) -> dict[str, int]:
        """Of all that has run."""
        names = {text: wanted.name for wanted, text in self._stand_in.KNOWN.items()}
        return {names[code]: work for code, work in self._stand_in.GPU.busiest.items()}
