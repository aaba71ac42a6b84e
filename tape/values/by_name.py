"""Arrays by name, as parameters are given: one flat dict."""

from collections.abc import Mapping
from typing import Any, cast

from ..errors import DTypeError


def require_flat(where: str, values: object) -> None:
    """Raise DTypeError for a dict in the dict, or for no dict at all."""
    if not isinstance(values, Mapping):
        kind = type(values).__name__
        raise DTypeError(f"{where}: expected a dict of arrays by name, as model.init(seed) makes it, got {kind}")
    for name, value in cast(Mapping[str, Any], values).items():
        if isinstance(value, Mapping):
            parts = ", ".join([repr(f"{name}.{part}") for part in _names(value)])
            raise DTypeError(f"{where}: expected arrays by name, got a dict for {name!r}; name its parts {parts}")


def _names(mapping: Any) -> list[str]:
    return [str(name) for name in mapping]
