"""The record of a loss: its terms, and what becomes of them.

A loss says what the term of each element or row is, in ops and in numpy. Its reductions, what it refuses, its samples
and its op of the mean, where it has one, follow from that and from the annotations of its first overload.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any, cast, get_overloads, get_type_hints

import numpy as np

from ....base.arrays import Array
from ...record.composed import composed, fitted
from ...record.derivative import RecordFunction, names_of
from ...record.kinds.values import Values
from ...record.refusals import Kinds
from ...record.samples import Bad, Make, Sample, Samples
from ...record.signature import Signature, TensorType
from ...record.types import S
from ...values.dtypes import i64
from ...var.var import AnyVar
from .mean import Mean, MeanOp
from .reduction import REDUCTION, reduced, reference_reduced

SUMS = {"batch": "by default it averages over the batch"}
SENTENCE = '``reduction="sum"`` adds the terms up, ``"none"`` gives them.'
CLASSES = 4
"""How many there are in samples, or elements of vectors."""

Function = Callable[..., Any]
Settings = Sequence[Mapping[str, Any]]


def loss(
    reference: RecordFunction,
    *,
    mean: MeanOp | None = None,
    reduction: Values = REDUCTION,
    kinds: Kinds | None = None,
    draw: Mapping[str, Callable[..., Array]] | None = None,
    settings: Settings = (),
    more: Samples | None = None,
    errors: Sequence[Bad] = (),
    covers: Sequence[str] = (),
    instead: Mapping[str, str] | None = None,
) -> Callable[[Function], Function]:
    """Make a loss of a function that gives its terms, below the overloads of its reductions.

    Args:
        reference: the terms in numpy.
        mean: the private op that is the mean where no optional input is given.
        reduction: which reductions there are.
        kinds: which values attributes, and weights, take.
        draw: by the names of inputs what draws them for samples; else numbers, positive weights, and labels.
        settings: attributes under which it has samples too.
        more: samples beside those that are derived.
        errors: what is refused beside what annotations and kinds say.
        covers: names of the documented op set.
        instead: for attributes that are numbers, the expressions that do the same with a Var.

    The function and ``reference`` take all arguments by name, without the reduction; or with it, and apply it.
    """

    def make(terms: Function) -> Function:
        shown, doc = get_overloads(terms)[0], inspect.cleandoc(terms.__doc__ or "")
        signature, limits = Signature(shown, exact=False), {**(kinds or {}), "reduction": reduction}
        form = None if mean is None else Mean(shown, doc, limits, mean)
        whole = _as(shown, terms, _under_reductions(terms, signature, form))
        whole.__doc__ = doc.replace("\n\nSource:", f"\n\n{SENTENCE}\n\nSource:") if reduction is REDUCTION else doc
        samples = _samples(signature, draw or {}, settings)
        return composed(
            reference=_reference(reference, signature, form),
            samples=lambda made: [*samples(made), *(more(made) if more else ())],
            errors=errors,
            kinds=limits,
            covers=covers,
            excused=SUMS,
            instead=instead,
        )(whole)

    return make


def _as(shown: Function, source: Function, made: Any) -> Function:
    """The function with the name and the parameters of one overload, of any reduction, and the source of another."""
    for attribute in ("__name__", "__qualname__", "__module__"):
        setattr(made, attribute, getattr(shown, attribute))
    made.__annotations__ = {**get_type_hints(shown), "reduction": str, "return": AnyVar}
    signature = inspect.signature(shown)
    parameters = [p.replace(annotation=made.__annotations__[name]) for name, p in signature.parameters.items()]
    made.__wrapped__, made.__signature__ = source, signature.replace(parameters=parameters, return_annotation=AnyVar)
    function: Function = made
    return function


def _under_reductions(terms: Function, signature: Signature, mean: Mean | None) -> Function:
    """The loss under every reduction."""

    finished = _reducing(terms, reduced)

    def whole(*args: Any, **kwargs: Any) -> Any:
        given = signature.bound(args, kwargs)
        meant = mean if mean is not None and mean.is_meant(given) else None
        if meant and meant.takes(given):
            return meant(given)
        inputs = fitted(signature.name, *[given[name] for name in signature.inputs])
        given |= zip(signature.inputs, inputs, strict=True)
        return meant(meant.rows(given)) if meant else finished(given)

    return whole


def _reducing(terms: RecordFunction, reduce: Function) -> Callable[[Mapping[str, Any]], Any]:
    """What makes the terms of what is given and reduces them, unless they are reduced already."""
    made, names = cast(Function, terms), names_of(terms)
    if "reduction" in names:
        return lambda given: made(*[given[name] for name in names])
    return lambda given: reduce(made(*[given[name] for name in names]), given["reduction"])


def _reference(terms: RecordFunction, signature: Signature, mean: Mean | None) -> Function:
    """The loss under every reduction, slow and obvious."""
    defaults, finished = dict(zip(signature.names, signature.tail, strict=True)), _reducing(terms, reference_reduced)

    def reference(*arrays: Array, **attrs: Any) -> Array:
        given = {**defaults, **dict(zip(signature.inputs, arrays, strict=False)), **attrs}
        with np.errstate(all="ignore"):
            if mean is not None and mean.is_meant(given):
                return np.asarray(mean.reference(given))
            return np.asarray(finished(given))

    return reference


# ------------------------------------------------------------------ samples


def _samples(signature: Signature, draw: Mapping[str, Callable[..., Array]], settings: Settings) -> Samples:
    """Several axes, none, one of no element, another order; each reduction, weights and none, and each setting."""
    types, _ = signature.cases[0]

    def drawn(make: Make, shape: tuple[int, ...], weighted: bool, **attrs: Any) -> Sample:
        known = dict.fromkeys([axis for t in types.values() for axis in t.pattern.after], CLASSES)
        sizes = {**known, S: shape, Any: shape[-1:]}
        given = [(draw.get(name) or _draw(types[name]), types[name]) for name in signature.inputs]
        arrays = [None if t.optional and not weighted else d(make, *t.pattern.sizes(sizes)) for d, t in given]
        return Sample(tuple(arrays), attrs)

    def samples(make: Make) -> list[Sample]:
        made = [
            drawn(make, (3, 11), weighted=False),
            drawn(make, (0,), weighted=False),
            drawn(make, (), weighted=True, reduction="sum"),
            drawn(make, (2, 3), weighted=True, reduction="none"),
        ]
        turns = zip(settings, cycle(("none", "sum", "mean")))
        made += [drawn(make, (3, 7), weighted=i % 2 > 0, **{**s, "reduction": r}) for i, (s, r) in enumerate(turns)]
        turned = [None if a is None else np.asfortranarray(a) for a in made[0].arrays]
        return [*made, Sample(tuple(turned), {"reduction": "sum"})]

    return samples


def _draw(t: TensorType) -> Callable[..., Array]:
    """What draws an input of this type."""
    return _labels if t.dtype is i64 else Make.positive if t.optional else Make.__call__


def _labels(make: Make, *shape: int) -> Array:
    return make.indices(CLASSES, *shape)
