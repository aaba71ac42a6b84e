"""The tables of ops and of functions composed of them, by name, filled by their definitions as they are imported."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..record.composed import Composed
    from ..record.op import Op

OPS: "dict[str, Op]" = {}
"""Every op record by name."""

COMPOSED: "dict[str, Composed]" = {}
"""Every record of a composed function by name."""


def require_free(kind: str, name: str) -> None:
    """Raise TypeError if a record has this name already."""
    for what, table in (("an op", OPS), ("a composed function", COMPOSED)):
        if name in table:
            raise TypeError(f"{kind} {name}: {what} of this name exists already")
