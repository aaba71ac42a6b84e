"""Properties of an op's value: the reference's, whatever memory, layout, threads or batch it is computed in.

Each property is a function of an op that raises AssertionError where the op does not have it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from dgrr.tape import ShapeError, SingularMatrixError, get_threads, set_threads
from dgrr.tape.numerics.engine import launch
from dgrr.tape.record.lowering import KernelStep

from .cases import Array, Case, Record, assert_same_bits, cases, run, run_on, steps

THREAD_COUNTS = (1, 2, 3, 7)

JUNK = (0xA5A5A5A57FA5A5A5, 0x42A5A5A542A5A5A5, 0x7FF4A5A5A5A5A5A5)
"""What uninitialised memory may hold: NaNs and plausible numbers, in either width."""


def check_reference(op: Record) -> None:
    """The result is the reference's, to the bit, in dtype and in shape."""
    for case in cases(op):
        with np.errstate(all="ignore"):
            expected = np.asarray(op.reference(*case.arrays, **case.attrs))
        assert_same_bits(case.result, expected, case.label)


def check_every_element_is_written(op: Record) -> None:
    """What the output's memory held before cannot be seen in the result."""
    empty = np.empty
    for case in cases(op):
        expected = case.result
        for pattern in JUNK:
            with patch.object(np, "empty", lambda *args, p=pattern: _junk(empty(*args), p)):
                got = case.result
            assert_same_bits(got, expected, f"{case.label} in memory of {pattern:#x}")


