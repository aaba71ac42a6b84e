"""How much a file may ask of its reader."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds that hold before anything is allocated; callers may lower them.

    `block` is the number of bytes read at a time where a body is only checked; `scalars` bounds the hyperparameters,
    and likewise the corrections, of all groups.
    """

    schema_bytes: int = 16 << 20
    json_depth: int = 8
    tensors: int = 65_536
    groups: int = 4096
    scalars: int = 65_536
    name_bytes: int = 255
    rank: int = 16
    tensor_bytes: int = 1 << 40
    payload: int = 1 << 30
    nodes: int = 1 << 18
    block: int = 1 << 20

    @property
    def json_brackets(self) -> int:
        """The most lists and objects that the JSON of a schema has within these limits."""
        return 3 + 2 * self.tensors + 3 * self.groups

    @property
    def json_commas(self) -> int:
        """The most commas: between the fields, sizes and places of tensors, those of groups, and hyperparameters."""
        return 1 + (self.rank + 5) * self.tensors + 4 * self.groups + self.scalars
