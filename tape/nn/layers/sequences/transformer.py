"""The blocks of which transformers are stacks."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, cast

from ....var.arithmetic import Constant
from ....var.var import AnyVar
from ...context import Context
from ...kinds import SIZE
from ...layer import Layer, Step, as_layer
from ...scope import Params
from ..activation import GELU
from ..dropout import Dropout
from ..linear import Linear
from ..norm import LayerNorm
from .attention import MultiHeadAttention
from .positions import Rotary

Acting = tuple[str, Mapping[str, Any]]
"""A part by name, and what else it takes."""
FEED_FORWARD: tuple[Acting, ...] = tuple(
    [(name, {}) for name in ("linear1", "activation", "dropout", "linear2", "dropout")]
)


class Stacked(Layer, kinds={"hidden": SIZE}):
    """What blocks have in common: fields, parts, and what is added to what they read."""

    embed_dim: int
    num_heads: int
    hidden: int
    dropout: float
    causal: bool
    pre_norm: bool
    activation: Step
    num_kv_heads: int | None
    softcap: float | None
    window: int | None
    rotary: Rotary | None

    def __post_init__(self) -> None:
        super().__post_init__()
        where = f"{type(self).__name__}: argument 'activation'"
        object.__setattr__(self, "activation", as_layer(where, self.activation))
        self.children()

    @property
    def _norm(self) -> LayerNorm:
        return LayerNorm(self.embed_dim)

    @property
    def _mapping(self) -> Mapping[str, Layer]:
        """Two linear layers with an activation between them, and the dropout of all."""
        return {
            "linear1": Linear(self.embed_dim, self.hidden),
            "activation": cast(Layer, self.activation),
            "linear2": Linear(self.hidden, self.embed_dim),
            "dropout": Dropout(self.dropout),
        }

    def _attention(self, causal: bool) -> MultiHeadAttention:
        return MultiHeadAttention(
            self.embed_dim, self.num_heads, dropout=self.dropout, causal=causal, num_kv_heads=self.num_kv_heads,
            softcap=self.softcap, window=self.window, rotary=self.rotary,
        )  # fmt: skip

    def _added(self, norm: str, p: Params, x: AnyVar, ctx: Context | None, *parts: Acting) -> AnyVar:
        """``x`` and what parts make of ``norm(x)``; without ``pre_norm`` the norm of ``x`` and what they make of it."""
        made = self.part(norm, p, x, ctx) if self.pre_norm else x
        for name, more in parts:
            made = self.part(name, p, made, ctx, **more)
        return x + made if self.pre_norm else self.part(norm, p, x + made, ctx)


@dataclass(frozen=True)
class TransformerBlock(Stacked):
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

    def children(self) -> Mapping[str, Layer]:
        """The parts, in the order in which they act under ``pre_norm``."""
        return {"norm1": self._norm, "attention": self._attention(self.causal), "norm2": self._norm, **self._mapping}

    def __call__(
        self,
        p: Params,
        x: AnyVar,
        ctx: Context | None = None,
        *,
        mask: AnyVar | Constant | None = None,
        key_mask: AnyVar | Constant | None = None,
    ) -> AnyVar:
        """(…, n, embed_dim) to the same shape. Needs a context if there is dropout.

        The masks are those of `MultiHeadAttention`: true where a place may attend to another, and for those that are
        there.
        """
        x = self._added("norm1", p, x, ctx, ("attention", {"mask": mask, "key_mask": key_mask}), ("dropout", {}))
        return self._added("norm2", p, x, ctx, *FEED_FORWARD)


@dataclass(frozen=True)
class TransformerDecoderBlock(Stacked, kinds={"context_dim": SIZE}):
    """Attention to what came before, attention to a context, then two linear layers: a `TransformerBlock` of three.

    Each is added to what it reads, with norms and dropout as there. The first is ``causal`` unless switched off; the
    second makes its queries from x, its keys and values from ``context``, which may have another width
    ``context_dim``, and stands by itself: ``window`` and ``rotary`` are of the first alone.

    Source: Vaswani and others (2017), section 3.1; torch.nn.TransformerDecoderLayer, whose masks say the opposite.
    Shapes: x (*Bs, n, embed_dim) -> (*Bs, n, embed_dim); ``context`` (*Bs, m, context_dim); ``mask`` and ``key_mask``
        as of `TransformerBlock`, ``context_mask`` for (*Bs, n, m), ``context_key_mask`` (*Bs, m)
    Dtypes: x, context, the parameters and the result float32 or float64, all alike; masks bool, or as they are.
    Raises:
        DomainError: one of its parts refuses a size or a probability; or, when called, it has dropout and no context of
            the step is given.
        ShapeError: when called, x, context or a mask does not fit.
        DTypeError: the activation is neither a layer nor a function of x alone; or, when called, x, context or a mask
            has another dtype than the parameters, or holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> tape, layer = Tape(), nn.TransformerDecoderBlock(4, num_heads=2, hidden=8)
    >>> x, context = tape.const(np.zeros((3, 4), np.float32)), tape.const(np.ones((5, 4), np.float32))
    >>> layer(tape.params(layer.init(seed=0)), x, context=context).shape
    (3, 4)
    """

    embed_dim: int
    num_heads: int
    hidden: int
    dropout: float = 0.0
    _: KW_ONLY
    causal: bool = True
    pre_norm: bool = True
    activation: Step = field(default_factory=GELU)
    num_kv_heads: int | None = None
    softcap: float | None = None
    window: int | None = None
    rotary: Rotary | None = None
    context_dim: int | None = None

    def children(self) -> Mapping[str, Layer]:
        """The parts, in the order in which they act under ``pre_norm``."""
        across = replace(self._attention(False), window=None, rotary=None, kdim=self.context_dim, vdim=self.context_dim)
        attentions = {"norm1": self._norm, "attention": self._attention(self.causal), "norm2": self._norm}
        return {**attentions, "cross_attention": across, "norm3": self._norm, **self._mapping}

    def __call__(  # type: ignore[override]  # it reads two sequences
        self,
        p: Params,
        x: AnyVar,
        ctx: Context | None = None,
        *,
        context: AnyVar,
        mask: AnyVar | Constant | None = None,
        key_mask: AnyVar | Constant | None = None,
        context_mask: AnyVar | Constant | None = None,
        context_key_mask: AnyVar | Constant | None = None,
    ) -> AnyVar:
        """(…, n, embed_dim) to the same shape. Needs a context of the step, ``ctx``, if there is dropout.

        The masks are those of `MultiHeadAttention`: true where a place may attend to another, and for those that are
        there.
        """
        own = {"mask": mask, "key_mask": key_mask}
        across = {"context": context, "mask": context_mask, "key_mask": context_key_mask}
        x = self._added("norm1", p, x, ctx, ("attention", own), ("dropout", {}))
        x = self._added("norm2", p, x, ctx, ("cross_attention", across), ("dropout", {}))
        return self._added("norm3", p, x, ctx, *FEED_FORWARD)
