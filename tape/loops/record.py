"""What records calls of bodies: functions are called on values that have only shapes, and become bodies of one call."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..graph.symbol import CHECKPOINT, COND, Why
from ..values.pytree import Nest, mapped
from ..var.var import AnyVar, is_var
from .body import sharing
from .body_tape import BodyTape
from .given import alike, placed, returned, truth_of, vars_of
from .once import CheckpointCall, CondCall, require_choices
from .scan import scan
from .while_loop import while_loop


def cond(tape: Any, pred: Any, on_true: Callable[..., Any], on_false: Callable[..., Any], args: Sequence[Any]) -> Nest:
    """What `dgrr.tape.ops.cond` does on a tape."""
    require_choices(tape, "cond", "write both sides, and ops.where")
    truth = truth_of("cond: argument 'pred': expected", placed(tape, "cond", "pred", pred), pred)
    functions = {"on_true": on_true, "on_false": on_false}
    sides = {name: _recorded(tape, COND, name, function, args) for name, function in functions.items()}
    (first, result), (second, other) = sides.values()
    ends = alike("cond: argument 'on_false'", "result", "on_true does", result, other)
    bodies, around = sharing({"on_true": (first, vars_of(result)), "on_false": (second, ends)})
    return _results(CondCall(tape, bodies, [truth, *around]), result)


def checkpoint(tape: Any, function: Callable[..., Any], args: Sequence[Any]) -> Nest:
    """What `dgrr.tape.checkpoint` does on a tape: what the function only hands on is what it was given."""
    inner, result = _recorded(tape, CHECKPOINT, "function", function, args)
    made = {x.id: x for x in vars_of(result)}
    handed = {leaf.id: x for x, leaf in inner.closed.values()}
    own = [x for id, x in made.items() if id not in handed]
    bodies, around = sharing({"body": (inner, own)})
    call = CheckpointCall(tape, bodies, around)
    results = call.vars([f"y {j}" for j in range(len(own))]).values()
    known = {**handed, **{x.id: y for x, y in zip(own, results, strict=True)}}
    return mapped(lambda _, x: known[x.id], result)


def _recorded(
    tape: Any, why: Why, argument: str, function: Callable[..., Any], args: Sequence[Any]
) -> tuple[BodyTape, Nest]:
    """The tape of a function, and what it gives. Vars among its arguments are seen by their shapes."""
    inner = BodyTape(tape, why)

    def seen(_: str, x: Any) -> Any:
        return inner.held(x) if is_var(x) else x

    with inner.recording():
        made = function(*[mapped(seen, x) for x in args])
        return inner, returned(inner, argument, "result", made)


def _results(call: CondCall, result: Nest) -> Nest:
    made = iter(call.vars([f"y {j}" for j in range(len(vars_of(result)))]).values())

    def taken(path: str, x: AnyVar) -> AnyVar:
        return next(made)

    return mapped(taken, result)


RECORDS: Mapping[str, Callable[..., Any]] = {
    "scan": scan,
    "while_loop": while_loop,
    "cond": cond,
    "checkpoint": checkpoint,
}
"""By the name of the op."""


def record_call(tape: Any, op: str, *call: Any) -> Any:
    """What an op that runs bodies does on a tape."""
    return RECORDS[op](tape, *call)
