"""Normalisation of each sample by its own mean and variance, scaled and moved by parameters that start as 1 and 0."""

from dataclasses import dataclass

from .. import ops
from ..context import Context
from ..var import AnyVar
from .checks import require_at_least, require_multiple, require_not_negative
from .init import ones, zeros
from .layer import Layer, Parameter, Params, parameter


def weight_and_bias(size: int) -> dict[str, Parameter]:
    """The parameters of a norm over so many features or channels."""
    return {"weight": Parameter((size,), ones()), "bias": Parameter((size,), zeros())}


def values(p: Params, layer: Layer, affine: bool) -> tuple[AnyVar | None, AnyVar | None]:
    """``weight`` and ``bias``, or None for both if the layer has none."""
    return (parameter(p, layer, "weight"), parameter(p, layer, "bias")) if affine else (None, None)


@dataclass(frozen=True)
class LayerNorm(Layer):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last axis (Ba et al., 2016).

    Raises DomainError for a size below 1 and for an ``eps`` that is not a finite number of at least 0.
    """

    size: int
    eps: float = 1e-5
    affine: bool = True

    def __post_init__(self) -> None:
        require_at_least(self, 1, "size")
        require_not_negative(self, "eps")

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight`` and ``bias``, unless switched off."""
        return weight_and_bias(self.size) if self.affine else {}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, size) to the same shape."""
        y: AnyVar = ops.layer_norm(x, *values(p, self, self.affine), self.eps)  # pyright: ignore[reportUnknownVariableType]
        return y


@dataclass(frozen=True)
class RMSNorm(Layer):
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axis (Zhang and Sennrich, 2019).

    Raises DomainError for a size below 1 and for an ``eps`` that is not a finite number of at least 0.
    """

    size: int
    eps: float = 1e-5
    affine: bool = True

    def __post_init__(self) -> None:
        require_at_least(self, 1, "size")
        require_not_negative(self, "eps")

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight``, unless switched off."""
        return {"weight": Parameter((self.size,), ones())} if self.affine else {}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, size) to the same shape."""
        y: AnyVar = ops.rms_norm(x, parameter(p, self, "weight") if self.affine else None, self.eps)  # pyright: ignore[reportUnknownVariableType]
        return y


@dataclass(frozen=True)
class GroupNorm(Layer):
    """Channels normalised in ``num_groups`` groups, over their spatial axes (Wu and He, 2018).

    Raises DomainError for sizes below 1, for channels that the groups do not divide and for an ``eps`` that is not a
    finite number of at least 0.
    """

    num_groups: int
    channels: int
    eps: float = 1e-5
    affine: bool = True

    def __post_init__(self) -> None:
        require_at_least(self, 1, "num_groups", "channels")
        require_multiple(self, "channels", "num_groups")
        require_not_negative(self, "eps")

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight`` and ``bias``, unless switched off."""
        return weight_and_bias(self.channels) if self.affine else {}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(batch, channels, …) to the same shape."""
        y: AnyVar = ops.group_norm(x, self.num_groups, *values(p, self, self.affine), self.eps)  # pyright: ignore[reportUnknownVariableType]
        return y


@dataclass(frozen=True)
class InstanceNorm(Layer):
    """Each channel normalised over its spatial axes (Ulyanov et al., 2016); without parameters unless ``affine``.

    Raises DomainError for a size below 1 and for an ``eps`` that is not a finite number of at least 0.
    """

    channels: int
    eps: float = 1e-5
    affine: bool = False

    def __post_init__(self) -> None:
        require_at_least(self, 1, "channels")
        require_not_negative(self, "eps")

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight`` and ``bias``, if switched on."""
        return weight_and_bias(self.channels) if self.affine else {}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(batch, channels, …) to the same shape."""
        y: AnyVar = ops.instance_norm(x, *values(p, self, self.affine), self.eps)  # pyright: ignore[reportUnknownVariableType]
        return y
