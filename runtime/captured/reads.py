"""What a function reads from Python by name: kept, and compared before every run.

Followed are closures, globals, default arguments, attributes, and the items of lists, tuples and dicts, through the
user's own functions, methods and objects. Of the code of dgrr, of numpy and the standard library nothing is followed.
"""

# What a function may reach is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from inspect import getattr_static
from operator import attrgetter
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...base.arrays import Array

SMALL = 1024
"""Bytes of arrays that are found by name and compared."""

DEPTH = 8
"""How many names lie at most between the function and what it reads."""

MOST = 256
"""Names that are held at most, and items of a container."""

WITHOUT_EFFECT = 8
"""Changes that changed no op, after which a name is left to the looks."""

NOT_FOLLOWED = frozenset({"dgrr", "numpy", "numba", "builtins", *sys.stdlib_module_names}) - {"__main__"}

PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)
"""Types whose values are compared by value."""

Get = Callable[[Any], Any]

CONTENT = attrgetter("cell_contents")


class Reads:
    """What ``function`` reads, as it is now."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self._more = function, dict[str, Array]()
        self._without_effect = dict[str, int]()
        self.take()

    def after_recording(self, arrays: Mapping[str, Array]) -> None:
        """The function has run: what has changed it has changed itself. ``arrays`` are to be compared too."""
        self._more = dict(arrays)
        self._without_effect |= dict.fromkeys(self.changed(), WITHOUT_EFFECT)
        self.take()

    def take(self) -> None:
        """Hold everything as it is now."""
        walk = _Walk()
        walk.follow(self._function, frozenset(), "loss_fn", DEPTH)
        wanted = [held for held in walk.held if self._without_effect.get(held[3], 0) < WITHOUT_EFFECT]
        self._held = [(get, key, then) for get, key, then, _ in wanted]
        arrays = {label: a for label, a in walk.arrays.items() if self._without_effect.get(label, 0) < WITHOUT_EFFECT}
        arrays |= self._more
        self._arrays = [(array, array.tobytes()) for array in arrays.values()]
        self._labels = [label for *_, label in wanted], [*arrays]

    def differ(self) -> bool:
        """Whether anything is another object, or an array has other elements."""
        try:
            for get, key, then in self._held:
                if get(key) is not then:
                    return True
            for array, elements in self._arrays:
                if array.tobytes() != elements:
                    return True
        except (AttributeError, LookupError, ValueError):
            return True
        return False

    def changed(self) -> list[str]:
        """The names of what has changed; numbers and texts of the same value have not."""
        names, arrays = self._labels
        found = [name for name, held in zip(names, self._held, strict=True) if _is_other(*held)]
        pairs = zip(arrays, self._arrays, strict=True)
        return found + [name for name, (array, elements) in pairs if array.tobytes() != elements]

    def note_without_effect(self, labels: list[str]) -> None:
        """These have changed, and no op has."""
        for label in labels:
            self._without_effect[label] = self._without_effect.get(label, 0) + 1


def _is_other(get: Get, key: Any, then: Any) -> bool:
    try:
        now = get(key)
    except (AttributeError, LookupError, ValueError):
        return True
    if now is then:
        return False
    return type(now) is not type(then) or not isinstance(now, PLAIN) or repr(now) != repr(then)


class _Walk:
    """A walk over what can be reached."""

    def __init__(self) -> None:
        self.held: list[tuple[Get, Any, Any, str]] = []
        self.arrays: dict[str, Array] = {}
        self._seen = set[Any]()
        self._places = set[tuple[Get, int]]()
        """What is held already: code that several functions share names the same globals."""

    def follow(self, value: Any, names: frozenset[str], label: str, depth: int) -> None:
        """Hold what code that has these names can read of a value."""
        key = (id(value), names)
        if depth == 0 or isinstance(value, PLAIN) or key in self._seen:
            return
        self._seen.add(key)
        if isinstance(value, np.ndarray):
            if value.nbytes <= SMALL and not value.dtype.hasobject:
                self.arrays[label] = value
        elif isinstance(value, FunctionType):
            self._function(value, label, depth)
        elif isinstance(value, MethodType):
            self._bound(value.__self__, value.__func__, label, depth)
        elif isinstance(value, partial):
            for name in ("func", "args", "keywords"):
                self.follow(getattr(value, name), names, f"{label}.{name}", depth - 1)
        elif isinstance(value, list | tuple | dict):
            self._items(value, names, label, depth)
        else:
            self._object(value, names, label, depth)

    def _hold(self, get: Get, key: Any, names: frozenset[str], label: str, depth: int) -> None:
        """Hold what is read so, and what can be reached from it."""
        try:
            now = get(key)
        except (AttributeError, LookupError, ValueError):
            return
        if len(self.held) < MOST:
            if (place := (get, id(key))) not in self._places:
                self._places.add(place)
                self.held.append((get, key, now, label))
            self.follow(now, names, label, depth - 1)

    def _function(self, function: FunctionType, label: str, depth: int) -> None:
        code = function.__code__
        followed = _is_followed(function.__module__)
        names = frozenset(_names(code)) if followed else frozenset[str]()
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._hold(CONTENT, cell, names, name, depth)
        for name in sorted(names & function.__globals__.keys()):
            self._hold(function.__globals__.get, name, names, name, depth)
        for place in ("__defaults__", "__kwdefaults__"):
            if followed and getattr(function, place):
                self._hold(attrgetter(place), function, names, f"{label}.{place}", depth)

    def _bound(self, owner: Any, function: Any, label: str, depth: int) -> None:
        """A method and what its code can read of its object."""
        self.follow(function, frozenset(), label, depth - 1)
        if isinstance(function, FunctionType):
            names = frozenset(_names(function.__code__)) if _is_followed(function.__module__) else frozenset[str]()
            self.follow(owner, names, label, depth - 1)

    def _items(self, value: Any, names: frozenset[str], label: str, depth: int) -> None:
        if len(value) > MOST:
            return
        if not isinstance(value, tuple):
            self._hold(len, value, names, f"len({label})", depth)
        items: Iterator[tuple[Any, Any]] = iter(value.items()) if isinstance(value, dict) else enumerate(value)
        for key, item in list(items):
            if isinstance(value, tuple):
                self.follow(item, names, f"{label}[{key!r}]", depth - 1)
            else:
                get: Any = value.get if isinstance(value, dict) else value.__getitem__
                self._hold(get, key, names, f"{label}[{key!r}]", depth)

    def _object(self, value: Any, names: frozenset[str], label: str, depth: int) -> None:
        """An instance, a class or a module: what code that has these names can read of it."""
        kind = value if isinstance(value, type) else type(value)
        where = value.__name__ if isinstance(value, ModuleType) else kind.__module__
        if not _is_followed(where):
            if not isinstance(value, type | ModuleType):
                self._of_a_library(value, names, label, depth)
            return
        if not isinstance(value, type | ModuleType) and (call := getattr_static(value, "__call__", None)) is not None:
            self._bound(value, call, label, depth)
        for name in sorted(names):
            self._attribute(value, name, names, f"{label}.{name}", depth)

    def _attribute(self, value: Any, name: str, names: frozenset[str], label: str, depth: int) -> None:
        found = getattr_static(value, name, None)
        if isinstance(found, property):
            self._bound(value, found.fget, label, depth)
        elif isinstance(found, FunctionType) and not isinstance(value, ModuleType):
            self._bound(value, found, label, depth)
        elif isinstance(found, staticmethod | classmethod):
            self._bound(value, found.__func__, label, depth)
        elif found is not None or name in getattr(value, "__dict__", ()):
            self._hold(attrgetter(name), value, names, label, depth)

    def _of_a_library(self, value: Any, names: frozenset[str], label: str, depth: int) -> None:
        """An object of dgrr or others: its own attributes that are named, and what of the user's a layer is made of."""
        if is_dataclass(value):
            for part in fields(value):
                self.follow(getattr(value, part.name, None), frozenset(), f"{label}.{part.name}", depth - 1)
        for name in sorted(names & getattr(value, "__dict__", {}).keys()):
            self._hold(attrgetter(name), value, names, f"{label}.{name}", depth)


def _names(code: CodeType) -> Iterator[str]:
    """The names that a piece of code has, and the code inside of it."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _names(const)


def _is_followed(module: str | None) -> bool:
    return (module or "").partition(".")[0] not in NOT_FOLLOWED
