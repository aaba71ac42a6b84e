"""The SCHEMA of a trace: which tensors there are, and which optimizer rule updates them."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ....base.errors import DomainError
from ....base.runs.completed_step import FROZEN
from .constants import (
    DTYPE_CODES,
    FIRST_OF_READER_3,
    FIRST_OF_READER_5,
    FLOATS,
    ITEM_BYTES,
    KNOWS_ALL_DTYPES,
    KNOWS_SHORT_FLOATS,
    VERSION,
    TensorRole,
)
from .limits import Limits, require_at_most

CLIP_VALUE = "clip_value@1"
"""The rule for gradients that bounds every element; its group has no tensors and comes first."""

CLIP_EVENT = "clip_value"
"""The EVENT that held the bound before that rule did, as text."""

_RULE = re.compile(r"[a-z][a-z0-9_]*@[1-9][0-9]*")
_SHOWN = 80  # characters
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class TensorSpec(NamedTuple):
    """One tensor of the state: name, role, dtype name (`f32`, …) and shape."""

    name: str
    role: TensorRole
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]

    def __str__(self) -> str:
        return f"{self.role.name.lower()} '{self.name}' {self.dtype} {self.shape}"


@dataclass(frozen=True, slots=True)
class Group:
    """The tensors (by position) that one rule updates, and the f64 values it takes from each step."""

    rule: str
    hyperparameters: tuple[str, ...]
    corrections: int
    tensors: tuple[int, ...]


CLIPPING = Group(CLIP_VALUE, ("clip_value",), 0, ())


@dataclass(frozen=True)
class Schema:
    """All tensors, params before state before buffers, and the groups of the optimizer."""

    tensors: tuple[TensorSpec, ...]
    groups: tuple[Group, ...]

    @cached_property
    def position(self) -> dict[str, int]:
        """The position of each tensor by its name."""
        return {spec.name: i for i, spec in enumerate(self.tensors)}

    def _count(self, role: TensorRole) -> int:
        return sum(spec.role is role for spec in self.tensors)

    @cached_property
    def params(self) -> int:
        """Number of params."""
        return self._count(TensorRole.PARAM)

    @cached_property
    def buffers(self) -> int:
        """Number of buffers."""
        return self._count(TensorRole.BUFFER)

    @cached_property
    def hyperparameters(self) -> int:
        """Number of hyperparameters in all groups."""
        return sum(len(group.hyperparameters) for group in self.groups)

    @cached_property
    def corrections(self) -> int:
        """Number of bias corrections in all groups."""
        return sum(group.corrections for group in self.groups)

    @cached_property
    def clips_by_value(self) -> bool:
        """Whether every element of the gradients was bounded; the bound is the first hyperparameter of each step."""
        return bool(self.groups) and self.groups[0] == CLIPPING

    @property
    def rules(self) -> tuple[Group, ...]:
        """The groups with tensors, of which `of_group` counts."""
        return self.groups[1:] if self.clips_by_value else self.groups

    @property
    def frozen(self) -> tuple[str, ...]:
        """The params that no step updates."""
        return tuple([self.tensors[i].name for group in self.groups if group.rule == FROZEN for i in group.tensors])

    @cached_property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(spec.nbytes for spec in self.tensors)

    @property
    def is_plain(self) -> bool:
        """Whether readers of version 2 know all its dtypes, and compiled code which elements are not finite."""
        return self.reader == VERSION

    @cached_property
    def reader(self) -> int:
        """The lowest version of a reader that knows all its dtypes."""
        highest = max((DTYPE_CODES[spec.dtype] for spec in self.tensors), default=0)
        if highest >= FIRST_OF_READER_5:
            return KNOWS_ALL_DTYPES
        return KNOWS_SHORT_FLOATS if highest >= FIRST_OF_READER_3 else VERSION

    def encode(self) -> bytes:
        """The canonical JSON of the SCHEMA frame."""
        tensors = [
            {"dtype": t.dtype, "name": t.name, "role": t.role.name.lower(), "shape": list(t.shape)}
            for t in self.tensors
        ]
        groups = [
            {
                "corrections": g.corrections,
                "hyperparameters": list(g.hyperparameters),
                "rule": g.rule,
                "tensors": list(g.tensors),
            }
            for g in self.groups
        ]
        return canonical_json({"groups": groups, "tensors": tensors})

    def check(self, limits: Limits) -> None:
        """Hold the schema against the rules of the format and the caller's limits.

        Raises:
            DomainError: a rule is broken; the text names the tensor or group and the rule.
        """
        require_at_most(limits.tensors, len(self.tensors), "tensors")
        if len(self.position) != len(self.tensors):
            raise DomainError("names of tensors must be unique")
        if [t.role for t in self.tensors] != sorted(t.role for t in self.tensors):
            raise DomainError("params must come before state, and state before buffers")
        check_names(list(self.position), limits)
        _check_tensors(self.tensors, limits)
        self._check_groups(limits)

    def _check_groups(self, limits: Limits) -> None:
        require_at_most(limits.groups, len(self.groups), "groups")
        for i, group in enumerate(self.groups):
            if group.rule == CLIP_VALUE and (i or group != CLIPPING):
                raise DomainError(f"rule {CLIP_VALUE!r}: expected the first group, one hyperparameter and no tensors")
            if len(group.rule) > 64 or not _RULE.fullmatch(group.rule):
                raise DomainError(f"rule {shown(group.rule)}: expected a name and a version, such as 'adam@1'")
            if len(set(group.hyperparameters)) != len(group.hyperparameters):
                raise DomainError(f"rule {group.rule!r}: hyperparameters must be unique")
        require_at_most(limits.scalars, max(self.hyperparameters, self.corrections), "hyperparameters and corrections")
        grouped = sorted(i for group in self.groups for i in group.tensors)
        if grouped != list(range(len(self.tensors) - self.buffers)):
            raise DomainError("every param and state tensor must be in exactly one group, buffers in none")


def check_names(names: Sequence[str], limits: Limits, of: str = "tensors") -> None:
    """Raise DomainError for a name that is empty, too long, no text or not to be printed."""
    together = "".join(names)
    _utf8(together)
    lengths = list(map(len, map(str.encode, names)))
    for length in (min(lengths, default=1), max(lengths, default=1)):
        if not 1 <= length <= limits.name_bytes:
            raise DomainError(f"names of {of} have 1 to {limits.name_bytes} bytes, got {length}")
    if _CONTROL.search(together):
        raise DomainError(f"name {next(filter(_CONTROL.search, names))!r} has control characters")


def _check_tensors(tensors: Iterable[TensorSpec], limits: Limits) -> None:
    for name, role, dtype, shape in tensors:
        if role is TensorRole.PARAM and dtype not in FLOATS:
            raise DomainError(f"param {name!r}: expected a float, got {dtype}")
        if len(shape) > limits.rank:
            raise DomainError(f"tensor {name!r}: rank at most {limits.rank}, got {len(shape)}")
        if math.prod(filter(None, shape)) * ITEM_BYTES[dtype] > limits.tensor_bytes:
            raise DomainError(f"tensor {name!r}: at most {limits.tensor_bytes} bytes")


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise DomainError(f"{shown(text)} is not valid UTF-8") from None


def canonical_json(value: object) -> bytes:
    """The JSON of objects whose keys are in order. Raises DomainError for text that is no UTF-8."""
    return _utf8(json.dumps(value, ensure_ascii=False, check_circular=False, separators=(",", ":")))


def shown(text: str) -> str:
    """A text from a file as an error shows it: the beginning of a long one."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}…"
