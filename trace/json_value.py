"""Values as JSON has them."""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, ClassVar, cast


class Plain:
    """A dataclass that programs get in plain types: its fields, or what `_keys` names or `_told` says instead."""

    __slots__ = ()
    _keys: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain types as JSON has them, by the names of the attributes."""
        return {name: json_value(value) for name, value in self._told().items()}

    def _told(self) -> Mapping[str, object]:
        """What programs get, by name and in that order."""
        return {name: getattr(self, name) for name in self._keys or _field_names(self)}


def _field_names(value: object) -> list[str]:
    return [field.name for field in fields(cast(Any, value))]


def json_value(value: object) -> Any:
    """A value as JSON has it: bytes in hexadecimal, what is not finite as the text ``nan``, ``inf`` or ``-inf``,
    dataclasses by the names of their fields, sets in order.

    >>> import numpy as np
    >>> json_value({"loss": np.float32("inf"), "shape": (2, 3), "root": bytes(2)})
    {'loss': 'inf', 'shape': [2, 3], 'root': '0000'}
    """
    if isinstance(value, Enum):
        return json_value(value.value)
    if type(value).__module__ == "numpy":  # not imported: the pytest plugin has results, and does without it
        return json_value(cast(Any, value).tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in cast(Mapping[object, object], value).items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in cast(Sequence[object], value)]
    if isinstance(value, Set):
        return sorted(json_value(item) for item in cast(Set[object], value))
    if isinstance(value, Plain):
        return value.to_dict()
    if is_dataclass(value):
        return {name: json_value(getattr(value, name)) for name in _field_names(value)}
    return value
