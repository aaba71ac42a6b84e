"""Activations as layers: no parameters."""

from dataclasses import dataclass
from math import isfinite

from .. import ops
from ..context import Context
from ..errors import DomainError
from ..var import Var
from .layer import Axis, F, Params, S, SameShape


@dataclass(frozen=True)
class ReLU(SameShape[Axis]):
    """``max(x, 0)``."""

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.relu(x)


@dataclass(frozen=True)
class Tanh(SameShape[Axis]):
    """The hyperbolic tangent."""

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.tanh(x)


@dataclass(frozen=True)
class Sigmoid(SameShape[Axis]):
    """``1 / (1 + e ** -x)``."""

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.sigmoid(x)


@dataclass(frozen=True)
class Softplus(SameShape[Axis]):
    """``log(1 + e ** x)``."""

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.softplus(x)


@dataclass(frozen=True)
class SiLU(SameShape[Axis]):
    """``x * sigmoid(x)``."""

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.silu(x)


@dataclass(frozen=True)
class GELU(SameShape[Axis]):
    """``x`` times the normal distribution at x, or its approximation by ``approximate="tanh"``.

    Raises DomainError for another approximation than ``"none"`` and ``"tanh"``.
    """

    approximate: str = "none"

    def __post_init__(self) -> None:
        if self.approximate not in ("none", "tanh"):
            raise DomainError(f"GELU: argument 'approximate': expected 'none' or 'tanh', got {self.approximate!r}")

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.gelu(x, self.approximate)


@dataclass(frozen=True)
class LeakyReLU(SameShape[Axis]):
    """``x`` where it is positive, else ``x * negative_slope``.

    Raises DomainError for a slope that is not finite.
    """

    negative_slope: float = 0.01

    def __post_init__(self) -> None:
        if not isfinite(self.negative_slope):
            raise DomainError(
                f"LeakyReLU: argument 'negative_slope': expected a finite number, got {self.negative_slope!r}"
            )

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.leaky_relu(x, self.negative_slope)


@dataclass(frozen=True)
class ELU(SameShape[Axis]):
    """``x`` where it is positive, else ``alpha * (e ** x - 1)``.

    Raises DomainError for an ``alpha`` that is not finite.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        if not isfinite(self.alpha):
            raise DomainError(f"ELU: argument 'alpha': expected a finite number, got {self.alpha!r}")

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        return ops.elu(x, self.alpha)
