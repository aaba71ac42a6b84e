"""Normalisation of each sample by its own mean and variance, scaled and moved by parameters that start as 1 and 0."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from ... import ops
from ...record.kinds.values import NOT_NEGATIVE
from ...var.var import AnyVar
from ..checks import require_channels, require_features, require_several
from ..context import Context
from ..initializers import ones, zeros
from ..kinds import SIZE, multiple_of
from ..layer import Layer
from ..parameters import Initialiser, Parameter
from ..scope import Params, parameter


class Norm(Layer, kinds={"eps": NOT_NEGATIVE}):
    """What norms have in common: ``eps``, and parameters that can be switched off, all or the bias alone.

    That x fits, the layer checks: without parameters nothing else tells how many channels there are.

    Shapes: x (B, channels, *S) -> (B, channels, *S)
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        ShapeError: when called, axis 1 of x is not ``channels``, or a parameter does not fit.
        DTypeError: when called, x has another dtype than the parameters, or holds no floats.
    """

    STARTS: ClassVar[Mapping[str, Initialiser]] = {"weight": ones(), "bias": zeros()}
    """How each parameter starts."""
    COUNT: ClassVar[str] = "channels"
    """The field that says how many elements each parameter has."""

    eps: float
    affine: bool
    bias: bool = True

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight`` and, where the norm has one, ``bias``; none unless ``affine``."""
        return {
            name: Parameter((self._count,), start, "norm") for name, start in self.STARTS.items() if self._has(name)
        }

    def values(self, p: Params, x: AnyVar) -> tuple[AnyVar | None, AnyVar | None]:
        """``weight`` and ``bias``, None for one that the norm has not. Raises ShapeError for x of another size."""
        self._require_fit(x)
        return self._value(p, "weight"), self._value(p, "bias")

    def _require_fit(self, x: AnyVar) -> None:
        require_channels(self, x, self._count)

    @property
    def _count(self) -> int:
        count: int = getattr(self, self.COUNT)
        return count

    def _has(self, name: str) -> bool:
        return self.affine and name in self.STARTS and (self.bias or name != "bias")

    def _value(self, p: Params, name: str) -> AnyVar | None:
        return parameter(p, self, name) if self._has(name) else None


@dataclass(frozen=True)
class FeatureNorm(Norm, kinds={"size": SIZE}):
    """A norm over the last axis.

    Shapes: x (*Bs, size) -> (*Bs, size)
    Raises:
        ShapeError: when called, the last axis of x is not ``size``, or a parameter does not fit.
    """

    COUNT: ClassVar[str] = "size"

    size: int
    eps: float = 1e-5
    _: KW_ONLY
    affine: bool = True

    def _require_fit(self, x: AnyVar) -> None:
        require_features(self, x, self._count)


@dataclass(frozen=True)
class LayerNorm(FeatureNorm):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last axis.

    Source: Ba, Kiros and Hinton (2016); torch.nn.LayerNorm.

    >>> from dgrr.tape import Tape, nn
    >>> nn.LayerNorm(2, eps=0.0, affine=False)({}, Tape().leaf([1.0, 3.0])).numpy()
    array([-1.,  1.])
    """

    _: KW_ONLY
    bias: bool = True

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, size) to the same shape."""
        y: AnyVar = ops.layer_norm(x, *self.values(p, x), self.eps)  # pyright: ignore[reportUnknownVariableType]
        return y


@dataclass(frozen=True)
class RMSNorm(FeatureNorm):
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axis.

    Source: Zhang and Sennrich (2019); torch.nn.RMSNorm.

    >>> from dgrr.tape import Tape, nn
    >>> nn.RMSNorm(2, eps=0.0, affine=False)({}, Tape().leaf([1.0, 7.0])).numpy()
    array([0.2, 1.4])
    """

    STARTS: ClassVar[Mapping[str, Initialiser]] = {"weight": ones()}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, size) to the same shape."""
        y: AnyVar = ops.rms_norm(x, self.values(p, x)[0], self.eps)  # pyright: ignore[reportUnknownVariableType]
        return y


@dataclass(frozen=True)
class GroupNorm(Norm, kinds={"num_groups": SIZE, "channels": multiple_of("num_groups")}):
    """Channels normalised in ``num_groups`` groups, over their spatial axes.

    Source: Wu and He (2018); torch.nn.GroupNorm.

    >>> from dgrr.tape import Tape, nn
    >>> layer = nn.GroupNorm(2, 4, eps=0.0, affine=False)
    >>> layer({}, Tape().leaf([[1.0, 3.0, 6.0, 2.0]])).numpy()
    array([[-1.,  1.,  1., -1.]])
    """

    num_groups: int
    channels: int
    eps: float = 1e-5
    _: KW_ONLY
    affine: bool = True
    bias: bool = True

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(batch, channels, …) to the same shape."""
        y: AnyVar = ops.group_norm(x, self.num_groups, *self.values(p, x), self.eps)  # pyright: ignore[reportUnknownVariableType]
        return y


@dataclass(frozen=True)
class InstanceNorm(Norm, kinds={"channels": SIZE}):
    """Each channel normalised over its spatial axes; without parameters unless ``affine``.

    Two axes are one sample, (channels, length), as a batch of them would have no spatial axis. One of more axes, which
    PyTorch's classes tell from a batch by their number of axes, is refused, unless it could be a batch: give it an
    axis, ``x[None]``.

    Source: Ulyanov, Vedaldi and Lempitsky (2016); torch.nn.InstanceNorm2d.
    Shapes: x (B, channels, *S) or (channels, L) -> the same
    Raises:
        ShapeError: when called, the axis of the channels is not ``channels``, each has fewer than two elements, or a
            parameter does not fit.

    >>> from dgrr.tape import Tape, nn
    >>> nn.InstanceNorm(2, eps=0.0)({}, Tape().leaf([[[1.0, 3.0], [6.0, 2.0]]])).numpy()
    array([[[-1.,  1.],
            [ 1., -1.]]])
    """

    channels: int
    eps: float = 1e-5
    _: KW_ONLY
    affine: bool = False
    bias: bool = True

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(batch, channels, …), or (channels, length), to the same shape."""
        if len(x.shape) == 2 and x.shape[0] == self.channels:
            return ops.reshape(self(p, ops.reshape(x, (1, *x.shape)), ctx), x.shape)
        weight, bias = self.values(p, x)
        require_several(self, x, range(2, len(x.shape)), "each channel in a sample")
        y: AnyVar = ops.instance_norm(x, weight, bias, self.eps)  # pyright: ignore[reportUnknownVariableType]
        return y
