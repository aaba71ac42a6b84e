"""Dropout as a layer."""

from dataclasses import dataclass

from ...var.var import AnyVar
from ..checks import require_probability
from ..context import Context
from ..layer import Layer, Params, context


@dataclass(frozen=True)
class Dropout(Layer):
    """In training each element becomes 0 with probability ``p``, else it is divided by ``1 - p``; else the identity.

    What is drawn depends on seed, step, micro-batch and the number of draws before it in the step alone.

    Source: Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov (2014); torch.nn.Dropout.
    Shapes: x (*S) -> (*S)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: ``p`` is outside 0 to 1, or it is called without a context, which only a ``p`` of 0 does not need.
        DTypeError: when called in training, x holds no floats.

    >>> from dgrr.tape import Context, Random, Tape, nn
    >>> tape = Tape()
    >>> ctx = Context(training=True, random=Random(tape.const(0), seed=7))
    >>> nn.Dropout(0.5)({}, tape.const(np.ones(4)), ctx).numpy()
    array([2., 2., 0., 0.])
    """

    p: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        require_probability(self, "p")

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape. Needs a context, unless the probability is 0."""
        return dropped(self, x, self.p, ctx)


def dropped(layer: Layer, x: AnyVar, probability: float, ctx: Context | None) -> AnyVar:
    """``x`` after a layer's dropout. Raises DomainError, naming the layer, without a context to draw from."""
    if probability == 0 or not context(ctx, layer).training:
        return x
    return context(ctx, layer).random.dropout(x, probability)
