"""How much a file may ask of its reader."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds that hold before anything is allocated; callers may lower them.

    `block` is the number of bytes read at a time where a body is only checked.
    """

    schema_bytes: int = 16 << 20
    json_depth: int = 8
    tensors: int = 65_536
    name_bytes: int = 255
    rank: int = 16
    tensor_bytes: int = 1 << 40
    payload: int = 1 << 30
    nodes: int = 1 << 18
    block: int = 1 << 20
