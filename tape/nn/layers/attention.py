"""Multi-head attention as a layer."""

from dataclasses import KW_ONLY, dataclass

from ...ops.attention.multi_head import joined_heads, weights_and_values
from ...var.var import AnyVar
from ..checks import require_at_least, require_multiple, require_probability
from ..context import Context
from ..initializers import xavier_uniform, zeros
from ..layer import Layer, Params, parameter
from ..parameters import Parameter
from .dropout import dropped

PROJECTIONS = ("q", "k", "v", "o")
"""Queries, keys, values, output."""


@dataclass(frozen=True)
class MultiHeadAttention(Layer):
    """``softmax(q k.T / sqrt(d)) v`` in ``num_heads`` heads of ``d = embed_dim / num_heads``.

    ``q = x @ wq + bq`` and so on; the heads side by side, ``@ wo + bo``, are the output. Weights are (embed_dim,
    embed_dim) and start Xavier-uniform, biases start as 0. With ``causal`` no place attends to a later one;
    ``dropout`` is that of the softmax in training.

    Source: Vaswani and others (2017), section 3.2.2; torch.nn.MultiheadAttention, whose weights are stored otherwise.
    Shapes: x (*Bs, n, embed_dim) -> (*Bs, n, embed_dim); ``context`` (*Bs, m, embed_dim), ``mask`` (n, m) or (*Bs, n,
        m)
    Dtypes: x, context, the parameters and the result float32 or float64, all alike; mask bool.
    Raises:
        DomainError: a size is below 1, the heads do not divide ``embed_dim``, ``dropout`` is outside 0 to 1, or it
            needs a context and none is given.
        ShapeError: when called, x, context or mask does not fit.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, 1, "embed_dim", "num_heads")
        require_multiple(self, "embed_dim", "num_heads")
        require_probability(self, "dropout")

    def own_parameters(self) -> dict[str, Parameter]:
        """``wq``, ``wk``, ``wv``, ``wo`` and, unless switched off, ``bq``, ``bk``, ``bv``, ``bo``."""
        size, start = self.embed_dim, xavier_uniform()
        weights = {f"w{name}": Parameter((size, size), start) for name in PROJECTIONS}
        return {**weights, **{f"b{name}": Parameter((size,), zeros()) for name in PROJECTIONS if self.bias}}

    def __call__(
        self,
        p: Params,
        x: AnyVar,
        ctx: Context | None = None,
        *,
        mask: AnyVar | None = None,
        context: AnyVar | None = None,
    ) -> AnyVar:
        """(…, n, embed_dim) to the same shape.

        ``mask`` is true where a query may attend to a key; keys and values are made from ``context`` (…, m,
        embed_dim) if it is given, else from ``x``.
        """
        wq, wk, wv, wo = (parameter(p, self, f"w{name}") for name in PROJECTIONS)
        bq, bk, bv, bo = (parameter(p, self, f"b{name}") if self.bias else None for name in PROJECTIONS)
        weights, value = weights_and_values(
            x, wq, wk, wv, wo, self.num_heads, mask, self.causal, bq, bk, bv, bo, context
        )
        y: AnyVar = joined_heads(dropped(self, weights, self.dropout, ctx), value, wo, bo)
        return y
