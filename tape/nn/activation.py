"""Activations as layers: no parameters."""

from dataclasses import dataclass

from .. import ops
from ..var import AnyVar
from .layer import Layer, Parameter, Params


@dataclass(frozen=True)
class ReLU(Layer):
    """``max(x, 0)``."""

    def parameters(self) -> dict[str, Parameter]:
        """None."""
        return {}

    def __call__(self, p: Params, x: AnyVar) -> AnyVar:
        """The same shape."""
        return ops.relu(x)


@dataclass(frozen=True)
class Tanh(Layer):
    """The hyperbolic tangent."""

    def parameters(self) -> dict[str, Parameter]:
        """None."""
        return {}

    def __call__(self, p: Params, x: AnyVar) -> AnyVar:
        """The same shape."""
        return ops.tanh(x)
