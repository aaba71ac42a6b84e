"""Normalisation by the statistics of the batch, and by running ones once training is over."""

from dataclasses import dataclass
from math import prod

from .. import ops
from ..context import Context
from ..errors import ShapeError
from ..exact import difference
from ..var import AnyVar
from .checks import refuse, require_at_least, require_not_negative
from .init import ones, zeros
from .layer import Layer, Parameter, Params, context
from .norm import values, weight_and_bias


@dataclass(frozen=True)
class BatchNorm(Layer):
    """Each channel normalised over batch and spatial axes, then scaled and moved (Ioffe and Szegedy, 2015).

    In training the mean and the biased variance are those of the batch, and the state becomes
    ``(1 - momentum) * running + momentum * batch``, with the unbiased variance, as in PyTorch; in evaluation the
    running ones are used. Without ``track_running_stats`` there is no state, and always those of the batch are used.
    Raises DomainError for a size below 1, a ``momentum`` outside 0 to 1 and an ``eps`` that is not a finite number
    of at least 0.
    """

    channels: int
    eps: float = 1e-5
    momentum: float = 0.1
    affine: bool = True
    track_running_stats: bool = True

    def __post_init__(self) -> None:
        require_at_least(self, 1, "channels")
        require_not_negative(self, "eps")
        if not 0 <= self.momentum <= 1:
            raise refuse(self, "momentum", "a number from 0 to 1")

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight`` and ``bias``, unless switched off."""
        return weight_and_bias(self.channels) if self.affine else {}

    def own_state(self) -> dict[str, Parameter]:
        """``running_mean`` and ``running_var``, unless switched off."""
        start = {"running_mean": zeros(), "running_var": ones()}
        return {name: Parameter((self.channels,), s) for name, s in start.items()} if self.track_running_stats else {}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(batch, channels, …) to the same shape. Raises ShapeError for a batch of which no variance can be taken."""
        weight, bias = values(p, self, self.affine)
        if self.track_running_stats:
            ctx = context(ctx, self)
            if not ctx.training:
                mean, variance = ctx.state["running_mean"], ctx.state["running_var"]
                return ops.batch_norm_inference(x, mean, variance, weight, bias, self.eps)
        y = ops.batch_norm(x, weight, bias, self.eps)  # the first to look at the shapes
        if self.track_running_stats and ctx is not None:
            self._track(x, ctx)
        return y

    def _track(self, x: AnyVar, ctx: Context) -> None:
        axes = (0, *range(2, len(x.shape)))
        if prod(x.shape[axis] for axis in axes) < 2:
            raise ShapeError(
                f"{self!r}: argument 'x': expected at least 2 elements of each channel in training, "
                f"got shape {tuple(x.shape)}"
            )
        batch = {"running_mean": ops.reduce_mean(x, axes), "running_var": ops.var(x, axes, correction=1)}
        for name, statistic in batch.items():
            kept = ops.scale(ctx.state[name], difference(1.0, self.momentum))
            ctx.update(name, ops.add(kept, ops.scale(statistic, self.momentum)))
