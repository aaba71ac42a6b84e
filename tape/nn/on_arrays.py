"""Models with plain arrays for parameters are evaluated: of an array on a tape of their own, to an array again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, cast

import numpy as np

from ...base.arrays import Array
from ..errors import DTypeError
from ..tape import Tape
from ..var.var import AnyVar, Var
from .context import Context
from .scope import Scope

C = TypeVar("C", bound=Callable[..., Any])


class TapeConstants(Mapping[str, AnyVar]):
    """Arrays by name, each put on a tape when it is asked for, once."""

    def __init__(self, tape: Tape[Any], arrays: Mapping[str, Array]) -> None:
        self._tape, self._arrays = tape, arrays
        self._made: dict[str, AnyVar] = {}

    def __getitem__(self, name: str) -> AnyVar:
        if name not in self._made:
            self._made[name] = self._tape.const(self._arrays[name], name=name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def on_arrays(call: C) -> C:
    """The ``__call__`` of a layer, for parameters that are arrays too: then it evaluates, unless told otherwise.

    Whatever it is called on, it raises DTypeError for a third argument that is no context.
    """
    takes_context = [*signature(call).parameters][3:4] == ["ctx"]

    @wraps(call)
    def evaluated(self: Any, p: Any, x: Any, *rest: Any, **more: Any) -> Any:
        ctx = rest[0] if rest else more.get("ctx")
        if ctx is not None and takes_context and not isinstance(ctx, Context):
            raise no_context(self, call, ctx)
        if type(p) is Scope or not _of_arrays(p, x):
            asked = p if type(p) is Scope and p.layer is self else Scope(p, "", self)
            return call(self, asked, x, *rest, **more)
        tape: Tape[Any] = x.tape if isinstance(x, Var) else Tape()
        held = Scope(TapeConstants(tape, p), "", self)
        if ctx is None:
            state = {name: held[name] for name in self.states() if name in held}
            rest, more["ctx"] = (), Context(training=False, state=state)
        if isinstance(x, Var):
            return call(self, held, x, *rest, **more)
        return _arrays(call(self, held, tape.const(x), *rest, **more))

    return cast(C, evaluated)


def no_context(layer: Any, call: Callable[..., Any], given: Any) -> DTypeError:
    """The error for what stands where a layer takes its context, and belongs elsewhere perhaps."""
    marks = {Parameter.KEYWORD_ONLY: "{}=", Parameter.VAR_KEYWORD: "**{}"}
    named = [marks[p.kind].format(name) for name, p in signature(call).parameters.items() if p.kind in marks]
    hint = f"what else it takes is given by name: {', '.join(named)}" if named else "it takes no other input"
    return DTypeError(f"{layer!r}: argument 'ctx': expected a Context or None, got {type(given).__name__}; {hint}")


def _of_arrays(p: Any, x: Any) -> bool:
    """Whether parameters are arrays, and so the model is to be evaluated; without any, whether its input is one."""
    if not isinstance(p, Mapping) or isinstance(p, TapeConstants):
        return False
    first = next(iter(cast(Mapping[str, Any], p).values()), x)
    return isinstance(first, np.ndarray)


def _arrays(result: Any) -> Any:
    if isinstance(result, Var):
        return result.numpy()
    return tuple(map(_arrays, cast(Sequence[Any], result))) if isinstance(result, tuple | list) else result
