"""Properties of what an op's record says: its errors, its documentation, the names it covers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dgrr.tape import Tape
from dgrr.tape.record.op import Op
from dgrr.tape.record.samples import Bad
from dgrr.tape.var.op_table import COMPOSED, OPS

from .cases import Record
from .documentation import check_docstring


def check_errors(op: Record) -> None:
    """Each bad input is refused with its error and text, and leaves nothing on the tape but the leaves."""
    private = isinstance(op, Op) and op.private
    assert op.refused or private, f"{op.name}: a public op must say what it refuses"
    for sample in op.refused:
        tape: Tape[Any] = Tape()
        inputs = [tape.leaf(a) if isinstance(a, np.ndarray) else a for a in sample.arrays]
        before = len(tape)
        _check_refusal(op, sample, _refusal(op, inputs, sample))
        assert len(tape) == before, f"{op.name}: refused, and the tape has grown by {len(tape) - before} nodes"


def _refusal(op: Record, inputs: list[Any], sample: Bad) -> Exception:
    try:
        op(*inputs, **sample.attrs)
    except Exception as error:
        return error
    raise AssertionError(f"{op.name}: accepted what must fail with {sample.text!r}")


def _check_refusal(op: Record, sample: Bad, error: Exception) -> None:
    text = str(error)
    assert type(error) is sample.error, f"{op.name}: expected {sample.error.__name__}, got {error!r}"
    assert sample.text in text, f"{op.name}: expected an error that says {sample.text!r}, got {text!r}"
    for part in (f"{op.name}: argument '", "expected ", "got "):
        assert part in f"{text}", f"{op.name}: an error must say {part!r}, got {text!r}"


def check_documentation(op: Record) -> None:
    """The docstring is whole; the record stands under its name; no other covers the same names."""
    check_docstring(op)
    assert op.function.__name__ == op.name
    others = {name for other in (*OPS.values(), *COMPOSED.values()) if other.name != op.name for name in other.covers}
    assert not others & set(op.covers), f"{op.name}: {others & set(op.covers)} are covered twice"
    assert not (isinstance(op, Op) and op.private and op.covers), f"{op.name}: a private op covers {op.covers}"
    assert all(op.excused.values()), f"{op.name}: an excuse without a reason"


RECORD: dict[str, Callable[[Any], None]] = {
    "errors": check_errors,
    "documentation": check_documentation,
}
