"""Whose tape records a call of functions."""

from typing import Any

from ...errors import TapeError
from ...values.pytree import Nest, leaves
from ...var.var import Var


def owner_of(op: str, nest: Nest, among: str) -> Any:
    """The tape of the first Var in a nest. Raises TapeError if there is none."""
    owner = next((x.tape for _, x in leaves(nest) if isinstance(x, Var)), None)
    if owner is None:
        raise TapeError(f"{op}: expected a Var in {among}; put an array on a tape with tape.const")
    return owner
