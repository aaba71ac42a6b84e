"""What is known of an op of PyTorch's before it is called."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_COLLECTIVE = ("c10d", "_c10d_functional")
_UNSEEN = ("profiler", "aten.detach.default", "aten.alias.default")
"""What computes nothing."""

_BLANK = re.compile(r"aten\.(new_)?empty(_like|_strided|_permuted)?\.|aten\.resize_")
"""What gives memory as it is found, whose bits mean nothing before they are written."""

_TELLS = re.compile(r"(aten|prims)\.(?!\w*(batch_norm|rnn|lstm|gru))")
"""The ops whose schema says what they write to; PyTorch's own but for some with statistics or weights of their own."""

_COPY = re.compile(r"aten\.(_to_copy|copy_?|_copy_from\w*)\.")
"""What may go on behind the call, between devices."""


@dataclass(frozen=True, slots=True)
class KnownOp:
    """An op, by its name and schema.

    Args:
        name: such as ``aten.pow.Scalar``.
        arguments: the name of each, and whether the op writes to what is given for it.
        draws: whether it takes numbers from a random generator.
        is_unseen, is_collective, is_blank: whether it computes nothing, may wait for other processes, or gives memory
            as it is found.
        tells_writes, may_be_late: whether all that it writes to is marked so, and whether it may write when it has
            ended.
    """

    name: str
    arguments: tuple[tuple[str, bool], ...]
    draws: bool
    is_unseen: bool
    is_collective: bool
    is_blank: bool
    tells_writes: bool
    may_be_late: bool

    @property
    def is_watched(self) -> bool:
        """Whether it may write to more than what is marked so, or later."""
        return self.may_be_late or not self.tells_writes

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
            tells_writes=_TELLS.match(name) is not None,
            may_be_late=name.startswith(_COLLECTIVE) or _COPY.match(name) is not None,
        )

    def told(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterable[tuple[tuple[str, bool], Any]]:
        """What a call is given: name and whether it is written to, and value; those that were left out are left out."""
        given = zip(self.arguments, args, strict=False)
        if not kwargs:
            return given
        writes = dict(self.arguments)
        return [*given, *(((name, writes[name]), value) for name, value in kwargs.items())]
