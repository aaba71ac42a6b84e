"""Recording a loop: the body is called once, on values that have only shapes, and what it leaves becomes one call."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ..errors import DTypeError, ShapeError
from ..graph.symbol import SCAN
from ..record.kinds import Kind
from ..values.pytree import Nest, leaves, mapped
from ..values.spec import Spec
from ..values.tensor import AnyTensor
from ..var.var import AnyVar, shape_of
from .body import Body
from .body_tape import BodyTape
from .given import alike, placed, returned, vars_of
from .scan_loop import ScanLoop

LENGTH = Kind(int | None)
TRUTH = Kind(bool)


def scan(
    tape: Any, body: Callable[[Any, Any], Any], carry: Nest, xs: Nest, length: Any, reverse: Any
) -> tuple[Nest, Nest]:
    """What `dgrr.tape.ops.scan` does on a tape."""
    reverse = TRUTH("scan: argument 'reverse'", reverse)
    start = placed(tape, "scan", "carry", carry)
    rows = placed(tape, "scan", "xs", xs)
    steps = _steps(rows, LENGTH("scan: argument 'length'", length))
    recorded, given = _recorded(tape, body, start, rows)
    inputs = [*vars_of(start), *vars_of(rows), *recorded.around]
    loop = ScanLoop(tape, recorded, inputs, steps, reverse)
    if not steps:
        return start, mapped(lambda _, y: tape.const(_empty(y)), given)
    made = loop.vars([f"carry {i}" for i in range(len(recorded.carry))] + [f"y {j}" for j in range(len(recorded.ys))])
    results = iter(made.values())

    def taken(path: str, x: AnyVar) -> AnyVar:
        return next(results)

    return mapped(taken, start), mapped(taken, given)


def _empty(y: AnyVar) -> AnyTensor:
    return AnyTensor(np.empty((0, *shape_of(y)), y.dtype))


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
        after, ys = _pair(body(carry, x))
        after, ys = returned(inner, "body", "carry", after), returned(inner, "body", "y", ys)
        ends = alike("scan: argument 'body'", "carry", "it was given", carry, after)
    return Body.of(inner, vars_of(ys), vars_of(carry), vars_of(x), ends), ys


def _pair(given: Any) -> tuple[Nest, Nest]:
    parts: Any = cast(Any, given) if isinstance(given, tuple) else ()
    if len(parts) != 2:
        got = f"a tuple of {len(parts)}" if isinstance(given, tuple) else type(given).__name__
        raise DTypeError(f"scan: argument 'body': expected it to return (carry, y), got {got}; y may be None")
    return parts[0], parts[1]
