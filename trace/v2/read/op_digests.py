"""What a step computed, as a trace digests it."""

from dataclasses import dataclass

from ....base.runs.completed_step import TapeNode


@dataclass(frozen=True, slots=True)
class OpDigests:
    """What a step computed, in the order of execution: each node, the digest of its value, that of its gradient."""

    nodes: tuple[TapeNode, ...]
    values: tuple[bytes, ...]
    grads: tuple[bytes | None, ...]
    """None where no gradient arrived."""
