"""Dropout as a layer."""

from dataclasses import dataclass

from ...record.kinds.values import PROBABILITY
from ...var.var import Var
from ..context import Context, context
from ..layer import F, Features, Layer, S, SameShape
from ..scope import Params


@dataclass(frozen=True)
class Dropout(SameShape[Features], kinds={"p": PROBABILITY}):
    """In training each element becomes 0 with probability ``p``, else it is divided by ``1 - p``; else the identity.

    What is drawn depends on seed, step, micro-batch and the number of draws before it in the step alone.

    Source: Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov (2014); torch.nn.Dropout.
    Raises:
        DomainError: it is called without a context, which only a ``p`` of 0 does not need.
        DTypeError: when called in training, x holds no floats.

    >>> from dgrr.tape import Context, Random, Tape, nn
    >>> tape = Tape()
    >>> ctx = Context(training=True, random=Random(tape.const(0), seed=7))
    >>> nn.Dropout(0.5)({}, tape.const(np.ones(4)), ctx).numpy()
    array([2., 2., 0., 0.])
    """

    p: float = 0.5

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape. Needs a context, unless the probability is 0."""
        return dropped(self, x, self.p, ctx)


def dropped(layer: Layer, x: Var[F, *S], probability: float, ctx: Context | None) -> Var[F, *S]:
    """``x`` after a layer's dropout. Raises DomainError, naming the layer, without a context to draw from."""
    if probability == 0 or not context(ctx, layer).training:
        return x
    return context(ctx, layer).random.dropout(x, probability)
