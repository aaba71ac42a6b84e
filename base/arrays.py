"""Arrays as annotations name them."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

Arrays: TypeAlias = Mapping[str, Array]
"""Name → array."""
