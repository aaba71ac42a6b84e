"""The private op that is the mean of a loss, for those that have one: its record, and when it says all.

It has the name of the loss and takes no optional input; where there are classes, it is of rows.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from operator import itemgetter
from typing import Any, cast, get_type_hints

import numpy as np

from ....base.arrays import Array
from ...numerics.engine.kernel import Kernel
from ...numerics.math.reference import sums as reference_sums
from ...numerics.simd import sums
from ...record.derivative import NoGradient, RecordFunction, names_of, taking
from ...record.lowering import Slot, call, elementwise
from ...record.op import OPS, Advice
from ...record.op_decorator import op
from ...record.pointwise_op import read
from ...record.refusals import Kinds
from ...record.samples import Bad, Samples
from ...record.signature import Signature
from ...record.types import B, S
from ...var.var import shape_of
from ..elementwise.arithmetic import divide, mul, neg, sub
from ..reduce.reduce import broadcast_to, reduce_sum
from ..shape.reshape import reshape

SUMS = {"batch": "it averages over the batch"}

Function = Callable[..., Any]
Given = Mapping[str, Any]
"""The arguments of a call by name."""


@dataclass(frozen=True)
class MeanOp:
    """What the op of a loss of two inputs says beside the annotations and kinds of the loss: fields that `op` takes."""

    lower: RecordFunction
    vjp: Sequence[RecordFunction | NoGradient]
    jvp: RecordFunction
    reference: RecordFunction
    samples: Samples
    errors: Sequence[Bad] = ()
    advice: Advice | None = None


class Mean:
    """The mean of a loss as an op."""

    def __init__(self, shown: Function, doc: str, kinds: Kinds, fields: MeanOp) -> None:
        """``shown`` has the annotations of the loss."""
        whole = Signature(shown, exact=False)
        self.inputs, self.optional, types = whole.inputs, whole.optional, whole.cases[0][0]
        self.of_rows, self.all_classes = (bool(types[name].pattern.after) for name in self.inputs[:2])
        function = _without(shown, {*self.optional, "reduction"}, self.of_rows)
        function.__doc__ = doc.partition("\n\n")[0]
        limits = {name: kind for name, kind in kinds.items() if name in function.__annotations__}
        values = zip(whole.names, whole.tail, strict=True)
        defaults = {name: value for name, value in values if name in whole.attributes and name != "reduction"}
        given: dict[str, Any] = {**vars(fields), "reference": partial(fields.reference, **defaults)}
        op(kinds=limits, excused=SUMS, private=True, **given)(function)
        self.op = OPS[whole.name]
        self._taken: Callable[[Given], tuple[Any, ...]] = itemgetter(*self.op.signature.names)

    def is_meant(self, given: Given) -> bool:
        """Whether a call asks for what the op gives."""
        return given["reduction"] == "mean" and all(given[name] is None for name in self.optional)

    def takes(self, given: Given) -> bool:
        """Whether the op takes the inputs as they are, or has the words for what is wrong with them."""
        if not self.of_rows:
            return True
        shape, other = (tuple(getattr(given[name], "shape", (0, 0))) for name in self.inputs[:2])
        fits = other == (shape if self.all_classes else shape[:-1])
        return len(shape) == 2 or (self.op.advice is not None and not fits)

    def __call__(self, given: Given) -> Any:
        """The op of what is given."""
        return self.op.call(*self._taken(given))

    def reference(self, given: Given) -> Array:
        """Its reference, of rows with the classes behind any axes."""
        rows, signature = self.rows(given, np.reshape), self.op.signature
        attrs = {name: rows[name] for name in signature.attributes}
        made: Array = self.op.reference(*[rows[name] for name in signature.inputs], **attrs)
        return made

    def rows(self, given: Given, shaped: Function = reshape) -> Given:
        """The same with rows of scores: what there is where it is that already."""
        first, second = self.inputs[:2]
        *leading, classes = shape_of(given[first])
        if not self.of_rows or len(leading) == 1:
            return given
        rows = (prod(leading), classes)
        scores = shaped(given[first], rows)
        return {**given, first: scores, second: shaped(given[second], rows if self.all_classes else rows[:1])}


def _without(shown: Function, left_out: set[str], rows: bool) -> Any:
    """A function with these parameters less, of rows where another takes any leading axes."""

    def mean() -> None: ...

    signature, hints = inspect.signature(shown), get_type_hints(shown)
    kept = [p for name, p in signature.parameters.items() if name not in left_out]
    made: Any = mean
    made.__name__, made.__module__, made.__qualname__ = shown.__name__, shown.__module__, f"{shown.__name__}.mean"
    made.__signature__ = signature.replace(parameters=kept)
    made.__annotations__ = {n: _of_rows(h) if rows else h for n, h in hints.items() if n not in left_out}
    return made


def _of_rows(hint: Any) -> Any:
    """``Var[F, *S, C]`` as ``Var[F, B, C]``."""
    names = getattr(hint, "__parameters__", ())
    return hint[tuple(B if name is S else name for name in names)] if S in names else hint


# ------------------------------------------------------------------ fields


def mean_of(terms: Slot) -> Slot:
    """The mean of all elements."""
    n = terms.spec.size
    return call(sums.mean_rows, [terms], (), 1, n, work=n)


def of_formula(kernel: Kernel, *, work: int = 1) -> dict[str, Any]:
    """The fields of the mean of a formula of two arrays, and of numbers that have the names of attributes."""
    names = names_of(kernel.formula)[2:] if kernel.formula else ()

    def lower(a: Slot, b: Slot, **numbers: float) -> Slot:
        return mean_of(elementwise(kernel, a, b, attrs=[float(numbers[name]) for name in names], work=work))

    def reference(a: Array, b: Array, **numbers: float) -> Array:
        terms = read(kernel)(a, b, *[a.dtype.type(numbers[name]) for name in names])
        return np.asarray(reference_sums.row_sum(terms) / terms.dtype.type(terms.size))

    return {"lower": lower, "reference": reference}


def of_difference(slope: RecordFunction) -> dict[str, Any]:
    """The fields of the derivatives of a mean of terms of ``a - b``, which have this slope by a."""
    names, of_term = ("a_shape", *names_of(slope)), cast(Function, slope)

    def mean_slope(a_shape: tuple[int, ...], *given: Any) -> Any:
        return divide(of_term(*given), prod(a_shape))

    def by_a(g: Any, a_shape: tuple[int, ...], *given: Any) -> Any:
        return mul(mean_slope(a_shape, *given), broadcast_to(g, a_shape))

    def by_b(g: Any, *given: Any) -> Any:
        return neg(by_a(g, *given))

    def by_both(da: Any, db: Any, *given: Any) -> Any:
        return reduce_sum(mul(sub(da, db), mean_slope(*given)))

    back = (taking(("g", *names), by_a), taking(("g", *names), by_b))
    return {"vjp": back, "jvp": taking(("da", "db", *names), by_both)}
