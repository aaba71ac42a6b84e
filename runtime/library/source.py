"""What a library is made of: a graph with its constants, and the names under which C has its arrays."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import getclosurevars
from typing import Any, Literal, cast

import numpy as np

from ...base.arrays import Array
from ...base.errors import DgrrError
from ..ir.graph import IRGraph
from ..lower.plan import BindingPlan

Weights = Literal["const", "state"]
"""Where arrays lie that a function closes over."""

Lower = Callable[[IRGraph, Mapping[int, Array]], BindingPlan]


class LibraryError(DgrrError, RuntimeError):
    """A library that cannot be made: of kernels of a script, or code that LLVM refuses."""


@dataclass(frozen=True)
class LibrarySource:
    """A recorded graph.

    ``name`` is how its functions begin in C, where none is given. ``inputs`` are the ids of what a call is given, by
    name, ``outputs`` what it hands out: the name in the graph of each. ``held`` are arrays that outlive a call, by the
    ids of their values: each with its name. ``lower`` plans it for one thread.
    """

    name: str
    graph: IRGraph
    constants: Mapping[int, Array]
    inputs: Mapping[str, int]
    outputs: Mapping[str, str]
    held: Mapping[int, tuple[str, Array]]
    lower: Lower


def names_of(places: Iterable[str], kind: str, alone: str) -> list[str]:
    """The names in C of the arrays of a batch or a result, from where they stand in it.

    >>> names_of(["batch[0]", "batch[1]['mask']"], "in", "in"), names_of(["result"], "out", "out")
    (['in0', 'in1_mask'], ['out'])
    >>> names_of(["batch['x']", "batch['while']"], "in", "in")
    ['in_x', 'in_while']
    """
    found = list[str]()
    for where in places:
        parts = [part.strip("'\"") for part in re.findall(r"\[([^\]]*)\]", where)]
        name = kind + ("" if parts and parts[0].isdigit() else "_") + "_".join(map(identifier, parts))
        name = name if parts else alone
        found.append(name if name not in found else f"{name}_{len(found)}")
    return found


def identifier(name: str) -> str:
    """A name as C has it: letters, digits and lines.

    >>> identifier("0.weight")
    '0_weight'
    """
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def closed_over(function: Any, arrays: Sequence[Array]) -> list[str]:
    """The names of arrays that a function closes over: those of a dict that it reads, else numbers."""
    known = dict[int, str]()
    code = function if hasattr(function, "__code__") else type(function).__call__
    read = getclosurevars(code)
    for value in (*read.nonlocals.values(), *read.globals.values()):
        if isinstance(value, Mapping):
            named = cast(Mapping[object, Any], value)
            known |= {a.ctypes.data: str(name) for name, a in named.items() if isinstance(a, np.ndarray)}
    return [known.get(a.ctypes.data, f"array_{i}") for i, a in enumerate(arrays)]
