"""What an attribute may be: `types` from its annotation, `values` from the record's ``kinds``."""

from .types import LEAST, MISFIT, MOST, Kind, integer, require_in_range, shown

__all__ = ["LEAST", "MISFIT", "MOST", "Kind", "integer", "require_in_range", "shown"]
