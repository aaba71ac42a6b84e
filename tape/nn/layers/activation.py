"""Activations as layers: no parameters."""

from dataclasses import dataclass
from math import isfinite

from ... import ops
from ...errors import DomainError
from ...var.var import Var
from ..context import Context
from ..layer import F, Features, Params, S, SameShape


@dataclass(frozen=True)
class ReLU(SameShape[Features]):
    """``max(x, 0)``.

    Source: Nair and Hinton (2010); torch.nn.ReLU.
    Shapes: x (*S) -> (*S)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.ReLU()({}, Tape().leaf([-1.0, 2.0])).numpy()
    array([0., 2.])
    """

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.relu(x)


@dataclass(frozen=True)
class Tanh(SameShape[Features]):
    """The hyperbolic tangent.

    Source: torch.nn.Tanh.
    Shapes: x (*S) -> (*S)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Tanh()({}, Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.7616])
    """

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.tanh(x)


@dataclass(frozen=True)
class Sigmoid(SameShape[Features]):
    """``1 / (1 + e ** -x)``.

    Source: torch.nn.Sigmoid.
    Shapes: x (*S) -> (*S)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Sigmoid()({}, Tape().leaf([0.0, 1000.0])).numpy()
    array([0.5, 1. ])
    """

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.sigmoid(x)


@dataclass(frozen=True)
class Softplus(SameShape[Features]):
    """``log(1 + e ** x)``.

    Source: Dugas, Bengio, Bélisle, Nadeau and Garcia (2001); torch.nn.Softplus without its threshold.
    Shapes: x (*S) -> (*S)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Softplus()({}, Tape().leaf([0.0, 100.0])).numpy().round(4)
    array([  0.6931, 100.    ])
    """

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.softplus(x)


@dataclass(frozen=True)
class SiLU(SameShape[Features]):
    """``x * sigmoid(x)``.

    Source: Elfwing, Uchibe and Doya (2018); torch.nn.SiLU.
    Shapes: x (*S) -> (*S)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.SiLU()({}, Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.7311])
    """

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.silu(x)


@dataclass(frozen=True)
class GELU(SameShape[Features]):
    """``x`` times the normal distribution at x, or its approximation by ``approximate="tanh"``.

    Source: Hendrycks and Gimpel (2016); torch.nn.GELU.
    Shapes: x (*S) -> (*S)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: ``approximate`` is neither "none" nor "tanh".
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.GELU()({}, Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.8413])
    """

    approximate: str = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.approximate not in ("none", "tanh"):
            raise DomainError(f"GELU: argument 'approximate': expected 'none' or 'tanh', got {self.approximate!r}")

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.gelu(x, self.approximate)


@dataclass(frozen=True)
class LeakyReLU(SameShape[Features]):
    """``x`` where it is positive, else ``x * negative_slope``.

    Source: Maas, Hannun and Ng (2013); torch.nn.LeakyReLU.
    Shapes: x (*S) -> (*S)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: the slope is not finite.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.LeakyReLU(0.25)({}, Tape().leaf([2.0, -2.0])).numpy()
    array([ 2. , -0.5])
    """

    negative_slope: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isfinite(self.negative_slope):
            raise DomainError(
                f"LeakyReLU: argument 'negative_slope': expected a finite number, got {self.negative_slope!r}"
            )

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.leaky_relu(x, self.negative_slope)


@dataclass(frozen=True)
class ELU(SameShape[Features]):
    """``x`` where it is positive, else ``alpha * (e ** x - 1)``.

    Source: Clevert, Unterthiner and Hochreiter (2016); torch.nn.ELU.
    Shapes: x (*S) -> (*S)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: ``alpha`` is not finite.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.ELU()({}, Tape().leaf([2.0, -1.0])).numpy().round(4)
    array([ 2.    , -0.6321])
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isfinite(self.alpha):
            raise DomainError(f"ELU: argument 'alpha': expected a finite number, got {self.alpha!r}")

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.elu(x, self.alpha)
