"""The SCHEMA of a trace: which tensors there are, and which optimizer rule updates them."""

import json
import math
import re
from dataclasses import dataclass
from functools import cached_property

from .constants import ITEM_BYTES, TensorRole
from .limits import Limits

_RULE = re.compile(r"[a-z][a-z0-9_]*@[1-9][0-9]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LARGEST_COUNT = 1 << 16  # of hyperparameters and of corrections in all groups


@dataclass(frozen=True, slots=True)
class TensorSpec:
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
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(spec.nbytes for spec in self.tensors)

    def encode(self) -> bytes:
        """The canonical JSON of the SCHEMA frame."""
        tensors = [
            {"name": t.name, "role": t.role.name.lower(), "dtype": t.dtype, "shape": list(t.shape)}
            for t in self.tensors
        ]
        groups = [
            {
                "rule": g.rule,
                "hyperparameters": list(g.hyperparameters),
                "corrections": g.corrections,
                "tensors": list(g.tensors),
            }
            for g in self.groups
        ]
        return _canonical({"tensors": tensors, "groups": groups})

    def check(self, limits: Limits) -> None:
        """Hold the schema against the rules of the format and the caller's limits.

        Raises:
            ValueError: a rule is broken; the text names the tensor or group and the rule.
        """
        if len(self.tensors) > limits.tensors:
            raise ValueError(f"at most {limits.tensors} tensors, got {len(self.tensors)}")
        if len(self.position) != len(self.tensors):
            raise ValueError("names of tensors must be unique")
        if [t.role for t in self.tensors] != sorted(t.role for t in self.tensors):
            raise ValueError("params must come before state, and state before buffers")
        for spec in self.tensors:
            _check_tensor(spec, limits)
        self._check_groups()

    def _check_groups(self) -> None:
        for group in self.groups:
            if len(group.rule) > 64 or not _RULE.fullmatch(group.rule):
                raise ValueError(f"rule {group.rule!r}: expected a name and a version, such as 'adam@1'")
            if len(set(group.hyperparameters)) != len(group.hyperparameters):
                raise ValueError(f"rule {group.rule!r}: hyperparameters must be unique")
        if max(self.hyperparameters, self.corrections) > _LARGEST_COUNT:
            raise ValueError(f"at most {_LARGEST_COUNT} hyperparameters and corrections")
        grouped = sorted(i for group in self.groups for i in group.tensors)
        if grouped != list(range(len(self.tensors) - self.buffers)):
            raise ValueError("every param and state tensor must be in exactly one group, buffers in none")


def _check_tensor(spec: TensorSpec, limits: Limits) -> None:
    length = len(_utf8(spec.name))
    if not 1 <= length <= limits.name_bytes:
        raise ValueError(f"names of tensors have 1 to {limits.name_bytes} bytes, got {length}")
    if _CONTROL.search(spec.name):
        raise ValueError(f"name {spec.name!r} has control characters")
    if spec.role is TensorRole.PARAM and spec.dtype not in ("f32", "f64"):
        raise ValueError(f"param {spec.name!r}: expected f32 or f64, got {spec.dtype}")
    if len(spec.shape) > limits.rank:
        raise ValueError(f"tensor {spec.name!r}: rank at most {limits.rank}, got {len(spec.shape)}")
    if math.prod(max(n, 1) for n in spec.shape) * ITEM_BYTES[spec.dtype] > limits.tensor_bytes:
        raise ValueError(f"tensor {spec.name!r}: at most {limits.tensor_bytes} bytes")


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{text!r} is not valid UTF-8") from None


def _canonical(value: object) -> bytes:
    return _utf8(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")))
