"""Normalisation of each sample by its own mean and variance, scaled and moved by parameters that start as 1 and 0."""

from dataclasses import dataclass

from ... import ops
from ...var.var import AnyVar
from ..checks import require_at_least, require_multiple, require_not_negative
from ..context import Context
from ..initializers import ones, zeros
from ..layer import Layer, Parameter, Params, parameter


def weight_and_bias(size: int) -> dict[str, Parameter]:
    """The parameters of a norm over so many features or channels."""
    return {"weight": Parameter((size,), ones()), "bias": Parameter((size,), zeros())}


def values(p: Params, layer: Layer, affine: bool) -> tuple[AnyVar | None, AnyVar | None]:
    """``weight`` and ``bias``, or None for both if the layer has none."""
    return (parameter(p, layer, "weight"), parameter(p, layer, "bias")) if affine else (None, None)


@dataclass(frozen=True)
class LayerNorm(Layer):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last axis.

    Source: Ba, Kiros and Hinton (2016); torch.nn.LayerNorm.
    Shapes: x (*Bs, size) -> (*Bs, size)
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        DomainError: ``size`` is below 1, or ``eps`` is no finite number of at least 0.
        ShapeError: when called, the last axis of x does not fit the parameters.
        DTypeError: when called, x has another dtype than the parameters, or holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.LayerNorm(2, eps=0.0, affine=False)({}, Tape().leaf([1.0, 3.0])).numpy()
    array([-1.,  1.])
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
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axis.

    Source: Zhang and Sennrich (2019); torch.nn.RMSNorm.
    Shapes: x (*Bs, size) -> (*Bs, size)
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        DomainError: ``size`` is below 1, or ``eps`` is no finite number of at least 0.
        ShapeError: when called, the last axis of x does not fit the parameters.
        DTypeError: when called, x has another dtype than the parameters, or holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.RMSNorm(2, eps=0.0, affine=False)({}, Tape().leaf([1.0, 7.0])).numpy()
    array([0.2, 1.4])
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
    """Channels normalised in ``num_groups`` groups, over their spatial axes.

    Source: Wu and He (2018); torch.nn.GroupNorm.
    Shapes: x (B, channels, *S) -> (B, channels, *S)
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        DomainError: a size is below 1, the groups do not divide the channels, or ``eps`` is no finite number of at
            least 0.
        ShapeError: when called, x does not fit the parameters, or the groups do not divide its channels.
        DTypeError: when called, x has another dtype than the parameters, or holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> layer = nn.GroupNorm(2, 4, eps=0.0, affine=False)
    >>> layer({}, Tape().leaf([[1.0, 3.0, 6.0, 2.0]])).numpy()
    array([[-1.,  1.,  1., -1.]])
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
    """Each channel normalised over its spatial axes; without parameters unless ``affine``.

    Source: Ulyanov, Vedaldi and Lempitsky (2016); torch.nn.InstanceNorm2d.
    Shapes: x (B, channels, *S) -> (B, channels, *S)
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        DomainError: ``channels`` is below 1, or ``eps`` is no finite number of at least 0.
        ShapeError: when called, x does not fit the parameters.
        DTypeError: when called, x has another dtype than the parameters, or holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.InstanceNorm(2, eps=0.0)({}, Tape().leaf([[[1.0, 3.0], [6.0, 2.0]]])).numpy()
    array([[[-1.,  1.],
            [ 1., -1.]]])
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
