"""Layers about shapes and paths: no arithmetic of their own but a sum."""

from dataclasses import dataclass

from ... import ops
from ...numerics.sizes import Sizes
from ...values.shape import normal_axis
from ...var.var import AnyVar, Var
from ..context import Context
from ..layer import F, Features, Layer, S, SameShape, Step, as_layer
from ..op_layer import OpLayer
from ..scope import Params


@dataclass(frozen=True)
class Identity(SameShape[Features]):
    """``x`` itself.

    Source: torch.nn.Identity.
    Dtypes: any.
    Raises: nothing of its own.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Identity()({}, Tape().leaf([1.0, 2.0])).numpy()
    array([1., 2.])
    """

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """x."""
        return x


@dataclass(frozen=True)
class Flatten(OpLayer, op=ops.flatten):
    """The axes from ``start_axis`` on joined into one; unless given, all but the batch.

    Source: torch.nn.Flatten.
    Shapes: x (*Bs, *S) -> (*Bs, n); the axes of Bs stand before ``start_axis``, and n is the number of elements of S
    Raises:
        ShapeError: when called, x has no such axis.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Flatten()({}, Tape().leaf(np.zeros((2, 3, 4)))).shape
    (2, 12)
    """

    start_axis: int = 1


@dataclass(frozen=True)
class Unflatten(Layer):
    """One axis divided into several: ``Unflatten(1, (1, 8, 8))`` makes images of one channel of 64 features.

    One of the sizes may be -1, for what is left.

    Source: torch.nn.Unflatten.
    Shapes: x (*A, n, *B) -> (*A, *sizes, *B); n is the size of ``axis``
    Dtypes: x and the result float32, float64, int64 or bool, alike.
    Raises:
        ShapeError: when called, x has no such axis, or the sizes do not multiply to its own.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Unflatten(1, (2, -1))({}, Tape().leaf(np.zeros((3, 8)))).shape
    (3, 2, 4)
    """

    axis: int
    sizes: Sizes

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, n, …) to (…, *sizes, …). Raises ShapeError unless the sizes multiply to n."""
        axis = normal_axis("Unflatten", self.axis, len(x.shape))
        return ops.reshape(x, (*x.shape[:axis], *self.sizes, *x.shape[axis + 1 :]))


@dataclass(frozen=True, init=False)
class Residual(Layer):
    """``x + layer(x)``, of a layer or a function; the parameters of the layer stand under ``"layer."``.

    Source: He, Zhang, Ren and Sun (2016), Deep residual learning for image recognition.
    Shapes: x (*S) -> (*S)
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        ShapeError: when called, the layer changes the shape of x.
        DTypeError: what is given is neither a layer nor a function of x alone; or, when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Residual(nn.ReLU())({}, Tape().leaf([-1.0, 2.0])).numpy()
    array([-1.,  4.])
    """

    layer: Layer

    def __init__(self, layer: Step) -> None:
        object.__setattr__(self, "layer", as_layer("Residual: argument 'layer'", layer))

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape. Raises ShapeError for a layer that changes it."""
        return ops.add(x, self.part("layer", p, x, ctx))
