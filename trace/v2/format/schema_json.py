"""Reading the JSON of a SCHEMA without trusting it."""

import json
import re
from typing import Any, cast

from ..errors import InvalidTraceError
from ..verdict import Verdict
from .constants import DTYPE_CODES, TensorRole
from .limits import Limits
from .schema import Group, Schema, TensorSpec

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}]')
_STEP_OF_DEPTH = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
_ROLES = {role.name.lower(): role for role in TensorRole}


def decode_schema(data: bytes, limits: Limits) -> Schema:
    """Read the front of a SCHEMA frame.

    Raises:
        InvalidTraceError: `corrupt` if it breaks a rule of the format, `unsupported` if it has unknown keys.
    """
    try:
        check_depth(data, limits.json_depth)
        value = json.loads(data, object_pairs_hook=_unique_keys, parse_float=_no_float, parse_constant=_no_float)
        schema = _schema(value)
        schema.check(limits)
        if schema.encode() != data:
            raise ValueError("the JSON is not canonical")
    except (ValueError, RecursionError) as error:
        raise InvalidTraceError(Verdict.CORRUPT, f"schema: {error}") from error
    return schema


def check_depth(data: bytes, limit: int) -> None:
    """Raise ValueError for JSON that is nested deeper than `limit`."""
    depth = 0
    for token in _TOKENS.finditer(data):
        depth += _STEP_OF_DEPTH.get(token[0], 0)
        if depth > limit:
            raise ValueError(f"JSON nested more than {limit} deep")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_float(text: str) -> None:
    raise ValueError(f"expected integers only, got {text[:40]}")


def _schema(value: object) -> Schema:
    fields = _object(value, "schema", {"groups", "tensors"})
    return Schema(
        tensors=tuple(_tensor(v) for v in _list(fields["tensors"], "tensors")),
        groups=tuple(_group(v) for v in _list(fields["groups"], "groups")),
    )


def _tensor(value: object) -> TensorSpec:
    fields = _object(value, "tensor", {"dtype", "name", "role", "shape"})
    name, role, dtype = (_string(fields[key], key) for key in ("name", "role", "dtype"))
    if role not in _ROLES or dtype not in DTYPE_CODES:
        raise InvalidTraceError(Verdict.UNSUPPORTED, f"schema: tensor {name!r} has role {role!r} and dtype {dtype!r}")
    return TensorSpec(name, _ROLES[role], dtype, _integers(fields["shape"], "shape"))


def _group(value: object) -> Group:
    fields = _object(value, "group", {"corrections", "hyperparameters", "rule", "tensors"})
    names = tuple(_string(v, "hyperparameter") for v in _list(fields["hyperparameters"], "hyperparameters"))
    return Group(
        rule=_string(fields["rule"], "rule"),
        hyperparameters=names,
        corrections=_integer(fields["corrections"], "corrections"),
        tensors=_integers(fields["tensors"], "tensors"),
    )


def _object(value: object, what: str, keys: set[str]) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{what}: expected an object, got {type(value).__name__}")
    fields = cast(dict[str, object], value)
    if keys - fields.keys():
        raise ValueError(f"{what}: without {', '.join(sorted(keys - fields.keys()))}")
    if fields.keys() - keys:
        raise InvalidTraceError(Verdict.UNSUPPORTED, f"schema: {what} has unknown keys")
    return fields


def _list(value: object, what: str) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f"{what}: expected a list, got {type(value).__name__}")
    return cast(list[object], value)


def _string(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what}: expected a string, got {type(value).__name__}")
    return value


def _integer(value: object, what: str) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{what}: expected an integer from 0 to 2^63 - 1, got {str(value)[:40]}")
    return value


def _integers(value: object, what: str) -> tuple[int, ...]:
    return tuple(_integer(v, what) for v in _list(value, what))
