"""Normalisation by the statistics of the batch, and by running ones once training is over."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from math import inf, nan

from ... import ops
from ...numerics.math.exact import difference
from ...record.kinds.values import Values, optional
from ...var.var import AnyVar
from ..checks import require_several
from ..context import Context, context
from ..initializers import ones, zeros
from ..kinds import SIZE
from ..parameters import Parameter
from ..scope import Params
from .norm import Norm

Part = Callable[[AnyVar], AnyVar]

COUNT = "num_batches_tracked"
"""The steps so far, in the element type of the running statistics."""

SHARE = Values("a number from 0 to 1", lambda share: 0 <= share <= 1, (-0.1, 1.5, inf, nan))


@dataclass(frozen=True)
class BatchNorm(Norm, kinds={"channels": SIZE, "momentum": optional(SHARE)}):
    """Each channel normalised over batch and spatial axes, then scaled and moved.

    In training the mean and the biased variance are those of the batch, and the state becomes
    ``(1 - momentum) * running + momentum * batch``, with the unbiased variance, as in PyTorch; in evaluation the
    running ones are used. ``momentum=None`` is 1 / k in the k-th step, which the state counts: the running ones are the
    means over all steps. Without ``track_running_stats`` there is no state, and always those of the batch are used.

    Source: Ioffe and Szegedy (2015); torch.nn.BatchNorm2d.
    Raises:
        DomainError: when called, a context is needed and none is given.
        ShapeError: when called, axis 1 of x is not ``channels``, parameters or state do not fit, or x has fewer than
            two elements of a channel where the batch's statistics are used.

    >>> from dgrr.tape import Tape, nn
    >>> layer = nn.BatchNorm(1, eps=0.0, affine=False, track_running_stats=False)
    >>> layer({}, Tape().leaf([[1.0], [3.0]])).numpy()
    array([[-1.],
           [ 1.]])
    """

    channels: int
    eps: float = 1e-5
    momentum: float | None = 0.1
    _: KW_ONLY
    affine: bool = True
    track_running_stats: bool = True
    bias: bool = True

    def own_state(self) -> dict[str, Parameter]:
        """``running_mean`` and ``running_var``, and without momentum ``num_batches_tracked``; unless switched off."""
        if not self.track_running_stats:
            return {}
        start = {"running_mean": zeros(), "running_var": ones()}
        running = {name: Parameter((self.channels,), s) for name, s in start.items()}
        return running if self.momentum is not None else {**running, COUNT: Parameter((), zeros())}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(batch, channels, …) to the same shape. Raises ShapeError for a batch of which no variance can be taken."""
        weight, bias = self.values(p, x)
        if self.track_running_stats:
            ctx = context(ctx, self)
            if not ctx.training:
                mean, variance = ctx.state["running_mean"], ctx.state["running_var"]
                return ops.batch_norm_inference(x, mean, variance, weight, bias, self.eps)
        axes = (0, *range(2, len(x.shape)))
        require_several(self, x, axes, "each channel" + " in training" * self.track_running_stats)
        y = ops.batch_norm(x, weight, bias, self.eps)
        if self.track_running_stats and ctx is not None:
            self._track(x, axes, ctx)
        return y

    def _track(self, x: AnyVar, axes: tuple[int, ...], ctx: Context) -> None:
        batch = {"running_mean": ops.reduce_mean(x, axes), "running_var": ops.var(x, axes, correction=1)}
        kept, new = self._shares(ctx)
        for name, statistic in batch.items():
            ctx.update(name, ops.add(kept(ctx.state[name]), new(statistic)))

    def _shares(self, ctx: Context) -> tuple[Part, Part]:
        """What becomes of the running statistics, and of those of the batch, before they are added."""
        if self.momentum is not None:
            old, share = difference(1.0, self.momentum), self.momentum
            return lambda running: ops.scale(running, old), lambda batch: ops.scale(batch, share)
        count = ctx.state[COUNT] + 1.0
        ctx.update(COUNT, count)
        new = ops.inv(count)
        return lambda running: running * (1.0 - new), lambda batch: batch * new
