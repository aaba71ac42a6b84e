"""Pooling over any number of spatial axes; it keeps the axes before them."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from math import inf, nan
from typing import Any

from .... import ops
from ....numerics.sizes import Sizes
from ....record.kinds.values import Values
from ....values.per_axis import PerSide
from ...op_layer import FloatOpLayer
from .spatial import BORDER, KERNEL, STEPS, Spatial

SHARPNESS = Values("a finite number other than 0", lambda x: -inf < x < inf and x != 0, (0.0, inf, -inf, nan))
NORM = Values("a number above 0 and at most 2**20", lambda p: 0 < p <= 1 << 20, (0.0, -1.0, 1 << 21, nan))


WINDOW = {"kernel_size": KERNEL, "stride": STEPS}


class Windows(Spatial, FloatOpLayer):
    """A layer that makes one element of each window; the stride is the kernel's size unless given.

    Shapes: x (*Bs, *spatial) -> (*Bs, *windows); sizes as in `ops.max_pool`
    Raises:
        ShapeError: when called, x has too few axes, or a window would hold no cell.
    """


@dataclass(frozen=True)
class Pool(Windows, kinds={**WINDOW, "padding": BORDER}):
    """Windows that may reach over the border."""

    kernel_size: int | Sizes
    stride: int | Sizes | None = None
    padding: PerSide = 0

    def _attributes(self) -> Mapping[str, Any]:
        return {**super()._attributes(), "kernel_size": self.sizes(self.kernel_size)}


@dataclass(frozen=True)
class MaxPool(Pool, op=ops.max_pool, kinds={"dilation": STEPS}):
    """The largest element of each window; with ``ceil_mode`` also of one that hangs over the end.

    Source: torch.nn.MaxPool1d, MaxPool2d and MaxPool3d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.MaxPool((2,))({}, Tape().leaf([1.0, 3.0, 2.0, 0.0])).numpy()
    array([3., 2.])
    """

    dilation: int | Sizes = 1
    _: KW_ONLY
    ceil_mode: bool = False


@dataclass(frozen=True)
class MaxPool1d(MaxPool, axes=1):
    """`MaxPool` over one axis.

    Source: torch.nn.MaxPool1d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.MaxPool1d(2)({}, Tape().leaf([1.0, 3.0, 2.0, 0.0])).numpy()
    array([3., 2.])
    """


@dataclass(frozen=True)
class MaxPool2d(MaxPool, axes=2):
    """`MaxPool` over two axes.

    Source: torch.nn.MaxPool2d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.MaxPool2d(2)({}, Tape().leaf([[1.0, 2.0], [4.0, 3.0]])).numpy()
    array([[4.]])
    """


@dataclass(frozen=True)
class AvgPool(Pool, op=ops.avg_pool, kinds={"dilation": STEPS}):
    """The mean of each window.

    Cells of the padding count as zeros, or with ``count_include_pad=False`` not at all; with ``ceil_mode`` the last
    window may hang over the end. The cells of a window are ``dilation`` apart.

    Source: torch.nn.AvgPool1d, AvgPool2d and AvgPool3d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AvgPool((2,))({}, Tape().leaf([1.0, 3.0, 2.0, 0.0])).numpy()
    array([2., 1.])
    """

    _: KW_ONLY
    count_include_pad: bool = True
    ceil_mode: bool = False
    dilation: int | Sizes = 1


@dataclass(frozen=True)
class AvgPool1d(AvgPool, axes=1):
    """`AvgPool` over one axis.

    Source: torch.nn.AvgPool1d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AvgPool1d(2)({}, Tape().leaf([1.0, 3.0, 2.0, 0.0])).numpy()
    array([2., 1.])
    """


@dataclass(frozen=True)
class AvgPool2d(AvgPool, axes=2):
    """`AvgPool` over two axes.

    Source: torch.nn.AvgPool2d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AvgPool2d(2)({}, Tape().leaf([[1.0, 2.0], [4.0, 3.0]])).numpy()
    array([[2.5]])
    """


@dataclass(frozen=True)
class SmoothMaxPool(Pool, op=ops.smooth_max_pool, kinds={"beta": SHARPNESS}):
    """``log(sum(exp(beta * x))) / beta`` of each window: the more ``beta``, the closer to its largest element.

    Source: the log-sum-exp of each window: Boyd and Vandenberghe (2004), Convex Optimization, section 3.1.5.
    Raises:
        DomainError: when called, the dtype of x cannot hold ``beta``.

    >>> from dgrr.tape import Tape, nn
    >>> nn.SmoothMaxPool((2,))({}, Tape().leaf([0.0, 0.0, 9.0, 1.0])).numpy().round(4)
    array([0.6931, 9.0003])
    """

    beta: float = 1.0


@dataclass(frozen=True)
class LPPool(Windows, op=ops.lp_pool, kinds={**WINDOW, "norm_type": NORM}):
    """``sum(x ** p) ** (1 / p)`` of each window; p is ``norm_type``, and the stride the kernel's size unless given.

    Source: torch.nn.LPPool1d, LPPool2d and LPPool3d.

    >>> from dgrr.tape import Tape, nn
    >>> nn.LPPool(2, (2,))({}, Tape().leaf([3.0, 4.0, 0.0, 2.0])).numpy()
    array([5., 2.])
    """

    norm_type: float
    kernel_size: Sizes
    stride: int | Sizes | None = None
    _: KW_ONLY
    ceil_mode: bool = False
