"""The tables of what is recorded: a row for each step, or one for each number of each tensor."""

from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

from ...base.errors import DomainError
from ..v2.read.reader import TraceReader
from .columns import Columns, wide

Form: TypeAlias = Literal["wide", "long"]
"""What a row of a table of steps is: a step, or a number of it."""


def require_form(call: str, form: str) -> None:
    """Raise DomainError for what is no form."""
    if form not in get_args(Form):
        raise DomainError(f"{call}: argument 'form': expected 'wide' or 'long', got {form!r}")


def tables(trace: TraceReader, form: Form) -> Iterator[Columns]:
    """The table of a form, in pieces of bounded size, at least one; all have the same columns and words."""
    if form == "wide":
        yield wide(trace)
    else:
        from .long_form import Long  # numba stands behind it, which the other form does without

        yield from Long(trace).pieces()
