"""What every property needs: an op's samples as labelled cases, runs of them, and comparison to the bit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dgrr.tape import AnyTensor
from dgrr.tape.record.composed import Composed
from dgrr.tape.record.lowering import Step, order, runner
from dgrr.tape.record.op import Op
from dgrr.tape.record.samples import Make
from dgrr.tape.values.spec import Spec

Record = Op | Composed
Array = npt.NDArray[Any]
Arrays = Sequence[Array | None]

FLOAT_TYPES = (np.float32, np.float64)


@dataclass(frozen=True)
class Case:
    """One sample of an op, with the words that name it in a failure."""

    op: Record
    label: str
    arrays: tuple[Array | None, ...]
    attrs: Mapping[str, Any]

    @property
    def float_inputs(self) -> list[int]:
        """Positions of the given inputs that hold floats."""
        return [i for i, a in enumerate(self.arrays) if a is not None and a.dtype.kind == "f"]

    @property
    def result(self) -> Array:
        """The op's result on copies of the arrays, their memory order kept."""
        return run(self.op, self.arrays, self.attrs)


def cases(op: Record, *dtypes: npt.DTypeLike) -> Iterator[Case]:
    """Every sample of an op, by default for float32 and for float64."""
    for dtype in dtypes or FLOAT_TYPES:
        for i, sample in enumerate(op.samples(Make(dtype))):
            arrays = tuple(None if a is None else np.asarray(a) for a in sample.arrays)
            shapes = ", ".join("None" if a is None else f"{a.dtype}{list(a.shape)}" for a in arrays)
            label = f"{op.name}({shapes}, {dict(sample.attrs)}), sample {i} of {np.dtype(dtype)}"
            yield Case(op, label, arrays, sample.attrs)


def run(op: Record, arrays: Arrays, attrs: Mapping[str, Any]) -> Array:
    """The op's result on copies of the arrays, their memory order kept."""
    return run_on(op, [None if a is None else np.array(a, order="K", copy=True) for a in arrays], attrs)


def run_on(op: Record, arrays: Arrays, attrs: Mapping[str, Any]) -> Array:
    """The op's result on these very arrays, whatever their strides."""
    result: AnyTensor = op(*[None if a is None else AnyTensor(a) for a in arrays], **attrs)
    return result.array


def steps(case: Case) -> Iterator[tuple[Step, list[Array], Array]]:
    """The steps that an op is lowered to: each with the arrays it reads and the fresh array it makes.

    A composed function has none of its own: the ops that it calls are cases too.
    """
    if isinstance(case.op, Composed):
        return
    _, attrs = case.op.bind(case.arrays, case.attrs)
    specs = [None if a is None else Spec(a.shape, a.dtype) for a in case.arrays]
    slots, result = case.op.lowered(specs, attrs)
    values = dict(zip(slots, (a for a in case.arrays if a is not None), strict=True))
    for slot in order(result):
        if slot.step is not None:
            inputs = [values[needed] for needed in slot.step.inputs]
            values[slot] = runner(slot.step)(inputs)
            yield slot.step, inputs, values[slot]


def canonical(array: Array) -> Array:
    """A contiguous copy in which every NaN has one bit pattern."""
    copy = np.array(array, order="C", copy=True)
    if copy.dtype.kind == "f":
        copy[np.isnan(copy)] = np.nan
    return copy


def assert_same_bits(got: Array, expected: Array, label: str) -> None:
    """Equal dtype, shape and bits, all NaNs being one. Names the first element that differs."""
    assert got.dtype == expected.dtype, f"{label}: dtype {got.dtype}, expected {expected.dtype}"
    assert got.shape == expected.shape, f"{label}: shape {got.shape}, expected {expected.shape}"
    bits = [canonical(a).reshape(-1).view(f"u{a.dtype.itemsize}") for a in (got, expected)]
    different = np.flatnonzero(bits[0] != bits[1])
    if different.size:
        at = int(different[0])
        values = [f"{a.reshape(-1)[at]!r} (0x{b[at]:x})" for a, b in zip((got, expected), bits, strict=True)]
        raise AssertionError(
            f"{label}: {different.size} of {got.size} elements differ, the first at {at}: "
            f"got {values[0]}, expected {values[1]}"
        )
