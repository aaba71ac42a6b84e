"""Arrays by name, as parameters are given: one flat dict."""

from collections.abc import Mapping
from typing import Any

from ..errors import DTypeError


def require_flat(where: str, values: Mapping[str, Any]) -> None:
    """Raise DTypeError for a dict in the dict."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            parts = ", ".join([repr(f"{name}.{part}") for part in _names(value)])
            raise DTypeError(f"{where}: expected arrays by name, got a dict for {name!r}; name its parts {parts}")


def _names(mapping: Any) -> list[str]:
    return [str(name) for name in mapping]
