"""The first call of an op at which two steps part: what it was told, what it takes, or what it gives."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import Enum
from typing import ClassVar

from ....base.runs.called_op import RECOMPUTE, CalledOp
from ...json_value import Plain

_WINDOW = 400
"""How many calls behind the first other one are aligned."""

_OPTION = re.compile(r"(\w+)=((?:\[[^=]*\]|'[^']*'|[^,\[])*)(?:, |$)")
_PLAIN = ("self", "other", "value", "x", "y")
"""Options that need no name: the number that an op computes with."""


class CallChange(Enum):
    """In what a call differs."""

    TOLD = "told"
    ADDED = "added"
    REMOVED = "removed"
    REPLACED = "replaced"
    OTHERWISE = "otherwise"
    INPUT = "input"
    DRAWS = "draws"
    GIVES = "gives"
    RAISED = "raised"


COMPUTED = (CallChange.DRAWS, CallChange.GIVES, CallChange.RAISED)
"""Where equal ops, with equal options and inputs, do something else."""


@dataclass(frozen=True, slots=True)
class CallDifference(Plain):
    """The first call that differs, of those that a step made in the order of execution.

    Args:
        change: `told` another option; `added` in b, or `removed`; `replaced` by another op; it takes its inputs
            `otherwise`, values that are there in both; it takes an `input` that no op made; it `draws` other numbers;
            it `gives` other bits of equal inputs and options; it `raised` an error in one alone.
        index: its place among the calls (of b; of a if it was removed).
        call: the call itself.
        count: how many calls the step has.
        was: what a has in its place, where it is told another option or was replaced.

    >>> one, other = CalledOp("aten.mul.Tensor", "other=1.0"), CalledOp("aten.mul.Tensor", "other=0.9", phase="clip")
    >>> CallDifference(CallChange.TOLD, 0, other, 1, one).short
    'aten.mul.Tensor called with 1.0 -> 0.9, in clip'
    """

    _keys: ClassVar = ("change", "index", "count", "call", "was")

    change: CallChange
    index: int
    call: CalledOp
    count: int
    was: CalledOp | None = None

    @property
    def short(self) -> str:
        """Which op, what of it, in which layer, on which line."""
        return ", ".join(filter(None, [self._said(), self.call.where]))

    def _said(self) -> str:
        name, was = self.call.name, self.was
        if self.change is CallChange.TOLD and was is not None:
            return f"{name} called with {_told(was.options, self.call.options)}"
        if self.change is CallChange.REPLACED and was is not None:
            return f"{name} instead of {was.name}"
        said = {
            CallChange.ADDED: f"{_full(self.call)}, which a does not call",
            CallChange.REMOVED: f"{_full(self.call)}, which b does not call",
            CallChange.OTHERWISE: f"{name} takes other values, which earlier ops made",
            CallChange.INPUT: f"{name} takes another input, which no op made",
            CallChange.DRAWS: f"{name} draws other numbers",
            CallChange.RAISED: f"{name} raises an error in one run only",
        }
        return said.get(self.change, f"{name} gives other bits for equal inputs")

    def lines(self) -> list[str]:
        """For a screen."""
        options = f" ({self.call.options})" if self.call.options else ""
        head = f"first call that differs: #{self.index} of {self.count}, {self.call.name}{options}"
        return [head, f"  {self.short}", *([f"  {self.call.place}"] if self.call.place else [])]


def first_call(a: Sequence[CalledOp], b: Sequence[CalledOp]) -> CallDifference | None:
    """Where two steps part; None if every call is the same.

    What layers do once more in the backward pass is passed over where one run alone does so, as under checkpointing.

    >>> a = [CalledOp("aten.pow.Scalar", "self=10000.0")]
    >>> found = first_call(a, [CalledOp("aten.pow.Scalar", "self=10001.0")])
    >>> found.change, found.short
    (<CallChange.TOLD: 'told'>, 'aten.pow.Scalar called with 10000.0 -> 10001.0')
    """
    made = {digest for call in b for digest in (*call.inputs, *call.outputs) if call.phase == RECOMPUTE}
    if len({any(call.phase == RECOMPUTE for call in calls) for calls in (a, b)}) > 1:
        a, b = ([call for call in calls if call.phase != RECOMPUTE] for calls in (a, b))
    if not all(any(call.generator for call in calls) for calls in (a, b)):  # a trace may be older than that
        a, b = ([replace(call, generator=b"") for call in calls] for calls in (a, b))
    both = zip(a, b, strict=False)
    i = next((i for i, (x, y) in enumerate(both) if _key(x) != _key(y)), min(len(a), len(b)))
    if i == len(a) == len(b):
        return None
    if i < min(len(a), len(b)) and _kind(a[i]) == _kind(b[i]):
        return CallDifference(_change(a[i], b, i, made), i, b[i], len(b))
    return _other(a, b, i)


def _change(x: CalledOp, b: Sequence[CalledOp], i: int, recomputed: set[bytes]) -> CallChange:
    """In what two calls of one op with the same options differ."""
    y = b[i]
    if x.inputs != y.inputs:
        made = recomputed | {digest for call in b[:i] for digest in (*call.inputs, *call.outputs)}
        other = {digest for was, digest in zip(x.inputs, y.inputs, strict=False) if was != digest}
        return CallChange.OTHERWISE if other and other <= made else CallChange.INPUT
    if x.raised != y.raised:
        return CallChange.RAISED
    is_same = bool(x.generator) and x.generator == y.generator
    return CallChange.DRAWS if y.draws and not is_same else CallChange.GIVES


def _other(a: Sequence[CalledOp], b: Sequence[CalledOp], i: int) -> CallDifference:
    """Where the ops or their options part, aligned behind the first other one."""
    x, y = (list(map(_kind, calls[i : i + _WINDOW])) for calls in (a, b))
    codes = SequenceMatcher(None, x, y, autojunk=False).get_opcodes()
    tag, j, _, k, _ = next(code for code in codes if code[0] != "equal")
    if tag == "delete":
        return CallDifference(CallChange.REMOVED, i + j, a[i + j], len(a))
    if tag == "insert":
        return CallDifference(CallChange.ADDED, i + k, b[i + k], len(b))
    was, call = a[i + j], b[i + k]
    change = CallChange.TOLD if was.name == call.name and was.options != call.options else CallChange.REPLACED
    return CallDifference(change, i + k, call, len(b), was)


def _kind(call: CalledOp) -> tuple[object, ...]:
    """What a call is, without digests and its place in the source."""
    return call.name, call.options, call.phase, call.scope


def _key(call: CalledOp) -> tuple[object, ...]:
    return *_kind(call), call.inputs, call.outputs, call.raised, call.generator


def _told(was: str, options: str) -> str:
    """The options that differ: ``10000.0 -> 10001.0``, ``eps 1e-05 -> 2e-05``."""
    a, b = (dict(_OPTION.findall(text)) for text in (was, options))
    changed = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    texts = [f"{'' if n in _PLAIN else f'{n} '}{a.get(n, 'nothing')} -> {b.get(n, 'nothing')}" for n in changed]
    return ", ".join(texts) or f"{was} -> {options}"


def _full(call: CalledOp) -> str:
    return f"{call.name}({call.options})" if call.options else call.name
