"""An equation of a JAX program as a trace has it: its name, what it is told, its phase, scope and line."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from hashlib import sha256
from importlib import import_module
from linecache import getline
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from ....base.runs.called_op import RECOMPUTE
from ....tape.location import WINGS, Location

_OPERANDS = ("x", "y")
"""What `jax.lax` calls the first two operands of an op."""


class Where(NamedTuple):
    """Where an equation stands. The phase is empty where no transform tells it."""

    phase: str = ""
    scope: str = ""
    place: str = ""


class Equations:
    """Reads equations."""

    def __init__(self, jax: Any) -> None:
        core = import_module("jax.extend.core")
        primitives = vars(import_module("jax.extend.core.primitives")).values()
        self._own = {id(each) for each in primitives if isinstance(each, core.Primitive)}
        self._passed = (*WINGS, str(Path(jax.__file__).parents[1]))

    def name(self, equation: Any) -> str:
        """``lax.mul``; a primitive that is none of JAX's own has its bare name, and is no kernel of JAX's."""
        primitive = equation.primitive
        return f"lax.{primitive.name}" if id(primitive) in self._own else str(primitive.name)

    def where(self, equation: Any, outer: Where) -> Where:
        """Where it stands, within an equation that has it inside."""
        stack = equation.source_info.name_stack.stack
        transforms = {part.name for part in stack if type(part).__name__ == "Transform"}
        scopes = [part.name for part in stack if type(part).__name__ == "Scope"]
        named = [outer.scope, *(scope for scope in scopes if scope not in _MACHINERY)]
        return Where(
            _phase(transforms, scopes) or outer.phase,
            ".".join(filter(None, named)),
            self._line(equation) or outer.place,
        )

    def _line(self, equation: Any) -> str:
        """The innermost line that is neither this package's nor installed beside JAX; empty if there is none."""
        traceback = equation.source_info.traceback
        for frame in traceback.frames if traceback is not None else ():
            if not frame.file_name.startswith(self._passed):
                text = getline(frame.file_name, frame.line_num).strip()
                return str(Location(frame.file_name, frame.line_num, frame.function_name, text))
        return ""


_MACHINERY = ("checkpoint", "rematted_computation")
"""Scopes that JAX itself makes."""


def _phase(transforms: set[str], scopes: Sequence[str]) -> str:
    if "rematted_computation" in scopes:
        return RECOMPUTE
    return "backward" if "transpose" in transforms else "forward" if "jvp" in transforms else ""


def options(params: Mapping[str, Any], literals: Mapping[int, Any]) -> str:
    """What an equation is told beside arrays: numbers among its operands, by their place, and its parameters.

    >>> options({"axes": (0, 1), "accuracy": None}, {1: np.float32(0.1)})
    'y=0.1, axes=[0, 1]'
    """
    told = {_operand(i): str(np.asarray(value)) for i, value in literals.items()}
    told |= {name: text for name, value in params.items() if (text := _text(value)) is not None}
    return ", ".join(f"{name}={text}" for name, text in told.items())


def _operand(i: int) -> str:
    return _OPERANDS[i] if i < len(_OPERANDS) else f"operand{i}"


def _text(value: Any) -> str | None:
    """A parameter, the same text in each run; None for what says nothing, or where arrays lie: their parts say that."""
    if value is None or hasattr(value.__class__, "device_set"):
        return None
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bool | int | float | complex | str):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic):
        return str(cast(Any, value).tolist())
    if isinstance(value, np.dtype):
        return str(cast(Any, value))
    if hasattr(value, "eqns") or hasattr(value, "jaxpr"):
        return fingerprint(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_text(each) or 'None' for each in cast(Iterable[Any], value))}]"
    return type(value).__name__


def fingerprint(program: Any) -> str:
    """Sixteen digits that tell a jaxpr from others: its equations, the numbers in it and its constants."""
    jaxpr = getattr(program, "jaxpr", program)
    numbers = {id(var): i for i, var in enumerate((*jaxpr.constvars, *jaxpr.invars))}
    lines = [str(np.asarray(const).tolist()) for const in getattr(program, "consts", ())]
    for equation in jaxpr.eqns:
        taken = [numbers.get(id(var)) for var in equation.invars]
        said = options(equation.params, literals_of(equation))
        lines.append(f"{equation.primitive.name}({said}) {taken} {[str(var.aval) for var in equation.outvars]}")
        numbers |= {id(var): len(numbers) + i for i, var in enumerate(equation.outvars)}
    lines.append(str([numbers.get(id(var)) for var in jaxpr.outvars]))
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def literals_of(equation: Any) -> dict[int, Any]:
    """The numbers that stand among the operands of an equation, by their place."""
    return {i: atom.val for i, atom in enumerate(equation.invars) if hasattr(atom, "val")}
