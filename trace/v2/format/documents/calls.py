"""The texts of a CALLS frame: which ops a step has called, as JSON, in which each text stands once.

In the packed form the JSON says too which digest stands where, so that each digest is in the frame once; and the JSON
is a stream of zlib (RFC 1950).
"""

import json
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from .....base.errors import DomainError
from .....base.runs.called_op import CalledOp
from ..limits import Limits, check_marks
from ..schema import canonical_json
from .nodes import printable

_DRAWS, _RAISED, _GENERATOR = 1, 2, 4
_TEXTS = ("name", "options", "phase", "scope", "place")
_MOST_COMMAS = 16
"""For each call, on average: between its eight numbers, and its digests."""

MOST_UNPACKED = 1 << 24
"""Bytes of the JSON of a packed frame."""


def encode_calls(calls: Sequence[CalledOp]) -> tuple[bytes, list[bytes]]:
    """The JSON, and the digests of all calls in turn: of each what it took, then what it gave."""
    texts: dict[str, int] = {}
    rows = [_row(call, texts) for call in calls]
    digests = [digest for call in calls for digest in (*call.inputs, *call.outputs)]
    return canonical_json({"calls": rows, "texts": list(texts)}), digests


def encode_packed_calls(calls: Sequence[CalledOp]) -> tuple[bytes, list[bytes]]:
    """The packed JSON, and each digest once, as they first stand in the calls; of each first that of its generator."""
    text, digests = _packed(calls)
    return zlib.compress(text), digests


def _packed(calls: Sequence[CalledOp]) -> tuple[bytes, list[bytes]]:
    """What is packed: a digest is 0 where it is new, else the number of new ones since it was, it among them."""
    texts: dict[str, int] = {}
    rows, back, places = list[list[int]](), list[int](), dict[bytes, int]()
    for call in calls:
        rows.append(_row(call, texts, _GENERATOR * bool(call.generator)))
        for digest in (*_generator(call), *call.inputs, *call.outputs):
            new = len(places)
            back.append(new - places.setdefault(digest, new))
    return canonical_json({"calls": rows, "digests": back, "texts": list(texts)}), list(places)


def _generator(call: CalledOp) -> tuple[bytes, ...]:
    return (call.generator,) if call.generator else ()


def _row(call: CalledOp, texts: dict[str, int], more: int = 0) -> list[int]:
    row = list[int]()
    for text in (call.name, call.options, call.phase, call.scope, call.place):
        number = texts.get(text)
        row.append(texts.setdefault(printable(text), len(texts)) if number is None else number)
    flags = _DRAWS * call.draws + _RAISED * call.raised + more
    row += flags, len(call.inputs), len(call.outputs)
    return row


def decode_calls(text: bytes, digests: Sequence[bytes], limits: Limits) -> tuple[CalledOp, ...]:
    """The calls of a frame.

    Raises:
        DomainError: the text lists no calls, is not in its canonical form, or is of other digests.
    """
    with _told():
        value = _read(text, ["calls", "texts"], limits)
        ahead = iter(digests)
        calls = tuple([_call(row, value["texts"], ahead, _DRAWS | _RAISED) for row in value["calls"]])
        again, used = encode_calls(calls)
        if again != text or len(used) != len(digests):
            raise DomainError("the JSON is not canonical, or not that of the digests")
    return calls


def decode_packed_calls(text: bytes, digests: Sequence[bytes], limits: Limits) -> tuple[CalledOp, ...]:
    """The calls of a packed frame.

    Raises:
        DomainError: as `decode_calls`, or the text is no stream of zlib, or one of too much.
    """
    with _told():
        unpacked = _unpacked(text)
        value = _read(unpacked, ["calls", "digests", "texts"], limits)
        ahead = iter(_spread(value["digests"], digests))
        flags = _DRAWS | _RAISED | _GENERATOR
        calls = tuple([_call(row, value["texts"], ahead, flags) for row in value["calls"]])
        if _packed(calls) != (unpacked, [*digests]):
            raise DomainError("the JSON is not canonical, or not that of the digests")
    return calls


@contextmanager
def _told() -> Generator[None]:
    try:
        yield
    except (ValueError, TypeError, IndexError, AttributeError, RecursionError, zlib.error) as error:
        raise DomainError(f"it cannot be read: {error}") from error


def _unpacked(text: bytes) -> bytes:
    stream = zlib.decompressobj()
    unpacked = stream.decompress(text, MOST_UNPACKED)
    if not stream.eof or stream.unused_data:
        raise DomainError(f"its stream of zlib has no end, more behind it, or more than {MOST_UNPACKED} bytes")
    return unpacked


def _read(text: bytes, keys: list[str], limits: Limits) -> Any:
    check_marks(text, limits.json_depth, limits.nodes, _MOST_COMMAS * limits.nodes)
    value = json.loads(text)
    if not isinstance(value, dict) or list(cast(dict[str, Any], value)) != keys:
        raise DomainError(f"expected an object with {' and '.join(keys)}")
    return cast(Any, value)


def _spread(back: Any, digests: Sequence[bytes]) -> list[bytes]:
    """The digests of all calls in turn."""
    found, ahead, count = list[bytes](), iter(digests), 0
    for n in _numbers(back):
        if n > count:
            raise DomainError(f"digest {len(found)} of its calls is said to be that of {n} new ones ago, of {count}")
        found.append(digests[count - n] if n else _next(ahead))
        count += not n
    return found


def _numbers(value: Any) -> list[int]:
    numbers: list[Any] = cast(Any, value) if isinstance(value, list) else [None]
    if not all(type(n) is int and n >= 0 for n in numbers):
        raise DomainError("a call is not a list of numbers")
    return numbers


def _call(row: Any, texts: Any, ahead: Iterator[bytes], known: int) -> CalledOp:
    *said, flags, taken, given = _numbers(row)
    if len(said) != len(_TEXTS) or flags > known:
        raise DomainError("a call has not the fields of a call")
    generator = _next(ahead) if flags & _GENERATOR else b""
    inputs, outputs = (tuple([_next(ahead) for _ in range(count)]) for count in (taken, given))
    named = dict(zip(_TEXTS, [texts[i] for i in said], strict=True))
    draws, raised = bool(flags & _DRAWS), bool(flags & _RAISED)
    return CalledOp(**named, inputs=inputs, outputs=outputs, draws=draws, raised=raised, generator=generator)


def _next(ahead: Iterator[bytes]) -> bytes:
    digest = next(ahead, None)
    if digest is None:
        raise DomainError("it has fewer digests than its calls")
    return digest
