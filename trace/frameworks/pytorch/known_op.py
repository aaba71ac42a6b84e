"""What is known of an op of PyTorch's before it is called."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_COLLECTIVE = ("c10d", "_c10d_functional")
_UNSEEN = ("profiler", "aten.detach.default", "aten.alias.default")
"""What computes nothing."""

_BLANK = re.compile(r"aten\.(new_)?empty(_like|_strided|_permuted)?\.|aten\.resize_")
"""What gives memory as it is found, whose bits mean nothing before they are written."""


@dataclass(frozen=True, slots=True)
class KnownOp:
    """An op, by its name and schema.

    Args:
        name: such as ``aten.pow.Scalar``.
        arguments: the name of each, and whether the op writes to what is given for it.
        draws: whether it takes numbers from a random generator.
        is_unseen, is_collective, is_blank: whether it computes nothing, may wait for other processes, or gives memory
            as it is found.
    """

    name: str
    arguments: tuple[tuple[str, bool], ...]
    draws: bool
    is_unseen: bool
    is_collective: bool
    is_blank: bool

    @classmethod
    def of(cls, torch: Any, op: Any) -> "KnownOp":
        """From an op that is called."""
        name, schema = str(op), op._schema.arguments
        writes = [argument.alias_info is not None and argument.alias_info.is_write for argument in schema]
        return cls(
            name,
            tuple(zip([argument.name for argument in schema], writes, strict=True)),
            draws=torch.Tag.nondeterministic_seeded in op.tags,
            is_unseen=name.startswith(_UNSEEN),
            is_collective=name.startswith(_COLLECTIVE),
            is_blank=_BLANK.match(name) is not None,
        )

    def told(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, bool, Any]]:
        """What a call is given: names, whether it is written to, values; those that were left out are left out."""
        for (name, is_write), value in zip(self.arguments, args, strict=False):
            yield name, is_write, value
        if kwargs:
            writes = dict(self.arguments)
            for name, value in kwargs.items():
                yield name, writes[name], value
