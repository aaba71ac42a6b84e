"""The record of a pool: what `op` asks for, and what the rules of its windows already say.

Derived from the arguments of the public function are the rules, the shape of the result, what is refused, samples and
the batch axis. What a pool computes is said of an input and rules.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from ...record.derivative import NO_GRAD, NoGradient, RecordFunction, names_of, taking
from ...record.lowering import Slot
from ...record.op_decorator import op
from ...record.samples import Bad, Samples
from ...values.spec import Spec
from .rules import DILATING, SIZES, Rules, adaptive_rules, pooled, sliding_rules
from .samples import adaptives, plain, sliding_errors, x_errors

Function = TypeVar("Function", bound=Callable[..., Any])

ADAPTIVE = "output_size"
"""What a pool takes whose windows adapt."""

WINDOWS = (*DILATING, "ceil_mode", ADAPTIVE)
"""What windows are made from; other attributes are the pool's own."""


def pool_op(
    lower: Callable[..., Slot],
    reference: Callable[..., Any],
    vjp: RecordFunction | NoGradient = NO_GRAD,
    jvp: RecordFunction | None = None,
    *,
    dtype: np.dtype[Any] | None = None,
    samples: Samples | None = None,
    errors: tuple[Bad, ...] = (),
    **fields: Any,
) -> Callable[[Function], Function]:
    """Make an op of windows.

    Args:
        lower: ``lower(x, rules, own…)``, its steps.
        reference: ``reference(x, rules, own…)``, on arrays.
        vjp: ``vjp(g, …)`` of what it names among x, x_shape, y, rules and the pool's own attributes.
        jvp: ``jvp(dx, …)``, likewise; without it the pool is linear, and does the same to a tangent.
        dtype: of the result, where it is not that of x.
        samples: in the place of those that every pool takes.
        errors: what is refused beside what every pool refuses.
        fields: what `op` takes besides, or in the place of what is derived.
    """

    def make(function: Function) -> Function:
        name, values = function.__name__, function.__defaults__ or ()
        names = names_of(function)[1:]
        windows = [attribute for attribute in names if attribute in WINDOWS]
        defaults = dict(zip(names[len(names) - len(values) :], values, strict=True))

        def rules_of(given: Mapping[str, Any]) -> Rules:
            if ADAPTIVE in given:
                return adaptive_rules(given[ADAPTIVE])
            return sliding_rules(name, **{attribute: given[attribute] for attribute in windows})

        def own(given: Mapping[str, Any]) -> dict[str, Any]:
            return {attribute: value for attribute, value in given.items() if attribute not in windows}

        def infer(x: Spec, **attrs: Any) -> Spec:
            return Spec(pooled(name, x, rules_of(attrs)).shape, x.dtype if dtype is None else dtype)

        def lowered(x: Slot, **attrs: Any) -> Slot:
            return lower(x, rules_of(attrs), **own(attrs))

        def computed(x: Any, *values: Any, **attrs: Any) -> Any:
            given = {**defaults, **dict(zip(names, values, strict=False)), **attrs}
            return reference(x, rules_of(given), **own(given))

        def derivatives() -> dict[str, Any]:
            if isinstance(vjp, NoGradient):
                return {"along": NO_GRAD}
            forth = _by_attributes(jvp, windows, rules_of) if jvp else taking(["dx", *names], lambda *all: made(*all))
            return {"vjp": (_by_attributes(vjp, windows, rules_of),), "jvp": forth}

        every = sliding_errors(name) if ADAPTIVE not in windows else x_errors(name, ADAPTIVE)
        derived: dict[str, Any] = {
            "infer": infer,
            "lower": lowered,
            **derivatives(),
            "reference": computed,
            "samples": samples or (plain if ADAPTIVE not in windows else adaptives),
            "errors": (*every, *errors),
            "batch_axis": {"x": 0},
            "kinds": {key: kind for key, kind in {**DILATING, ADAPTIVE: SIZES}.items() if key in windows},
        }
        made: Function = op(**{**derived, **fields})(function)
        return made

    return make


def _by_attributes(rule: Callable[..., Any], windows: list[str], rules_of: Callable[[Mapping[str, Any]], Rules]) -> Any:
    """A derivative that takes rules, as one that takes what they are made from."""
    others = [name for name in names_of(rule) if name != "rules"]

    def derivative(*given: Any) -> Any:
        known = dict(zip([*others, *windows], given, strict=True))
        return rule(**{name: known[name] for name in others}, rules=rules_of(known))

    return taking([*others, *windows], derivative)
