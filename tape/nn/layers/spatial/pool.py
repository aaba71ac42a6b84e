"""Pooling over any number of spatial axes; it keeps the axes before them."""

from dataclasses import KW_ONLY, dataclass
from math import isfinite
from typing import ClassVar

from .... import ops
from ....numerics.sizes import Sizes
from ....values.per_axis import PerSide
from ....var.var import AnyVar
from ...checks import Spatial, refuse
from ...context import Context
from ...layer import Params


@dataclass(frozen=True)
class PoolLayer(Spatial):
    """A layer that makes one element of each window; the stride is the kernel's size unless given."""

    kernel_size: int | Sizes
    stride: int | Sizes | None = None
    padding: PerSide = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sides("padding", len(self.kernel))
        if self.stride is not None:
            self.numbers("stride", 1, len(self.kernel))

    @property
    def kernel(self) -> Sizes:
        """The size of a window along each axis."""
        return self.numbers("kernel_size", 1, self.axes)


@dataclass(frozen=True)
class MaxPool(PoolLayer):
    """The largest element of each window; with ``ceil_mode`` also of one that hangs over the end.

    Source: torch.nn.MaxPool1d, MaxPool2d and MaxPool3d.
    Shapes: x (*Bs, *spatial) -> (*Bs, *windows); sizes as in `ops.max_pool`
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or a tuple has another number of them than there are axes.
        ShapeError: when called, x has too few axes, or a window would hold no cell.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.MaxPool((2,))({}, Tape().leaf([1.0, 3.0, 2.0, 0.0])).numpy()
    array([3., 2.])
    """

    dilation: int | Sizes = 1
    _: KW_ONLY
    ceil_mode: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.numbers("dilation", 1, len(self.kernel))

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """One element for each window."""
        return ops.max_pool(x, self.kernel, self.stride, self.padding, self.dilation, self.ceil_mode)


@dataclass(frozen=True)
class MaxPool1d(MaxPool):
    """`MaxPool` over one axis.

    Source: torch.nn.MaxPool1d.
    Shapes: x (*Bs, length) -> (*Bs, windows); sizes as in `ops.max_pool`
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or a tuple has another number of them than there are axes.
        ShapeError: when called, x has too few axes, or a window would hold no cell.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.MaxPool1d(2)({}, Tape().leaf([1.0, 3.0, 2.0, 0.0])).numpy()
    array([3., 2.])
    """

    axes: ClassVar[int | None] = 1


@dataclass(frozen=True)
class MaxPool2d(MaxPool):
    """`MaxPool` over two axes.

    Source: torch.nn.MaxPool2d.
    Shapes: x (*Bs, H, W) -> (*Bs, Ho, Wo); sizes as in `ops.max_pool`
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or a tuple has another number of them than there are axes.
        ShapeError: when called, x has too few axes, or a window would hold no cell.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.MaxPool2d(2)({}, Tape().leaf([[1.0, 2.0], [4.0, 3.0]])).numpy()
    array([[4.]])
    """

    axes: ClassVar[int | None] = 2


@dataclass(frozen=True)
class AvgPool(PoolLayer):
    """The mean of each window.

    Cells of the padding count as zeros, or with ``count_include_pad=False`` not at all; with ``ceil_mode`` the last
    window may hang over the end. The cells of a window are ``dilation`` apart.

    Source: torch.nn.AvgPool1d, AvgPool2d and AvgPool3d.
    Shapes: x (*Bs, *spatial) -> (*Bs, *windows); sizes as in `ops.max_pool`
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or a tuple has another number of them than there are axes.
        ShapeError: when called, x has too few axes, or a window would hold no cell.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AvgPool((2,))({}, Tape().leaf([1.0, 3.0, 2.0, 0.0])).numpy()
    array([2., 1.])
    """

    _: KW_ONLY
    count_include_pad: bool = True
    ceil_mode: bool = False
    dilation: int | Sizes = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.numbers("dilation", 1, len(self.kernel))

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """One element for each window."""
        counted = self.count_include_pad
        return ops.avg_pool(x, self.kernel, self.stride, self.padding, counted, self.ceil_mode, self.dilation)


@dataclass(frozen=True)
class AvgPool1d(AvgPool):
    """`AvgPool` over one axis.

    Source: torch.nn.AvgPool1d.
    Shapes: x (*Bs, length) -> (*Bs, windows); sizes as in `ops.max_pool`
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or a tuple has another number of them than there are axes.
        ShapeError: when called, x has too few axes, or a window would hold no cell.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AvgPool1d(2)({}, Tape().leaf([1.0, 3.0, 2.0, 0.0])).numpy()
    array([2., 1.])
    """

    axes: ClassVar[int | None] = 1


@dataclass(frozen=True)
class AvgPool2d(AvgPool):
    """`AvgPool` over two axes.

    Source: torch.nn.AvgPool2d.
    Shapes: x (*Bs, H, W) -> (*Bs, Ho, Wo); sizes as in `ops.max_pool`
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or a tuple has another number of them than there are axes.
        ShapeError: when called, x has too few axes, or a window would hold no cell.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AvgPool2d(2)({}, Tape().leaf([[1.0, 2.0], [4.0, 3.0]])).numpy()
    array([[2.5]])
    """

    axes: ClassVar[int | None] = 2


@dataclass(frozen=True)
class SmoothMaxPool(PoolLayer):
    """``log(sum(exp(beta * x))) / beta`` of each window: the more ``beta``, the closer to its largest element.

    Source: the log-sum-exp of each window: Boyd and Vandenberghe (2004), Convex Optimization, section 3.1.5.
    Shapes: x (*Bs, *spatial) -> (*Bs, *windows); sizes as in `ops.max_pool`
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or a tuple has another number of them than there are axes.
        DomainError: ``beta`` is 0 or not finite, or, when called, the dtype of x cannot hold it.
        ShapeError: when called, x has too few axes, or a window would hold no cell.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.SmoothMaxPool((2,))({}, Tape().leaf([0.0, 0.0, 9.0, 1.0])).numpy().round(4)
    array([0.6931, 9.0003])
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta == 0 or not isfinite(self.beta):
            raise refuse(self, "beta", "a finite number other than 0")

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """One element for each window."""
        return ops.smooth_max_pool(x, self.kernel, self.stride, self.padding, self.beta)


@dataclass(frozen=True)
class LPPool(Spatial):
    """``sum(x ** p) ** (1 / p)`` of each window; p is ``norm_type``, and the stride the kernel's size unless given.

    Source: torch.nn.LPPool1d, LPPool2d and LPPool3d.
    Shapes: x (*Bs, *spatial) -> (*Bs, *windows); sizes as in `ops.max_pool`
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or ``norm_type`` is no number above 0 and at most 2**20.
        ShapeError: when called, x has too few axes, or a window would hold no cell.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.LPPool(2, (2,))({}, Tape().leaf([3.0, 4.0, 0.0, 2.0])).numpy()
    array([5., 2.])
    """

    norm_type: float
    kernel_size: Sizes
    stride: int | Sizes | None = None
    _: KW_ONLY
    ceil_mode: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        kernel = self.numbers("kernel_size", 1, None)
        if self.stride is not None:
            self.numbers("stride", 1, len(kernel))
        if not 0 < self.norm_type <= 1 << 20:
            raise refuse(self, "norm_type", "a number above 0 and at most 2**20")

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """One element for each window."""
        return ops.lp_pool(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)
