"""Recording a loop: the body is called once, on values that have only shapes, and what it leaves becomes one call."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from ..errors import DTypeError, GradientError, ShapeError
from ..graph.symbol import SCAN
from ..record.kinds import Kind
from ..values.pytree import Nest, beside, leaves, mapped
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, is_var, shape_of
from .body import Body
from .body_tape import BodyTape
from .scan_loop import ScanLoop

LENGTH = Kind(int | None)
TRUTH = Kind(bool)


def scan(
    tape: Any, body: Callable[[Any, Any], Any], carry: Nest, xs: Nest, length: Any, reverse: Any
) -> tuple[Nest, Nest]:
    """What `dgrr.tape.ops.scan` does on a tape."""
    reverse = TRUTH("scan: argument 'reverse'", reverse)
    start = mapped(partial(_placed, tape, "carry"), carry)
    rows = mapped(partial(_placed, tape, "xs"), xs)
    steps = _steps(rows, LENGTH("scan: argument 'length'", length))
    recorded, given = _recorded(tape, body, start, rows)
    inputs = [*_vars(start), *_vars(rows), *recorded.around]
    loop = ScanLoop(tape, recorded, inputs, steps, reverse)
    if not steps:
        return start, mapped(lambda _, y: tape.const(_empty(y)), given)
    made = loop.vars([f"carry {i}" for i in range(len(recorded.carry))] + [f"y {j}" for j in range(len(recorded.ys))])
    results = iter(made.values())

    def taken(path: str, x: AnyVar) -> AnyVar:
        return next(results)

    return mapped(taken, start), mapped(taken, given)


def _vars(nest: Nest) -> list[AnyVar]:
    return [x for _, x in leaves(nest)]


def _empty(y: AnyVar) -> AnyTensor:
    return AnyTensor(np.empty((0, *shape_of(y)), y.dtype))


def _placed(tape: Any, argument: str, path: str, x: Any) -> AnyVar:
    """A value on the tape of the loop. Raises DTypeError for what has no element type, TapeError for another tape's."""
    where = f"scan: argument '{argument}{path}'"
    if is_var(x):
        held = tape.held(x) if isinstance(tape, BodyTape) else x
        tape.node(held)
        return held
    if isinstance(x, np.ndarray | AnyTensor):
        made: AnyVar = tape.const(x)
        return made
    raise DTypeError(
        f"{where}: expected a Var or an array, or a tuple, list or dict of them, got {type(x).__name__}; "
        "a number has no element type of its own: write np.zeros((), np.float32)"
    )


def _steps(rows: Nest, length: int | None) -> int:
    """How many steps there are. Raises ShapeError where that is not clear."""
    sizes = [(f"'xs{path}'", shape_of(x)) for path, x in leaves(rows)]
    for name, shape in sizes:
        if not shape:
            raise ShapeError(f"scan: argument {name}: expected an axis for the steps, got shape ()")
    if length is not None:
        if length < 0:
            raise ShapeError(f"scan: argument 'length': expected at least 0, got {length}")
        sizes.insert(0, ("'length'", (length,)))
    if not sizes:
        raise ShapeError("scan: expected xs, or length, to say how many steps there are, got neither")
    first, (steps, *_) = sizes[0]
    for name, shape in sizes:
        if shape[0] != steps:
            raise ShapeError(f"scan: argument {name}: expected {steps} rows, as {first} says, got shape {shape}")
    return steps


def _recorded(tape: Any, body: Callable[[Any, Any], Any], start: Nest, rows: Nest) -> tuple[Body, Nest]:
    """The body, and the nest of what it gives in a step."""
    inner = BodyTape(tape, SCAN)

    def before(_: str, x: AnyVar) -> AnyVar:
        return inner.symbol(x.value.spec, x.name)

    def row(_: str, x: AnyVar) -> AnyVar:
        return inner.symbol(Spec(shape_of(x)[1:], x.dtype), x.name, tape.node(x).requires_grad)

    with inner.recording():
        carry, x = mapped(before, start), mapped(row, rows)
        returned = body(carry, x)
        after, ys = _pair(returned)
        after = mapped(partial(_given, inner, "carry"), after)
        ys = mapped(partial(_given, inner, "y"), ys)
        ends = _alike(carry, after)
    return Body.of(inner, _vars(ys), _vars(carry), _vars(x), ends), ys


def _pair(returned: Any) -> tuple[Nest, Nest]:
    parts: Any = cast(Any, returned) if isinstance(returned, tuple) else ()
    if len(parts) != 2:
        got = f"a tuple of {len(parts)}" if isinstance(returned, tuple) else type(returned).__name__
        raise DTypeError(f"scan: argument 'body': expected it to return (carry, y), got {got}; y may be None")
    return parts[0], parts[1]


def _given(inner: BodyTape, what: str, path: str, x: Any) -> AnyVar:
    """What the body gives, on its tape."""
    if is_var(x):
        return inner.held(x)
    if isinstance(x, np.ndarray | AnyTensor):
        return inner.const(x)
    raise DTypeError(f"scan: argument 'body': expected a Var or an array for {what}{path}, got {type(x).__name__}")


def _alike(carry: Nest, after: Nest) -> Sequence[AnyVar]:
    """The state after a step. Raises ShapeError unless it is nested as the state before, with the same shapes."""
    try:
        pairs = list(beside(carry, after, "scan", "carry"))
    except GradientError as error:
        wanted = str(error).removeprefix("scan: argument '").replace("': expected", " as", 1)
        raise ShapeError(f"scan: argument 'body': expected it to return {wanted}") from None
    for path, x, y in pairs:
        was, now = x.value.spec, None if y is None else y.value.spec
        if now is not was:
            got = "None" if now is None else f"{now.dtype} of shape {now.shape}"
            raise ShapeError(
                f"scan: argument 'body': expected it to return {path} as it was given, {was.dtype} of shape "
                f"{was.shape}, got {got}"
            )
    return [y for _, _, y in pairs]
