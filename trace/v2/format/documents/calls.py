"""The texts of a CALLS frame: which ops a step has called, as JSON, in which each text stands once."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from .....base.errors import DomainError
from .....base.runs.called_op import CalledOp
from ..limits import Limits, check_marks
from ..schema import canonical_json
from .nodes import printable

_DRAWS, _RAISED = 1, 2
_FIELDS = 8
_TEXTS = ("name", "options", "phase", "scope", "place")


def encode_calls(calls: Sequence[CalledOp]) -> tuple[str, list[bytes]]:
    """The JSON, and the digests of all calls in turn: of each what it took, then what it gave."""
    texts: dict[str, int] = {}
    rows = [_row(call, texts) for call in calls]
    digests = [digest for call in calls for digest in (*call.inputs, *call.outputs)]
    return canonical_json({"calls": rows, "texts": list(texts)}).decode(), digests


def _row(call: CalledOp, texts: dict[str, int]) -> list[int]:
    said = (call.name, call.options, call.phase, call.scope, call.place)
    flags = _DRAWS * call.draws + _RAISED * call.raised
    return [
        *(texts.setdefault(printable(text), len(texts)) for text in said),
        flags,
        len(call.inputs),
        len(call.outputs),
    ]


def decode_calls(text: str, digests: Sequence[bytes], limits: Limits) -> tuple[CalledOp, ...]:
    """The calls of a frame.

    Raises:
        DomainError: the text lists no calls, is not in its canonical form, or is of other digests.
    """
    try:
        check_marks(text.encode(), limits.json_depth, limits.nodes, _FIELDS * limits.nodes)
        value = json.loads(text)
        if not isinstance(value, dict) or list(cast(dict[str, Any], value)) != ["calls", "texts"]:
            raise DomainError("expected an object with calls and texts")
        ahead = iter(digests)
        calls = tuple([_call(row, value["texts"], ahead) for row in cast(list[Any], value["calls"])])
        again, used = encode_calls(calls)
        if again != text or len(used) != len(digests):
            raise DomainError("the JSON is not canonical, or not that of the digests")
    except (ValueError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise DomainError(f"it cannot be read: {error}") from error
    return calls


def _call(row: Any, texts: Any, ahead: Iterator[bytes]) -> CalledOp:
    numbers: list[Any] = cast(Any, row) if isinstance(row, list) else [None]
    if not all(type(n) is int and n >= 0 for n in numbers):
        raise DomainError("a call is not a list of numbers")
    *said, flags, taken, given = numbers
    if len(said) != len(_TEXTS) or flags > _DRAWS | _RAISED:
        raise DomainError("a call has not the fields of a call")
    inputs, outputs = (tuple([_next(ahead) for _ in range(count)]) for count in (taken, given))
    named = dict(zip(_TEXTS, [texts[i] for i in said], strict=True))
    return CalledOp(**named, inputs=inputs, outputs=outputs, draws=bool(flags & _DRAWS), raised=bool(flags & _RAISED))


def _next(ahead: Iterator[bytes]) -> bytes:
    digest = next(ahead, None)
    if digest is None:
        raise DomainError("it has fewer digests than its calls")
    return digest
