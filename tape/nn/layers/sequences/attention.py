"""Multi-head attention as a layer."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from ....errors import DomainError
from ....numerics.sizes import Sizes
from ....ops.attention.masks import SCORES
from ....ops.attention.multi_head import joined_heads, next_weights_and_values, weights_and_values
from ....record.kinds.values import PROBABILITY
from ....var.arithmetic import Constant
from ....var.var import AnyVar
from ...checks import refuse
from ...context import Context, PlaceInSequence
from ...initializers import xavier_uniform, zeros
from ...kinds import SIZE, multiple_of
from ...layer import Layer
from ...parameters import Parameter
from ...scope import Params, parameter
from ..dropout import dropped
from .positions import Rotary

PROJECTIONS = ("q", "k", "v", "o")
"""Queries, keys, values, output."""


KINDS = {
    "num_heads": multiple_of("num_kv_heads"),
    "embed_dim": multiple_of("num_heads"),
    **dict.fromkeys(("num_kv_heads", "kdim", "vdim"), SIZE),
    "dropout": PROBABILITY,
    **SCORES,
}


@dataclass(frozen=True)
class MultiHeadAttention(Layer, kinds=KINDS):
    """``softmax(q k.T / sqrt(d)) v`` in ``num_heads`` heads of ``d = embed_dim / num_heads``.

    ``q = x @ wq + bq`` and so on; the heads side by side, ``@ wo + bo``, are the output. Weights start Xavier-uniform,
    biases as 0. With ``causal`` no place attends to a later one, with ``window`` to none that stands ``window`` places
    or more from it. ``softcap`` c takes ``c tanh(s / c)`` for a score; ``rotary`` turns queries and keys by their
    positions; ``dropout`` is that of the softmax in training. With fewer ``num_kv_heads`` neighbouring heads share
    keys and values. ``kdim`` and ``vdim`` are the widths of what keys and values are made from, unless ``embed_dim``.

    Source: Vaswani and others (2017), section 3.2.2; torch.nn.MultiheadAttention, whose weights are stored otherwise;
        grouped queries of Ainslie and others (2023).
    Shapes: x (*Bs, n, embed_dim) -> (*Bs, n, embed_dim); ``context`` (*Bs, m, kdim), ``value`` (*Bs, m, vdim),
        ``mask`` any that can be repeated to (*Bs, n, m) or to (*Bs, num_heads, n, m), ``key_mask`` (*Bs, m)
    Dtypes: x, context, value, the parameters and the result float32 or float64, all alike; mask bool, or as they are;
        key_mask bool.
    Raises:
        DomainError: the heads do not divide ``embed_dim`` or one another; or, when called, it needs a context and none
            is given.
        ShapeError: when called, x, context, value or a mask does not fit.
        DTypeError: when called, they have other dtypes.

    >>> from dgrr.tape import Tape, nn
    >>> tape, layer = Tape(), nn.MultiHeadAttention(4, num_heads=2)
    >>> layer(tape.params(layer.init(seed=0)), tape.const(np.zeros((3, 4), np.float32))).shape
    (3, 4)
    """

    embed_dim: int
    num_heads: int
    _: KW_ONLY
    bias: bool = True
    dropout: float = 0.0
    causal: bool = False
    num_kv_heads: int | None = None
    kdim: int | None = None
    vdim: int | None = None
    softcap: float | None = None
    window: int | None = None
    rotary: Rotary | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rotary is not None and self.embed_dim // self.num_heads % 2:
            raise refuse(self, "embed_dim", "an even number of features for each head, which rotary pairs")

    def own_parameters(self) -> dict[str, Parameter]:
        """``wq``, ``wk``, ``wv``, ``wo`` and, unless switched off, ``bq``, ``bk``, ``bv``, ``bo``."""
        size, start = self.embed_dim, xavier_uniform()
        narrow = size // self.num_heads * (self.num_kv_heads or self.num_heads)
        shapes = {"q": (size, size), "k": (self.kdim or size, narrow), "v": (self.vdim or size, narrow)}
        weights = {f"w{name}": Parameter(shapes.get(name, (size, size)), start) for name in PROJECTIONS}
        bias = {f"b{name}": Parameter(weights[f"w{name}"].shape[1:], zeros(), "bias") for name in PROJECTIONS}
        return {**weights, **bias} if self.bias else weights

    def children(self) -> Mapping[str, Layer]:
        """None: ``rotary`` has no parameters, and works inside the heads."""
        return {}

    def __call__(
        self,
        p: Params,
        x: AnyVar,
        ctx: Context | None = None,
        *,
        mask: AnyVar | Constant | None = None,
        context: AnyVar | None = None,
        value: AnyVar | None = None,
        key_mask: AnyVar | Constant | None = None,
    ) -> AnyVar:
        """(…, n, embed_dim) to the same shape.

        ``mask`` is true where a query may attend to a key, or of floats that are added to the scores; ``key_mask`` is
        true for the keys that are there. Keys are made from ``context`` (…, m, kdim) if it is given, else from ``x``;
        values from ``value`` (…, m, vdim), else from what keys are made from.
        """
        wq, wk, wv, wo = (parameter(p, self, f"w{name}") for name in PROJECTIONS)
        bq, bk, bv, bo = (parameter(p, self, f"b{name}") if self.bias else None for name in PROJECTIONS)
        if ctx is not None and ctx.place is not None and context is None:
            return self._next(x, (wq, wk, wv, wo), (bq, bk, bv, bo), ctx, ctx.place)
        weights, values = weights_and_values(
            x, wq, wk, wv, wo, self.num_heads, mask, self.causal, bq, bk, bv, bo, context, value, key_mask,
            self.num_kv_heads, self.softcap, self.window, self._placed,
        )  # fmt: skip
        y: AnyVar = joined_heads(dropped(self, weights, self.dropout, ctx), values, wo, bo)
        return y

    def own_cache(self, batch: Sizes, length: int) -> dict[str, Sizes]:
        """The shapes of ``keys`` and ``values``, which are kept where a sequence comes one place after the other."""
        groups = self.num_kv_heads or self.num_heads
        return dict.fromkeys(("keys", "values"), (*batch, groups, length, self.embed_dim // self.num_heads))

    def _next(self, x: AnyVar, weights: Any, biases: Any, ctx: Context, place: PlaceInSequence) -> AnyVar:
        """One place of a sequence, of which the keys and values before it are kept."""
        if not self.causal or tuple(x.shape)[-2] != 1:
            raise DomainError(
                f"{self!r}: expected causal attention, and one place of x, where keys and values are kept, got shape "
                f"{tuple(x.shape)}"
            )
        heads = self.num_heads, self.num_kv_heads or self.num_heads
        kept = ctx.state["keys"], ctx.state["values"]
        found, values, kept = next_weights_and_values(
            x, weights[:3], biases[:3], heads, kept, place.position, self.softcap, self.window,
            lambda heads: self._placed(heads, ctx),
        )  # fmt: skip
        for name, value in zip(("keys", "values"), kept, strict=True):
            ctx.update(name, value)
        y: AnyVar = joined_heads(found, values, weights[3], biases[3])
        return y

    def _placed(self, heads: AnyVar, ctx: Context | None = None) -> AnyVar:
        return heads if self.rotary is None else self.rotary({}, heads, ctx)
