"""What an op refuses without a line in its record: what its annotations and the kinds of its attributes exclude."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from ...base.arrays import Array
from ..errors import DTypeError, ShapeError
from ..numerics.sizes import Sizes
from ..values.dtypes import DTYPES, DType
from ..values.shape import Bindings
from .kinds.values import AxisOf, Given, ValueKind
from .samples import Bad, Make, Sample, Samples
from .signature import Signature, TensorType

Kinds = Mapping[str, ValueKind]


def require_kinds(signature: Signature, kinds: Kinds, given: Given) -> None:
    """Raise the error of the first attribute whose value is of no kind that it takes."""
    for argument, kind in kinds.items():
        kind.require(signature.name, argument, given)


def examples(kinds: Kinds) -> list[Bad]:
    """The refusals of kinds that docstrings show."""
    shown = [(argument, kind.example()) for argument, kind in kinds.items()]
    return [Bad(wrong.error, wrong.text(argument), ()) for argument, wrong in shown]


def derived(signature: Signature, kinds: Kinds, samples: Samples, *, repeats: bool = False) -> list[Bad]:
    """Calls that must be refused, each made from a sample by one argument that is wrong.

    ``repeats``: shapes that differ may be right.
    """
    sample = max(samples(Make(np.float32)), key=_fullness)
    made = [*_of_types(signature, sample), *_of_kinds(signature, kinds, sample)]
    if any(_by_input(types) != _by_input(signature.cases[0][0]) for types, _ in signature.cases):
        # of several overloads, what does not fit one may fit another
        return made
    made += _of_dtypes(signature, sample)
    return made if repeats else [*made, *_of_shapes(signature, sample)]


def _by_input(types: Mapping[str, TensorType]) -> dict[str, TensorType]:
    return {name: t for name, t in types.items() if name != "return"}


def _fullness(sample: Sample) -> tuple[int, bool, int]:
    """How many inputs are given, whether none of them is empty, and how many axes they have."""
    arrays = [a for a in sample.arrays if a is not None]
    return len(arrays), all(a.size for a in arrays), sum(a.ndim for a in arrays)


def _of_types(signature: Signature, sample: Sample) -> Iterator[Bad]:
    """Each attribute with values of every type that its annotation does not name."""
    for argument, kind in zip(signature.attributes, signature.kinds, strict=True):
        for value in kind.misfits():
            text = f"{signature.name}: argument {argument!r}: expected {kind.expected}, got "
            yield Bad(DTypeError, text, sample.arrays, {**sample.attrs, argument: value})


def _of_kinds(signature: Signature, kinds: Kinds, sample: Sample) -> Iterator[Bad]:
    given = values_of(signature, sample)
    for argument, kind in kinds.items():
        for wrong in kind.wrong(given):
            text = f"{signature.name}: {wrong.text(argument)}"
            if argument in signature.inputs:
                shaped: Array = np.zeros(cast(Sizes, wrong.value), np.float32)
                yield Bad(wrong.error, text, _with(sample, signature.inputs.index(argument), shaped), sample.attrs)
            else:
                yield Bad(wrong.error, text, sample.arrays, {**sample.attrs, argument: wrong.value})
    axes = [argument for argument, kind in kinds.items() if isinstance(kind, AxisOf) and not kind.many]
    if (
        axes
        and len(sample.arrays) == 1
        and signature.cases[0][0][signature.inputs[0]].pattern.unify((), {}) is not None
    ):
        text = f"{signature.name}: argument {axes[0]!r}: expected no axis of a scalar, got -1"
        scalar = np.zeros((), _array(sample, 0).dtype)
        yield Bad(ShapeError, text, [scalar], {**sample.attrs, **dict.fromkeys(axes, -1)})


def values_of(signature: Signature, sample: Sample) -> dict[str, Any]:
    """The shapes and attributes of a sample by name, with the defaults of those that it leaves out."""
    shapes = [None if a is None else a.shape for a in sample.arrays]
    defaults = dict(zip(signature.names, signature.tail, strict=True))
    return {**defaults, **dict(zip(signature.inputs, shapes, strict=False)), **sample.attrs}


def _array(sample: Sample, place: int) -> Array:
    array = sample.arrays[place]
    assert array is not None, "the caller asks for one that is given"
    return array


def _of_dtypes(signature: Signature, sample: Sample) -> Iterator[Bad]:
    """Each input with elements of every type that it does not take, the others as they are."""
    known: set[object] = set()
    for place, (name, t) in enumerate(_inputs(signature, sample)):
        array = _array(sample, place) if t else None
        if t is None or array is None:
            continue
        bound: Any = getattr(t.dtype, "__bound__", t.dtype)
        for dtype, marker in DTYPES.items():
            alike = t.dtype not in known or dtype == array.dtype
            if bound is not Any and (not issubclass(marker, cast(type[DType], bound)) or not alike):
                text = f"{signature.name}: argument {name!r}: expected "
                yield Bad(DTypeError, text, _with(sample, place, np.zeros(array.shape, dtype)), sample.attrs)
        known |= {t.dtype} - {Any}


def _of_shapes(signature: Signature, sample: Sample) -> Iterator[Bad]:
    """Each input without axes, with one more, and with a longer last one, where its annotation does not take that."""
    known: Bindings = {}
    for place, (name, t) in enumerate(_inputs(signature, sample)):
        if t is None:
            continue
        array = _array(sample, place)
        longer = (*array.shape[:-1], array.shape[-1] + 1) if array.ndim else (1,)
        for shape in ((), (*array.shape, 2), longer):
            if t.pattern.unify(shape, known) is None:
                text = f"{signature.name}: argument {name!r}: expected shape "
                yield Bad(ShapeError, text, _with(sample, place, np.zeros(shape, array.dtype)), sample.attrs)
        known = t.pattern.unify(array.shape, known) or known


def _inputs(signature: Signature, sample: Sample) -> list[tuple[str, TensorType | None]]:
    """The inputs in order, with their types; None for one that the sample leaves out."""
    types = signature.cases[0][0]
    given = zip(signature.inputs, sample.arrays, strict=False)
    return [(name, None if array is None else types[name]) for name, array in given]


def _with(sample: Sample, place: int, array: Array) -> list[Any]:
    return [array if i == place else a for i, a in enumerate(sample.arrays)]
