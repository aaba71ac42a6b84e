"""How an op is made: the decorator that makes a record of a typed function and what its author says of it."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

from ..var.op_table import require_free
from .derivative import NO_GRAD, AlongAll, Derivative, NoGradient, RecordFunction
from .description import require_docstring
from .op import OPS, Advice, Meaning, Op
from .refusals import Kinds
from .samples import Bad, Samples
from .signature import Signature

F = TypeVar("F", bound=Callable[..., Any])

Rules = Sequence[RecordFunction | NoGradient] | NoGradient
"""A derivative rule for each input, or none for all."""


def op(
    *,
    lower: RecordFunction,
    reference: RecordFunction,
    samples: Samples,
    errors: Sequence[Bad] = (),
    along: Rules | None = None,
    vjp: Rules | None = None,
    jvp: RecordFunction | NoGradient | None = None,
    kinds: Kinds | None = None,
    infer: RecordFunction | None = None,
    covers: Sequence[str] = (),
    batch_axis: Mapping[str, int] | None = None,
    excused: Mapping[str, str] | None = None,
    private: bool = False,
    named: tuple[str, Meaning] | None = None,
    advice: Advice | None = None,
    instead: Mapping[str, str] | None = None,
    repeats: bool = False,
) -> Callable[[F], F]:
    """Make an op of a function whose annotations are its shape rule and whose docstring says what it does.

    ``along`` says of each input what a direction ``d`` at it becomes: a cotangent on its way back, and a tangent on its
    way forth, which are then summed. Where the two are not of one form, or their sum has other bits, ``vjp`` and
    ``jvp`` say them.

    Raises TypeError, at import, for a record with a part missing or derivatives that do not fit.
    """

    def make(function: F) -> F:
        signature = Signature(function, exact=infer is None)
        _check(function, signature)
        back, forth = _derivatives(signature, along, vjp, jvp)
        record = Op(
            name=function.__name__,
            doc=inspect.cleandoc(function.__doc__ or ""),
            function=function,
            signature=signature,
            infer=infer,
            lower=lower,
            vjp=back,
            jvp=forth,
            reference=reference,
            samples=samples,
            errors=errors,
            kinds=kinds or {},
            covers=tuple(covers),
            batch_axis=batch_axis or {},
            excused=excused or {},
            private=private,
            named=named,
            advice=advice,
            instead=instead or {},
            repeats=repeats,
        )
        OPS[record.name] = record
        return _public(function, record)

    return make


def _public(function: F, record: Op) -> F:
    """The function users call: that of the record under the function's own name, signature and its description."""
    call = wraps(function)(record.call)
    call.__doc__ = str(record.description)
    return call  # type: ignore[return-value]


def _derivatives(
    signature: Signature, along: Rules | None, vjp: Rules | None, jvp: RecordFunction | NoGradient | None
) -> tuple[tuple[Derivative | NoGradient, ...], Derivative | AlongAll | NoGradient]:
    """The VJP of each input, and the JVP."""
    rules, given = (along, "d") if vjp is None else (vjp, "g")
    if rules is None or (jvp is None and along is None):
        raise TypeError(f"op {signature.name}: expected along=, or vjp= and jvp=")
    count = len(signature.inputs)
    each = [NO_GRAD] * count if isinstance(rules, NoGradient) else rules
    if len(each) != count:
        raise TypeError(f"op {signature.name}: {count} inputs need as many VJPs, got {len(each)}; NO_GRAD says none")
    back = tuple(_derivative(rule, signature, [given]) for rule in each)
    if jvp is not None:
        return back, _derivative(jvp, signature, [f"d{name}" for name in signature.inputs])
    return back, AlongAll(back, lambda: OPS["add"]) if any(isinstance(r, Derivative) for r in back) else NO_GRAD


def _derivative(
    rule: RecordFunction | NoGradient, signature: Signature, given: Sequence[str]
) -> Derivative | NoGradient:
    return rule if isinstance(rule, NoGradient) else Derivative(signature.name, rule, signature, given)


def _check(function: Callable[..., Any], signature: Signature) -> None:
    name = function.__name__
    require_free("op", name)
    require_docstring("op", function)
    if signature.names != signature.inputs + signature.attributes:
        raise TypeError(f"op {name}: inputs must come before attributes, got {', '.join(signature.names)}")
