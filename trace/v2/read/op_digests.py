"""The digests of every value and gradient of a step, as an OPS frame holds them."""

from typing import NamedTuple

from ....completed_step import TapeNode


class OpDigests(NamedTuple):
    """What a step computed, node by node: the nodes, the digest of each value, that of each gradient (None: none)."""

    nodes: tuple[TapeNode, ...]
    values: tuple[bytes, ...]
    grads: tuple[bytes | None, ...]
