"""The fully connected layer."""

from dataclasses import dataclass

from .. import ops
from ..context import Context
from ..errors import DomainError
from ..var import AnyVar
from .init import uniform_fan_in
from .layer import Layer, Parameter, Params, parameter


@dataclass(frozen=True)
class Linear(Layer):
    """``x @ weight.T + bias`` on the last axis; weight is (out_features, in_features).

    Raises DomainError for sizes below 1.
    """

    in_features: int
    out_features: int
    bias: bool = True

    def __post_init__(self) -> None:
        for name in ("in_features", "out_features"):
            if getattr(self, name) < 1:
                raise DomainError(f"Linear: argument {name!r}: expected at least 1, got {getattr(self, name)}")

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight`` and, unless switched off, ``bias``."""
        start = uniform_fan_in(self.in_features)
        named = {"weight": Parameter((self.out_features, self.in_features), start)}
        return {**named, "bias": Parameter((self.out_features,), start)} if self.bias else named

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, in_features) to (…, out_features)."""
        bias = parameter(p, self, "bias") if self.bias else None
        y: AnyVar = ops.linear(x, parameter(p, self, "weight"), bias)  # pyright: ignore[reportUnknownVariableType]
        return y
