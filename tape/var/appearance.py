"""What notebooks show of a Var."""

from typing import Any

import numpy as np

from ...base.printed import facts, panel, text
from ...screen.pictures import Picture
from ..errors import TapeError
from .handle import Handle

_VALUES = 60
"""Elements beyond which some of them stand for all."""


def var_html(var: Handle[Any]) -> str:
    """Where it stands, how it was made, a picture of it, and its values: the first and the last of each axis."""
    node = var.tape.node(var)
    found = {"shape": node.value.sizes, "dtype": node.value.dtype}
    found |= {"parents": ", ".join(map(str, node.parents))} if node.parents else {}
    found |= {"requires a gradient": "yes" if node.requires_grad else "no"}
    found |= {} if node.location is None else {"line": node.location}
    return panel(f"Var: {node.title}", facts(found), *_values(node.value))


def _values(value: Any) -> list[str]:
    try:
        array = value.array
    except TapeError:  # of a function that is being captured
        return [text("not known yet")]
    shown = np.array2string(array, threshold=_VALUES, precision=4, edgeitems=3)
    return [Picture(array).to_html(), text(shown)]
