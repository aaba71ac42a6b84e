"""Pooling to a given size, over any number of spatial axes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .... import ops
from ....numerics.sizes import Sizes
from ...op_layer import FloatOpLayer
from .spatial import KERNEL, Spatial


@dataclass(frozen=True)
class AdaptivePool(Spatial, FloatOpLayer, kinds={"output_size": KERNEL}):
    """A layer whose windows divide each axis so that ``output_size`` elements are left of it.

    Shapes: x (*Bs, *spatial) -> (*Bs, *output_size)
    Raises:
        ShapeError: when called, x has too few axes, or an empty one.
    """

    output_size: int | Sizes

    def _attributes(self) -> Mapping[str, Any]:
        return {"output_size": self.sizes(self.output_size)}


@dataclass(frozen=True)
class AdaptiveAvgPool(AdaptivePool, op=ops.adaptive_avg_pool):
    """Means of windows.

    Window i of n on an axis of m begins at ``floor(i m / n)`` and ends before ``ceil((i + 1) m / n)``, as in PyTorch.

    Source: torch.nn.AdaptiveAvgPool1d, AdaptiveAvgPool2d and AdaptiveAvgPool3d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AdaptiveAvgPool((2,))({}, Tape().leaf([1.0, 3.0, 2.0])).numpy()
    array([2. , 2.5])
    """


@dataclass(frozen=True)
class AdaptiveAvgPool1d(AdaptiveAvgPool, axes=1):
    """`AdaptiveAvgPool` over one axis.

    Source: torch.nn.AdaptiveAvgPool1d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AdaptiveAvgPool1d(2)({}, Tape().leaf([1.0, 3.0, 2.0])).numpy()
    array([2. , 2.5])
    """


@dataclass(frozen=True)
class AdaptiveAvgPool2d(AdaptiveAvgPool, axes=2):
    """`AdaptiveAvgPool` over two axes.

    Source: torch.nn.AdaptiveAvgPool2d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AdaptiveAvgPool2d(1)({}, Tape().leaf([[1.0, 2.0], [4.0, 3.0]])).numpy()
    array([[2.5]])
    """


@dataclass(frozen=True)
class AdaptiveMaxPool(AdaptivePool, op=ops.adaptive_max_pool):
    """Largest elements of windows; the windows are those of `AdaptiveAvgPool`.

    Source: torch.nn.AdaptiveMaxPool1d, AdaptiveMaxPool2d and AdaptiveMaxPool3d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AdaptiveMaxPool((2,))({}, Tape().leaf([1.0, 3.0, 2.0])).numpy()
    array([3., 3.])
    """


@dataclass(frozen=True)
class AdaptiveMaxPool1d(AdaptiveMaxPool, axes=1):
    """`AdaptiveMaxPool` over one axis.

    Source: torch.nn.AdaptiveMaxPool1d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AdaptiveMaxPool1d(2)({}, Tape().leaf([1.0, 3.0, 2.0])).numpy()
    array([3., 3.])
    """


@dataclass(frozen=True)
class AdaptiveMaxPool2d(AdaptiveMaxPool, axes=2):
    """`AdaptiveMaxPool` over two axes.

    Source: torch.nn.AdaptiveMaxPool2d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AdaptiveMaxPool2d(1)({}, Tape().leaf([[1.0, 2.0], [4.0, 3.0]])).numpy()
    array([[4.]])
    """
