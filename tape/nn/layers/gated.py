"""Gates, a learned slope, and a product of two inputs."""

from dataclasses import KW_ONLY, dataclass

from ... import ops
from ...errors import ShapeError
from ...values.shape import normal_axis
from ...var.var import AnyVar
from ..checks import require_channels
from ..context import Context
from ..initializers import constant, uniform_fan_in
from ..kinds import SIZE
from ..layer import Layer
from ..parameters import Parameter, weight_and_bias
from ..scope import Params, parameter
from .linear import Linear


@dataclass(frozen=True)
class PReLU(Layer, kinds={"num_parameters": SIZE}):
    """``x`` where it is positive, else ``x * weight``: one slope for all, or one for each channel, along axis 1.

    Source: He, Zhang, Ren and Sun (2015), Delving deep into rectifiers; torch.nn.PReLU.
    Shapes: x (*S) -> (*S); with more than one slope x is (N, num_parameters, *S)
    Dtypes: x, weight and the result float32 or float64, all alike.
    Raises:
        ShapeError: when called, x has not as many channels as there are slopes.
        DTypeError: when called, x has another dtype than weight.

    >>> from dgrr.tape import Tape, nn
    >>> tape, layer = Tape(), nn.PReLU()
    >>> layer({"weight": tape.param([0.25])}, tape.const([2.0, -2.0])).numpy()
    array([ 2. , -0.5])
    """

    num_parameters: int = 1
    start: float = 0.25

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight``."""
        return {"weight": Parameter((self.num_parameters,), constant(self.start), "slope")}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        weight, shape = parameter(p, self, "weight"), tuple(x.shape)
        if self.num_parameters > 1:
            require_channels(self, x, self.num_parameters)
            weight = ops.reshape(weight, (self.num_parameters, *(1,) * (len(shape) - 2)))
        slope = ops.broadcast_to(weight, shape)
        return ops.sub(ops.relu(x), ops.mul(slope, ops.relu(ops.neg(x))))


@dataclass(frozen=True)
class GLU(Layer):
    """``a * sigmoid(b)``, a and b the halves of x along an axis, the last unless given.

    Source: Dauphin, Fan, Auli and Grangier (2017); torch.nn.GLU.
    Shapes: x (*A, 2 n, *B) -> (*A, n, *B); B are the axes behind ``axis``
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        ShapeError: when called, x has no such axis, or it is odd.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.GLU()({}, Tape().leaf([3.0, 0.0])).numpy()
    array([1.5])
    """

    axis: int = -1

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """Half as many elements along the axis."""
        axis, shape = normal_axis("GLU", self.axis, len(x.shape)), tuple(x.shape)
        half, rest = divmod(shape[axis], 2)
        if rest:
            raise ShapeError(f"GLU: argument 'x': expected an even size on axis {axis}, got shape {shape}")
        return ops.mul(ops.narrow(x, 0, half, axis), ops.sigmoid(ops.narrow(x, half, half, axis)))


@dataclass(frozen=True)
class SwiGLU(Layer, kinds={"features": SIZE, "hidden": SIZE}):
    """``down(silu(gate(x)) * up(x))``: the feed-forward part of many transformers, of three linear layers.

    Source: Shazeer (2020), GLU variants improve transformer; the names are those of Llama.
    Shapes: x (*Bs, features) -> (*Bs, features)
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        ShapeError: when called, the last axis of x is not ``features``.
        DTypeError: when called, x has another dtype than the parameters.

    >>> from dgrr.tape import nn
    >>> {name: a.shape for name, a in nn.SwiGLU(4, 6).init(seed=0).items()}
    {'gate.weight': (6, 4), 'up.weight': (6, 4), 'down.weight': (4, 6)}
    """

    features: int
    hidden: int
    _: KW_ONLY
    bias: bool = False

    def children(self) -> dict[str, Layer]:
        """``gate``, ``up`` and ``down``."""
        wide = Linear(self.features, self.hidden, bias=self.bias)
        return {"gate": wide, "up": wide, "down": Linear(self.hidden, self.features, bias=self.bias)}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        gated = ops.mul(ops.silu(self.part("gate", p, x, ctx)), self.part("up", p, x, ctx))
        return self.part("down", p, gated, ctx)


@dataclass(frozen=True)
class Bilinear(Layer, kinds={"in1_features": SIZE, "in2_features": SIZE, "out_features": SIZE}):
    """``x @ weight[k] @ other + bias[k]`` for each output k: a product of two inputs.

    Source: torch.nn.Bilinear.
    Shapes: x (*Bs, in1_features), ``other`` (*Bs, in2_features) -> (*Bs, out_features)
    Dtypes: x, other, the parameters and the result float32 or float64, all alike.
    Raises:
        ShapeError: when called, x or other does not fit.
        DTypeError: when called, they have another dtype than the parameters.

    >>> from dgrr.tape import Tape, nn
    >>> tape, layer = Tape(), nn.Bilinear(2, 3, 4)
    >>> x, other = tape.const(np.ones((5, 2), np.float32)), tape.const(np.ones((5, 3), np.float32))
    >>> layer(tape.params(layer.init(seed=0)), x, other=other).shape
    (5, 4)
    """

    in1_features: int
    in2_features: int
    out_features: int
    _: KW_ONLY
    bias: bool = True

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight``, (out_features, in1_features, in2_features), and, unless switched off, ``bias``."""
        start = uniform_fan_in(self.in1_features)
        shape = (self.out_features, self.in1_features, self.in2_features)
        return weight_and_bias(shape, start, self.out_features if self.bias else 0)

    def __call__(  # type: ignore[override]  # a second input
        self, p: Params, x: AnyVar, ctx: Context | None = None, *, other: AnyVar
    ) -> AnyVar:
        """(…, in1_features) and (…, in2_features) to (…, out_features)."""
        leading = tuple(x.shape)[:-1]
        for name, given, size in (("x", x, self.in1_features), ("other", other, self.in2_features)):
            if tuple(given.shape) != (*leading, size):
                raise ShapeError(
                    f"{self!r}: argument {name!r}: expected shape {(*leading, size)}, got {tuple(given.shape)}"
                )
        y = ops.einsum("...i,oij,...j->...o", x, parameter(p, self, "weight"), other)
        return y + parameter(p, self, "bias") if self.bias else y
