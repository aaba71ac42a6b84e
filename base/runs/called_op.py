"""A call of an op inside a step, as a recorder gets it while the step runs."""

from dataclasses import dataclass

RECOMPUTE = "recompute"
"""The phase of what a checkpointed layer does once more."""


@dataclass(frozen=True, slots=True)
class CalledOp:
    """A call of an op: what it was told, what it took and what it gave.

    Args:
        name: of the op, such as ``aten.pow.Scalar``.
        options: what it was told beside tensors, as text, such as ``self=10000.0``.
        inputs, outputs: digests of the tensors that it took, as they were then, and of those that it gave or changed.
        phase: ``forward``, ``backward``, ``recompute`` (a layer runs again in the backward pass), ``between`` (that and
            the optimizer), ``clip``, ``optimizer`` or ``collective``.
        scope: path of the layer, such as ``blocks.0.attn``; else empty.
        place: the user's line, such as ``gpt.py:28: return x * base``, in the backward pass that of the forward pass;
            else empty.
        draws: whether it takes numbers from a random generator.
        generator: where it draws, the digest of the generator's state before; empty if it is not recorded.
        raised: whether it raised an error, and so gave nothing; or was at work when the frame was written.
    """

    name: str
    options: str = ""
    inputs: tuple[bytes, ...] = ()
    outputs: tuple[bytes, ...] = ()
    phase: str = "forward"
    scope: str = ""
    place: str = ""
    draws: bool = False
    raised: bool = False
    generator: bytes = b""

    @property
    def where(self) -> str:
        """The phase, unless it is the forward pass, layer and line: ``in backward, blocks.0.attn gpt.py:28``."""
        line = self.place.partition(": ")[0]
        phase = "" if self.phase == "forward" else f"in {self.phase}"
        return ", ".join(filter(None, [phase, " ".join(filter(None, [self.scope, line]))]))
