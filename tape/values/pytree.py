"""Nests: values in tuples, lists and dicts, and the same nest of other values.

None stands for a value that is not given and stays None. Dicts keep their order.
"""

from collections.abc import Callable, Iterator
from typing import Any, cast

from ..errors import GradientError

Nest = Any
"""A value, or a tuple, list or dict of nests."""


def _kind(nest: Nest) -> Any:
    """``tuple``, ``list`` or ``dict``; None for a single value, and so for an instance of a subclass of these."""
    kind = cast(Any, type(nest))
    return kind if kind in (tuple, list, dict) else None


def _parts(nest: Nest) -> Iterator[tuple[Any, Nest]]:
    """The parts of a tuple, list or dict with the key of each."""
    return iter(nest.items() if _kind(nest) is dict else enumerate(cast(list[Any], nest)))


def leaves(nest: Nest, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value, and the path that leads to it: ``['weights'][0]``.

    >>> list(leaves({"a": [1, None], "b": 2}))
    [("['a'][0]", 1), ("['b']", 2)]
    """
    if _kind(nest):
        for key, part in _parts(nest):
            yield from leaves(part, f"{path}[{key!r}]")
    elif nest is not None:
        yield path, nest


def mapped(function: Callable[[str, Any], Any], nest: Nest, path: str = "") -> Nest:
    """The nest of ``function(path, value)``.

    >>> mapped(lambda path, value: value + 1, (1, [2, None]))
    (2, [3, None])
    """
    kind = _kind(nest)
    if kind is None:
        return None if nest is None else function(path, nest)
    made = [(key, mapped(function, part, f"{path}[{key!r}]")) for key, part in _parts(nest)]
    return kind(made if kind is dict else [part for _, part in made])


def beside(nest: Nest, other: Nest, call: str, argument: str) -> Iterator[tuple[str, Any, Any]]:
    """Every value with the one at its place in another nest; a None there stands for None at every place below.

    Raises GradientError, as from ``call`` about ``argument``, if the other is nested differently.

    >>> list(beside((1, [2, 3]), (4, None), "f", "x"))
    [('x[0]', 1, 4), ('x[1][0]', 2, None), ('x[1][1]', 3, None)]
    """
    if other is None:
        yield from ((path, value, None) for path, value in leaves(nest, argument))
        return
    if nest is None or _keys(nest) != _keys(other):
        raise GradientError(f"{call}: argument {argument!r}: expected {_form(nest)}, got {_form(other)}")
    if _kind(nest) is None:
        yield argument, nest, other
        return
    for key, part in _parts(nest):
        yield from beside(part, other[key], call, f"{argument}[{key!r}]")


def _keys(nest: Nest) -> tuple[Any, set[Any]]:
    """What two nests have in common if their outermost levels are alike."""
    return _kind(nest), {key for key, _ in _parts(nest)} if _kind(nest) else set()


def _form(nest: Nest) -> str:
    """What messages call the outermost level of a nest."""
    kind = _kind(nest)
    if kind is dict:
        return f"a dict of {', '.join(repr(key) for key, _ in _parts(nest))}"
    if kind:
        return f"a {kind.__name__} of {len(nest)}"
    return "None" if nest is None else "one value"
