"""Lowering: an op as a straight list of primitive steps, prepared once per signature and run on fresh buffers.

An op's ``lower`` receives one `Slot` per input and returns the slot of its output; the functions below
make slots, each knowing the step that fills it. Two kinds of step exist: a kernel call, and a view, which
moves no element. What depends only on shapes, dtypes and attributes is decided here, before any value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, Protocol

import numpy as np

from ...base.arrays import Array
from ..errors import BoundsError, DgrrError, SingularMatrixError
from ..numerics.engine import launch
from ..numerics.engine.kernel import REFUSED, Kernel, fill
from ..numerics.engine.launch import Words
from ..numerics.sizes import Sizes
from ..values.spec import Spec
from ..values.tensor import dense

FUSED = 16
"""Operations of a product that take as long as one of an elementwise kernel."""

LAYOUTS_KEPT = 256
"""Stride patterns for which the words of a step are kept ready."""

ORDERS_KEPT = 4096
"""Results whose steps are kept in order."""


class Slot:
    """A value of a lowered op: an input (no step) or what a step fills."""

    __slots__ = ("spec", "step")

    def __init__(self, spec: Spec, step: "Step | None" = None) -> None:
        self.spec, self.step = spec, step

    @property
    def shape(self) -> Sizes:
        """Its sizes."""
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its element type."""
        return self.spec.dtype


@dataclass(frozen=True, slots=True, eq=False)
class KernelStep:
    """A call of a kernel on contiguous arrays: the output, then the inputs.

    ``element`` is the type of the kernel's pointer table, ``aliases`` the inputs whose buffer the output may
    share; ``pointwise`` says that each element comes from the elements at its position. A non-zero status is an
    error: ``refusal`` is its text, see `refused`.
    """

    kernel: Kernel
    inputs: tuple[Slot, ...]
    out: Spec
    ints: Words
    work: int
    element: np.dtype[Any]
    aliases: tuple[int, ...] = ()
    pointwise: bool = False
    refusal: str = ""


class StridedLayout(Protocol):
    """What a kernel that reads operands in place needs besides their addresses."""

    def words(self, strides: tuple[Sizes, ...]) -> Words:
        """The words of the kernel for operands with these strides in bytes."""
        ...

    def scratch(self, strides: tuple[Sizes, ...], parts: int) -> int:
        """Bytes of memory that the kernel needs to work in, passed last; 0 if none."""
        ...