def _junk(array: Array, pattern: int) -> Array:
    words = np.full(array.nbytes // 8 + 1, pattern, np.uint64)
    array.reshape(-1).view(np.uint8)[:] = words.view(np.uint8)[: array.nbytes]
    return array


def check_inputs_and_aliases(op: Record) -> None:
    """Inputs keep their bytes; a kernel gives the same result in the buffer of a declared alias."""
    for case in cases(op):
        given = [None if a is None else np.array(a, order="K", copy=True) for a in case.arrays]
        run_on(op, given, case.attrs)
        for i, (after, before) in enumerate(zip(given, case.arrays, strict=True)):
            same = after is None or before is None or after.tobytes() == before.tobytes()
            assert same, f"{case.label}: input {i} was overwritten"
        for step, inputs, fresh in steps(case):
            if isinstance(step, KernelStep):
                _check_aliases(step, inputs, fresh, case.label)


def _check_aliases(step: KernelStep, inputs: Sequence[Array], fresh: Array, label: str) -> None:
    for alias in step.aliases:
        ready = [np.array(a, order="C", copy=True) for a in inputs]
        assert ready[alias].nbytes == fresh.nbytes, f"{label}: input {alias} has another size than the output"
        _run_inside(step, ready, alias)
        assert_same_bits(_as_output(ready[alias], step), fresh, f"{label} in the buffer of input {alias}")
        for i, a in enumerate(ready):
            unchanged = i == alias or a.tobytes() == inputs[i].tobytes()
            assert unchanged, f"{label}: input {i} was overwritten by a run in the buffer of input {alias}"
    if len(step.aliases) > 1:
        _check_one_array_for_all(step, inputs, label)


def _check_one_array_for_all(step: KernelStep, inputs: Sequence[Array], label: str) -> None:
    """The case of ``x * x`` computed in x: every aliased input is one array, and the output too."""
    one = np.array(inputs[step.aliases[0]], order="C", copy=True)
    ready = [one if i in step.aliases else np.array(a, order="C", copy=True) for i, a in enumerate(inputs)]
    fresh = np.empty(step.out.shape, step.out.dtype)
    launch.launch(step.kernel, step.element, step.ints, (fresh, *ready), step.work)
    _run_inside(step, ready, step.aliases[0])
    assert_same_bits(_as_output(one, step), fresh, f"{label} with one array for inputs {step.aliases} and output")


def _run_inside(step: KernelStep, ready: Sequence[Array], alias: int) -> None:
    launch.launch(step.kernel, step.element, step.ints, (ready[alias], *ready), step.work)


def _as_output(buffer: Array, step: KernelStep) -> Array:
    return buffer.view(step.out.dtype).reshape(step.out.shape)


def _strided(a: Array) -> Array:
    """Every second element of a larger array along each axis."""
    base = np.full([2 * n + 1 for n in a.shape], 99, a.dtype)
    every_second: Any = (..., *(slice(1, 2 * n + 1, 2) for n in a.shape))
    view: Array = base[every_second]
    view[...] = a
    return view


def _reversed(a: Array) -> Array:
    """Negative strides along every axis."""
    flip: Any = (..., *(slice(None, None, -1),) * a.ndim)
    view: Array = np.array(a[flip], order="C", copy=True)[flip]
    return view


def _transposed(a: Array) -> Array:
    """Column-major memory."""
    return np.array(a.T, order="C", copy=True).T


def _repeated(axis: int) -> Callable[[Array], Array]:
    """A stride of zero along an axis: its first element repeated."""

    def view(a: Array) -> Array:
        if a.ndim == 0 or not a.shape[axis]:
            return a
        first = a[tuple(slice(0, 1) if i == axis % a.ndim else slice(None) for i in range(a.ndim))]
        return np.broadcast_to(first, a.shape)

    return view


VIEWS = {
    "strided": _strided,
    "reversed": _reversed,
    "transposed": _transposed,
    "repeated along the first axis": _repeated(0),
    "repeated along the last axis": _repeated(-1),
}
"""Memory layouts; each maps an array to one of the same shape whose elements are elsewhere."""


def check_strides(op: Record) -> None:
    """Views of any strides give the bits that contiguous arrays of the same elements give."""
    for case in cases(op):
        for layout, make in VIEWS.items():
            views = [None if a is None else make(a) for a in case.arrays]
            dense = [None if v is None else np.array(v, order="C", copy=True) for v in views]
            got, expected = _outcome(op, views, case.attrs), _outcome(op, dense, case.attrs)
            if isinstance(expected, str):
                assert got == expected, f"{case.label}, inputs {layout}"
            else:
                assert_same_bits(got, expected, f"{case.label}, inputs {layout}")


def _outcome(op: Record, arrays: Any, attrs: Any) -> Any:
    """The result, or what is said of rows that are alike where a matrix needs an inverse."""
    try:
        return run_on(op, arrays, attrs)
    except SingularMatrixError as error:
        return str(error)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Every kernel runs on ``count`` threads, however small its work."""
    before = get_threads()
    set_threads(count)
    try:
        with patch.object(launch, "PARALLEL_WORK", 0):
            yield
    finally:
        set_threads(before)


def check_threads(op: Record) -> None:
    """The number of threads cannot be seen in the bits."""
    expected = [case.result for case in cases(op)]
    for count in THREAD_COUNTS:
        with threads(count):
            for case, alone in zip(cases(op), expected, strict=True):
                assert_same_bits(case.result, alone, f"{case.label} on {count} threads")


def check_batch(op: Record) -> None:
    """A batch of one gives the bits of that row of a larger batch, for an op that has a batch axis.

    An op without one must say why. What does not have the axis has no batch; a sample whose ``axis`` is the batch
    mixes it.
    """
    if not op.batch_axis:
        assert op.excused.get("batch"), f"{op.name}: it has no batch_axis and excused['batch'] gives no reason"
        return
    assert "batch" not in op.excused, f"{op.name}: it has a batch_axis and an excuse"
    rows = sum(_check_rows(case) for case in cases(op))
    assert rows > 1, f"{op.name}: no sample has a batch"


def _check_rows(case: Case) -> int:
    inputs = {case.op.signature.inputs.index(name): axis for name, axis in case.op.batch_axis.items()}
    (first, axis), *_ = inputs.items()
    example = case.arrays[first]
    assert example is not None, f"{case.label}: the batched input is missing"
    if not _has(example, axis) or _mixes(case, axis, example.ndim):
        return 0
    whole = case.result
    if not _has(whole, axis):
        return 0
    for k in range(example.shape[axis]):
        row = _slice(whole, axis, k)
        assert row is not None
        assert_same_bits(_alone(case, inputs, k), row, f"{case.label}, row {k} alone")
    return int(example.shape[axis])


def _mixes(case: Case, batch: int, rank: int) -> bool:
    parameters = case.op.signature.python.parameters
    axis = case.attrs.get("axis", parameters["axis"].default if "axis" in parameters else None)
    return isinstance(axis, int) and axis % rank == batch % rank


def _alone(case: Case, inputs: dict[int, int], k: int) -> Array:
    """The result for row k alone of the inputs with a batch, among them any of the same rank that must follow."""
    try:
        return run(case.op, [_slice(a, inputs.get(i), k) for i, a in enumerate(case.arrays)], case.attrs)
    except ShapeError:
        (first, axis), *_ = inputs.items()
        rank = _rank(case.arrays[first])
        return run(case.op, [_slice(a, axis if _rank(a) == rank else None, k) for a in case.arrays], case.attrs)


def _rank(a: Array | None) -> int:
    return -1 if a is None else a.ndim


def _has(a: Array, axis: int) -> bool:
    return -a.ndim <= axis < a.ndim


def _slice(a: Array | None, axis: int | None, k: int) -> Array | None:
    """Row k alone along an axis, which may count from the end; what does not have the axis as it is."""
    if a is None or axis is None or not _has(a, axis):
        return a
    return a[(slice(None),) * (axis % a.ndim) + (slice(k, k + 1),)]


FORWARD: dict[str, Callable[[Any], None]] = {
    "reference": check_reference,
    "junk": check_every_element_is_written,
    "aliases": check_inputs_and_aliases,
    "strides": check_strides,
    "threads": check_threads,
    "batch": check_batch,
}
