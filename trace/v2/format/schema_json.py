"""Reading the JSON of a SCHEMA without trusting it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, cast

from ....base.collector import collector_paused
from ....base.errors import DomainError
from ..errors import InvalidTraceError
from ..verdict import Verdict
from .constants import DTYPE_CODES, TensorRole
from .limits import Limits, check_marks, require_at_most
from .schema import Group, Schema, TensorSpec, canonical_json, shown

_LARGEST_INTEGER = (1 << 63) - 1
_NOT_CANONICAL = "the JSON is not canonical"
_KINDS = {dict: "an object", list: "a list", str: "a string", int: "an integer from 0 to 2^63 - 1"}
_ROLES = {role.name.lower(): role for role in TensorRole}


def decode_schema(data: bytes, limits: Limits) -> Schema:
    """Read the front of a SCHEMA frame.

    Raises:
        InvalidTraceError: `corrupt` if it breaks a rule of the format, `unsupported` if it has unknown keys.
    """
    try:
        with collector_paused():
            return _decoded(data, limits)
    except (ValueError, RecursionError) as error:
        raise InvalidTraceError(Verdict.CORRUPT, f"schema: {error}") from error


def _decoded(data: bytes, limits: Limits) -> Schema:
    """The schema. Raises DomainError, RecursionError, or InvalidTraceError for unknown keys and codes."""
    check_marks(data, limits.json_depth, limits.json_brackets, limits.json_commas)
    value = json.loads(data.decode(), parse_float=_no_float, parse_constant=_no_float)
    if canonical_json(value) != data:
        raise DomainError(_NOT_CANONICAL)
    schema = _schema(value, limits)
    schema.check(limits)
    return schema


def _no_float(text: str) -> None:
    raise DomainError(f"expected integers only, got {text[:40]}")


def _schema(value: object, limits: Limits) -> Schema:
    (groups,), (tensors,) = _columns([value], "schema", {"groups": list, "tensors": list})
    require_at_most(limits.tensors, len(tensors), "tensors")
    require_at_most(limits.groups, len(groups), "groups")
    return Schema(_tensors(tensors), _groups(groups))


def _tensors(values: list[object]) -> tuple[TensorSpec, ...]:
    kinds = {"dtype": str, "name": str, "role": str, "shape": list}
    dtypes, names, roles, shapes = _columns(values, "tensor", kinds)
    for key, given, known in (("dtype", dtypes, DTYPE_CODES), ("role", roles, _ROLES)):
        for unknown in sorted(set(given) - known.keys()):
            raise InvalidTraceError(Verdict.UNSUPPORTED, f"schema: a tensor has the {key} {shown(unknown)}")
    _require_integers(_joined(shapes), "shape")
    ranked = [_ROLES[role] for role in roles]
    return tuple(map(TensorSpec._make, zip(names, ranked, dtypes, _tuples(shapes), strict=True)))


def _groups(values: list[object]) -> tuple[Group, ...]:
    kinds = {"corrections": int, "hyperparameters": list, "rule": str, "tensors": list}
    corrections, hyperparameters, rules, tensors = _columns(values, "group", kinds)
    _require_kind(_joined(hyperparameters), str, "hyperparameter")
    _require_integers(corrections, "corrections")
    _require_integers(_joined(tensors), "tensors")
    return tuple(map(Group, rules, _tuples(hyperparameters), corrections, _tuples(tensors)))


def _columns(values: Sequence[object], what: str, kinds: Mapping[str, type]) -> list[list[Any]]:
    """The fields of objects that have these keys and no others, key by key, each of one type.

    Key by key, because a schema of many tensors is read in a third of the time.
    """
    _require_kind(values, dict, what)
    objects, keys = cast(Sequence[dict[str, Any]], values), frozenset(kinds)
    for found in set(map(tuple, objects)) - {tuple(kinds)}:
        if keys - set(found):
            raise DomainError(f"{what}: without {', '.join(sorted(keys - set(found)))}")
        if set(found) - keys:
            raise InvalidTraceError(Verdict.UNSUPPORTED, f"schema: {what} has unknown keys")
        raise DomainError(_NOT_CANONICAL)
    columns = [[fields[key] for fields in objects] for key in kinds]
    for (key, kind), column in zip(kinds.items(), columns, strict=True):
        _require_kind(column, kind, key)
    return columns


def _require_kind(values: Sequence[object], kind: type, what: str) -> None:
    if set(map(type, values)) - {kind}:
        other = next(value for value in values if type(value) is not kind)
        raise DomainError(f"{what}: expected {_KINDS[kind]}, got {type(other).__name__}")


def _tuples(lists: Iterable[list[Any]]) -> list[tuple[Any, ...]]:
    return [tuple(each) for each in lists]


def _joined(lists: Iterable[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(lists))


def _require_integers(integers: Sequence[Any], what: str) -> None:
    _require_kind(integers, int, what)
    for number in (min(integers, default=0), max(integers, default=0)):
        if not 0 <= number <= _LARGEST_INTEGER:
            raise DomainError(f"{what}: expected {_KINDS[int]}, got {str(number)[:40]}")