class MultiplyAdd(StridedLayout, Protocol):
    """That of a product or a convolution."""

    @property
    def flops(self) -> int:
        """Its multiplications and additions."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class StridedStep:
    """A call of a kernel that reads the inputs at the positions ``strided`` in place, whatever their strides.

    They are aligned to their elements; the other inputs are copied to row-major order.
    """

    kernel: Kernel
    inputs: tuple[Slot, ...]
    out: Spec
    layout: MultiplyAdd
    strided: tuple[int, ...]

    @property
    def work(self) -> int:
        """The operations of an elementwise kernel that take as long."""
        return self.layout.flops // FUSED


@dataclass(frozen=True, slots=True, eq=False)
class ViewStep:
    """Another shape or order of the same elements, made by a numpy function that computes nothing."""

    name: str
    inputs: tuple[Slot, ...]
    out: Spec
    view: Callable[[Array], Array]


Step = KernelStep | StridedStep | ViewStep
Runner = Callable[[Sequence[Array]], Array]


def call(
    kernel: Kernel,
    inputs: Sequence[Slot],
    shape: Sizes,
    *ints: float,
    dtype: np.dtype[Any] | None = None,
    element: np.dtype[Any] | None = None,
    work: int | None = None,
    aliases: tuple[int, ...] = (),
    pointwise: bool = False,
    refusal: str = "",
) -> Slot:
    """The output of a kernel on contiguous inputs.

    ``dtype`` and ``element`` (the type of the kernel's pointer table) default to the first input's;
    ``aliases`` names the inputs whose buffer the output may share.
    """
    out = Spec(shape, dtype or inputs[0].dtype)
    cost = out.size if work is None else work
    table = element or inputs[0].dtype
    return Slot(out, KernelStep(kernel, tuple(inputs), out, Words(*ints), cost, table, aliases, pointwise, refusal))


def elementwise(kernel: Kernel, *inputs: Slot, attrs: Sequence[float] = (), work: int = 1, **options: Any) -> Slot:
    """The output of a kernel that works element by element; it may overwrite inputs of its own dtype."""
    size, target = inputs[0].spec.size, options.get("dtype", inputs[-1].dtype)
    aliases = tuple(i for i, slot in enumerate(inputs) if slot.dtype == target)
    options.setdefault("element", inputs[-1].dtype)
    options.setdefault("dtype", target)
    return call(
        kernel, inputs, inputs[0].shape, size, *attrs, work=size * work, aliases=aliases, pointwise=True, **options
    )


def view(name: str, x: Slot, shape: Sizes, make: Callable[[Array], Array]) -> Slot:
    """The elements of ``x`` under another shape, without a kernel."""
    out = Spec(shape, x.dtype)
    return Slot(out, ViewStep(name, (x,), out, make))


def reshaped(x: Slot, shape: Sizes) -> Slot:
    """``x`` with the same elements in row-major order under another shape."""
    return view("reshape", x, shape, lambda a: dense(a).reshape(shape))


def permuted(x: Slot, axes: Sizes) -> Slot:
    """``x`` with its axes in another order."""
    return view("permute", x, tuple(x.shape[a] for a in axes), methodcaller("transpose", axes))


@lru_cache(ORDERS_KEPT)
def order(result: Slot) -> tuple[Slot, ...]:
    """The slots with a step that ``result`` needs, each after those it reads."""
    done: list[Slot] = []

    def visit(slot: Slot) -> None:
        if slot.step is not None and slot not in done:
            for needed in slot.step.inputs:
                visit(needed)
            done.append(slot)

    visit(result)
    return tuple(done)


def prepare(inputs: Sequence[Slot], result: Slot) -> Runner:
    """A function of the inputs' arrays that gives the result's, read-only, with everything decided that can be."""
    slots = order(result)
    if len(slots) == 1 and slots[0].step is not None and slots[0].step.inputs == tuple(inputs):
        return runner(slots[0].step)
    places = {slot: i for i, slot in enumerate((*inputs, *slots))}
    steps = [slot.step for slot in slots if slot.step is not None]
    program = [_placed(step, [places[x] for x in step.inputs]) for step in steps]
    last, may_be_written = places[result], isinstance(result.step, ViewStep)

    def run_program(arrays: Sequence[Array]) -> Array:
        values = [*arrays]
        for run, picked in program:
            values.append(run(picked(values)))
        out = values[last]
        if may_be_written:
            out.setflags(write=False)
        return out

    return run_program


def _placed(step: Step, places: Sequence[int]) -> tuple[Callable[[Any], Array], Callable[[Sequence[Array]], Any]]:
    """What runs a step, and what picks that which it takes among the values, where its inputs have these places."""
    return (step.view, itemgetter(*places)) if isinstance(step, ViewStep) else (runner(step), _picked(places))


def _picked(places: Sequence[int]) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """What picks the values at these places."""
    if len(places) == 1:
        return itemgetter(slice(places[0], places[0] + 1))
    return itemgetter(*places) if places else lambda values: ()


def runner(step: Step) -> Runner:
    """A function that runs one step on arrays and returns its output, which is read-only."""
    if isinstance(step, KernelStep):
        return _kernel_runner(step)
    return _strided_runner(step) if isinstance(step, StridedStep) else _view_runner(step)


def _view_runner(step: ViewStep) -> Runner:
    view = step.view

    def run_step(arrays: Sequence[Array]) -> Array:
        out = view(arrays[0])
        out.setflags(write=False)
        return out

    return run_step


def _kernel_runner(step: KernelStep) -> Runner:
    address, ints, work, refusal = step.kernel.address(step.element), step.ints, step.work, step.refusal
    shape, dtype, words = step.out.shape, step.out.dtype, ints.address
    empty, run_alone = np.empty, fill(1 + len(step.inputs))

    def run_step(arrays: Sequence[Array]) -> Array:
        out, status = empty(shape, dtype), REFUSED
        if work < launch.PARALLEL_WORK:
            status = run_alone(address, words, 0, (out, *arrays))
            if status == REFUSED:  # a repeated number, as a rule
                arrays = list(map(dense, arrays))
                status = run_alone(address, words, 0, (out, *arrays))
        if status == REFUSED:
            arrays = list(map(dense, arrays))
            status = launch.run(address, ints, (out, *arrays), launch.parts_for(work))
            out.setflags(write=False)
        if status:
            raise refused(refusal, arrays, status - 1)
        return out

    return run_step


class Singular(str):
    """The text about a matrix without an inverse, of which ``{position}`` is its number among all."""


def refused(refusal: str, inputs: Sequence[Array], position: int) -> DgrrError:
    """The error of a kernel that refuses an element of its second input, or of its only one, or a `Singular` matrix.

    ``{position}`` and ``{value}`` of the text are filled in.
    """
    if isinstance(refusal, Singular):
        return SingularMatrixError(refusal.format(position=position))
    indices = inputs[min(1, len(inputs) - 1)]
    return BoundsError(refusal.format(position=position, value=indices.flat[position]))


def _strided_runner(step: StridedStep) -> Runner:
    address, layout, work, strided = step.kernel.address(step.out.dtype), step.layout, step.work, step.strided
    shape, dtype, mask, empty = step.out.shape, step.out.dtype, sum(2 << i for i in strided), np.empty
    picked, strides_of = _picked(strided), attrgetter("strides")

    @lru_cache(LAYOUTS_KEPT)
    def prepared(strides: tuple[Sizes, ...], parts: int) -> tuple[Words, int]:
        return layout.words(strides), layout.scratch(strides, parts)

    def run_step(arrays: Sequence[Array]) -> Array:
        out, parts = empty(shape, dtype), 1 if work < launch.PARALLEL_WORK else launch.parts_for(work)
        if parts > 1:
            arrays = readable(arrays)
        words, scratch = prepared(tuple(map(strides_of, picked(arrays))), parts)
        given = (out, *arrays, empty(scratch, np.uint8)) if scratch else (out, *arrays)
        if parts > 1:
            launch.run(address, words, given, parts)
            out.setflags(write=False)
        elif fill(len(given))(address, words.address, mask, given) == REFUSED:
            return run_step(readable(arrays))
        return out

    def readable(arrays: Sequence[Array]) -> Sequence[Array]:
        return [_readable(a, i in strided) for i, a in enumerate(arrays)]

    return run_step


def _readable(array: Array, strided: bool) -> Array:
    """The array, or a row-major copy of one that a kernel cannot read where it lies."""
    flags = array.flags
    return array if flags.c_contiguous or (strided and flags.aligned) else array.copy(order="C")
