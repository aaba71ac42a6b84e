"""The tables of ops and of functions composed of them, by name, filled by their definitions as they are imported.

Here they are typed as operators use them; `record.op` and `record.composed` give the same tables with whole records.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np


class Operands(Protocol):
    """What operators ask of a signature."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the operands."""
        ...

    def require_dtypes(self, *dtypes: np.dtype[Any] | None) -> None:
        """Raise DTypeError for operands of other element types."""
        ...


class Callee(Protocol):
    """What operators ask of a record."""

    @property
    def signature(self) -> Operands:
        """What it takes."""
        ...

    @property
    def private(self) -> bool:
        """Whether it has no public function."""
        ...

    @property
    def call(self) -> Callable[..., Any]:
        """The function that applies it: operators enter it without a step between."""
        ...


OPS: dict[str, Callee] = {}
"""Every op record by name."""

COMPOSED: dict[str, object] = {}
"""Every record of a composed function by name."""


def require_free(kind: str, name: str, *, over_private: bool = False) -> None:
    """Raise TypeError if a record has this name already; a private op may be the plain form of a composed function."""
    if name in OPS and not (over_private and OPS[name].private):
        raise TypeError(f"{kind} {name}: an op of this name exists already")
    if name in COMPOSED:
        raise TypeError(f"{kind} {name}: a composed function of this name exists already")
