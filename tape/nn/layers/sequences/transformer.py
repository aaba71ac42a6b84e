"""The block of which transformers are stacks."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import cast

from ....var.var import AnyVar
from ...context import Context
from ...kinds import SIZE
from ...layer import Layer, Params, Step, as_layer
from ..activation import GELU
from ..dropout import Dropout
from ..linear import Linear
from ..norm import LayerNorm
from .attention import MultiHeadAttention
from .positions import Rotary


@dataclass(frozen=True)
class TransformerBlock(Layer, kinds={"hidden": SIZE}):
    """Attention, then two linear layers, each added to what it reads, with norms and dropout.

    With ``pre_norm`` each reads ``norm(x)``, else the sum is normalised.
    Dropout acts on the softmax, behind the activation and on what is added. ``causal``, ``num_kv_heads``, ``softcap``,
    ``window`` and ``rotary`` are those of `MultiHeadAttention`.

    Source: Vaswani and others (2017); with ``pre_norm`` Xiong and others (2020), On layer normalization in the
        transformer architecture.
    Shapes: x (*Bs, n, embed_dim) -> (*Bs, n, embed_dim); ``mask`` any that can be repeated to (*Bs, n, n) or to (*Bs,
        num_heads, n, n), ``key_mask`` (*Bs, n)
    Dtypes: x, the parameters and the result float32 or float64, all alike; mask bool, or as they are; key_mask bool.
    Raises:
        DomainError: one of its parts refuses a size or a probability; or, when called, it has dropout and no context is
            given.
        ShapeError: when called, x or a mask does not fit.
        DTypeError: the activation is neither a layer nor a function of x alone; or, when called, x or a mask has
            another dtype than the parameters, or holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> tape, layer = Tape(), nn.TransformerBlock(4, num_heads=2, hidden=8)
    >>> layer(tape.params(layer.init(seed=0)), tape.const(np.zeros((3, 4), np.float32))).shape
    (3, 4)
    """

    embed_dim: int
    num_heads: int
    hidden: int
    dropout: float = 0.0
    _: KW_ONLY
    causal: bool = False
    pre_norm: bool = True
    activation: Step = field(default_factory=GELU)
    num_kv_heads: int | None = None
    softcap: float | None = None
    window: int | None = None
    rotary: Rotary | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "activation", as_layer("TransformerBlock: argument 'activation'", self.activation))
        self.children()

    def children(self) -> Mapping[str, Layer]:
        """The parts, in the order in which they act under ``pre_norm``."""
        return {
            "norm1": LayerNorm(self.embed_dim),
            "attention": self._attention,
            "norm2": LayerNorm(self.embed_dim),
            "linear1": Linear(self.embed_dim, self.hidden),
            "activation": cast(Layer, self.activation),
            "linear2": Linear(self.hidden, self.embed_dim),
            "dropout": Dropout(self.dropout),
        }

    @property
    def _attention(self) -> MultiHeadAttention:
        return MultiHeadAttention(
            self.embed_dim, self.num_heads, dropout=self.dropout, causal=self.causal, num_kv_heads=self.num_kv_heads,
            softcap=self.softcap, window=self.window, rotary=self.rotary,
        )  # fmt: skip

    def __call__(
        self,
        p: Params,
        x: AnyVar,
        ctx: Context | None = None,
        *,
        mask: AnyVar | None = None,
        key_mask: AnyVar | None = None,
    ) -> AnyVar:
        """(…, n, embed_dim) to the same shape. Needs a context if there is dropout.

        The masks are those of `MultiHeadAttention`: true where a place may attend to another, and for those that are
        there.
        """

        def attend(x: AnyVar) -> AnyVar:
            return self._through(("dropout",), p, self.part("attention", p, x, ctx, mask=mask, key_mask=key_mask), ctx)

        feed_forward = ("linear1", "activation", "dropout", "linear2", "dropout")
        if self.pre_norm:
            x = x + attend(self.part("norm1", p, x, ctx))
            return x + self._through(("norm2", *feed_forward), p, x, ctx)
        x = self.part("norm1", p, x + attend(x), ctx)
        return self.part("norm2", p, x + self._through(feed_forward, p, x, ctx), ctx)

    def _through(self, names: tuple[str, ...], p: Params, x: AnyVar, ctx: Context | None) -> AnyVar:
        for name in names:
            x = self.part(name, p, x, ctx)
        return x
