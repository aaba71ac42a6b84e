"""Activations as layers: no parameters."""

from dataclasses import dataclass
from math import isfinite

from .. import ops
from ..context import Context
from ..errors import DomainError
from ..var import AnyVar
from .layer import Layer, Params


@dataclass(frozen=True)
class ReLU(Layer):
    """``max(x, 0)``."""

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        return ops.relu(x)


@dataclass(frozen=True)
class Tanh(Layer):
    """The hyperbolic tangent."""

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        return ops.tanh(x)


@dataclass(frozen=True)
class Sigmoid(Layer):
    """``1 / (1 + e ** -x)``."""

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        return ops.sigmoid(x)


@dataclass(frozen=True)
class Softplus(Layer):
    """``log(1 + e ** x)``."""

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        return ops.softplus(x)


@dataclass(frozen=True)
class SiLU(Layer):
    """``x * sigmoid(x)``."""

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        return ops.silu(x)


@dataclass(frozen=True)
class GELU(Layer):
    """``x`` times the normal distribution at x, or its approximation by ``approximate="tanh"``.

    Raises DomainError for another approximation than ``"none"`` and ``"tanh"``.
    """

    approximate: str = "none"

    def __post_init__(self) -> None:
        if self.approximate not in ("none", "tanh"):
            raise DomainError(f"GELU: argument 'approximate': expected 'none' or 'tanh', got {self.approximate!r}")

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        return ops.gelu(x, self.approximate)


@dataclass(frozen=True)
class LeakyReLU(Layer):
    """``x`` where it is positive, else ``x * negative_slope``.

    Raises DomainError for a slope that is not finite.
    """

    negative_slope: float = 0.01

    def __post_init__(self) -> None:
        if not isfinite(self.negative_slope):
            raise DomainError(
                f"LeakyReLU: argument 'negative_slope': expected a finite number, got {self.negative_slope!r}"
            )

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        return ops.leaky_relu(x, self.negative_slope)


@dataclass(frozen=True)
class ELU(Layer):
    """``x`` where it is positive, else ``alpha * (e ** x - 1)``.

    Raises DomainError for an ``alpha`` that is not finite.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        if not isfinite(self.alpha):
            raise DomainError(f"ELU: argument 'alpha': expected a finite number, got {self.alpha!r}")

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape."""
        return ops.elu(x, self.alpha)
