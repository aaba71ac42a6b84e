"""Values as JSON has them."""

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Any, cast

import numpy as np


def json_value(value: object) -> Any:
    """A value as JSON has it: bytes in hexadecimal, what is not finite as the text ``nan``, ``inf`` or ``-inf``.

    >>> json_value({"loss": np.float32("inf"), "shape": (2, 3), "root": bytes(2)})
    {'loss': 'inf', 'shape': [2, 3], 'root': '0000'}
    """
    if isinstance(value, Enum):
        return json_value(value.value)
    if isinstance(value, np.generic):
        return json_value(cast(Any, value).item())
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
    return value
