"""The table of ops: every op by name, filled by the op definitions as they are imported."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .op import Op

OPS: "dict[str, Op]" = {}
"""Every op record by name."""
