"""The tables of what is recorded: a row for each step, or one for each number of each tensor."""

from collections.abc import Iterator
from typing import get_args

from ..v2.read.reader import Form, Trace
from .columns import Columns, wide


def require_form(call: str, form: str) -> None:
    """Raise ValueError for what is no form."""
    if form not in get_args(Form):
        raise ValueError(f"{call}: argument 'form': expected 'wide' or 'long', got {form!r}")


def tables(trace: Trace, form: Form) -> Iterator[Columns]:
    """The table of a form, in pieces of bounded size, at least one; all have the same columns and words."""
    if form == "wide":
        yield wide(trace)
    else:
        from .long_form import Long  # numba stands behind it, which the other form does without

        yield from Long(trace).pieces()
