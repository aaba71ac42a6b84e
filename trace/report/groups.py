"""Names of the groups of params: by the pattern that their names share, since a trace holds the names alone."""

from collections.abc import Sequence

from ...base.runs.completed_step import of_group
from ..v2.format.schema import Schema


def groups(schema: Schema) -> dict[str, str]:
    """How the hyperparameters of each group end, such as ``#1``, and the group's pattern; empty for a lone group."""
    names = [[schema.tensors[i].name for i in group.tensors if i < schema.params] for group in schema.rules]
    if len(names) < 2:
        return {}
    return {
        of_group("", k): pattern(mine, [name for j, other in enumerate(names) if j != k for name in other])
        for k, mine in enumerate(names)
    }


def pattern(mine: Sequence[str], others: Sequence[str]) -> str:
    """What the names share and no other has; without that the names themselves.

    >>> pattern(["0.bias", "2.bias"], ["0.weight", "2.weight"])
    '*.bias'
    >>> pattern(["encoder.0.weight", "encoder.0.bias"], ["head.weight"])
    'encoder.*'
    >>> pattern(["a", "b", "c", "d"], ["e"])
    'a, b and 2 more'
    """
    if len(mine) > 1:
        for end, form in ((-1, "*.{}"), (0, "{}.*")):
            parts = {name.split(".")[end] for name in mine}
            if len(parts) == 1 and not parts & {name.split(".")[end] for name in others}:
                return form.format(*parts)
    return ", ".join(mine) if len(mine) <= 3 else f"{', '.join(mine[:2])} and {len(mine) - 2} more"
