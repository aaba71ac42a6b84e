"""Models with plain arrays for parameters are evaluated: of an array on a tape of their own, to an array again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from ...arrays import Array
from ..tape import Tape
from ..var.var import AnyVar, Var
from .context import Context
from .scope import Scope

C = TypeVar("C", bound=Callable[..., Any])


class Constants(Mapping[str, AnyVar]):
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
    """The ``__call__`` of a layer, for parameters that are arrays too: then it evaluates, unless told otherwise."""

    @wraps(call)
    def evaluated(self: Any, p: Any, x: Any, *rest: Any, **more: Any) -> Any:
        if type(p) is Scope or not _plain(p, x):
            return call(self, p, x, *rest, **more)
        tape: Tape[Any] = x.tape if isinstance(x, Var) else Tape()
        held = Constants(tape, p)
        if not rest and more.get("ctx") is None:
            state = {name: held[name] for name in self.states() if name in held}
            more["ctx"] = Context(training=False, state=state)
        if isinstance(x, Var):
            return call(self, held, x, *rest, **more)
        return _arrays(call(self, held, tape.const(x), *rest, **more))

    return cast(C, evaluated)


def _plain(p: Any, x: Any) -> bool:
    """Whether parameters are arrays, and so the model is to be evaluated; without any, whether its input is one."""
    if not isinstance(p, Mapping) or isinstance(p, Constants):
        return False
    first = next(iter(cast(Mapping[str, Any], p).values()), x)
    return isinstance(first, np.ndarray)


def _arrays(result: Any) -> Any:
    if isinstance(result, Var):
        return result.numpy()
    return tuple(map(_arrays, cast(Sequence[Any], result))) if isinstance(result, tuple | list) else result
