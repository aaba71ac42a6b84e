"""The block of which transformers are stacks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..context import Context
from ..var import AnyVar
from .activation import GELU
from .attention import MultiHeadAttention
from .checks import require_at_least
from .dropout import Dropout
from .layer import Layer, Params
from .linear import Linear
from .norm import LayerNorm


@dataclass(frozen=True)
class TransformerBlock(Layer):
    """Attention, then two linear layers, each added to what it reads, with norms and dropout.

    With ``pre_norm`` each reads ``norm(x)`` (Xiong et al., 2020), else the sum is normalised (Vaswani et al., 2017).
    Dropout acts on the softmax, behind the activation and on what is added.
    Raises DomainError for sizes that its parts refuse.
    """

    embed_dim: int
    num_heads: int
    hidden: int
    dropout: float = 0.0
    causal: bool = False
    pre_norm: bool = True
    activation: Layer = field(default_factory=GELU)

    def __post_init__(self) -> None:
        require_at_least(self, 1, "hidden")
        self.children()

    def children(self) -> Mapping[str, Layer]:
        """The parts, in the order in which they act under ``pre_norm``."""
        return {
            "norm1": LayerNorm(self.embed_dim),
            "attention": MultiHeadAttention(self.embed_dim, self.num_heads, True, self.dropout, self.causal),
            "norm2": LayerNorm(self.embed_dim),
            "linear1": Linear(self.embed_dim, self.hidden),
            "activation": self.activation,
            "linear2": Linear(self.hidden, self.embed_dim),
            "dropout": Dropout(self.dropout),
        }

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, n, embed_dim) to the same shape. Needs a context if there is dropout."""
        first, second = (
            ("norm1", "attention", "dropout"),
            ("norm2", "linear1", "activation", "dropout", "linear2", "dropout"),
        )
        if self.pre_norm:
            x = x + self._through(first, p, x, ctx)
            return x + self._through(second, p, x, ctx)
        x = self.part("norm1", p, x + self._through(first[1:], p, x, ctx), ctx)
        return self.part("norm2", p, x + self._through(second[1:], p, x, ctx), ctx)

    def _through(self, names: tuple[str, ...], p: Params, x: AnyVar, ctx: Context | None) -> AnyVar:
        for name in names:
            x = self.part(name, p, x, ctx)
        return x
