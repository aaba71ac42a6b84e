"""Pooling over any number of spatial axes; it keeps the axes before them."""

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

from .. import ops
from ..context import Context
from ..shape import Sizes
from ..var import AnyVar
from .checks import Spatial, refuse
from .layer import Params


@dataclass(frozen=True)
class Pool(Spatial):
    """A layer that makes one element of each window; the stride is the kernel's size unless given."""

    kernel_size: int | Sizes
    stride: int | Sizes | None = None
    padding: int | Sizes = 0

    def __post_init__(self) -> None:
        self.per_axis("padding", 0, len(self.kernel))
        if self.stride is not None:
            self.per_axis("stride", 1, len(self.kernel))

    @property
    def kernel(self) -> Sizes:
        """The size of a window along each axis."""
        return self.per_axis("kernel_size", 1, self.axes)


@dataclass(frozen=True)
class MaxPool(Pool):
    """The largest element of each window: (…, *spatial) to (…, *spatial).

    Raises DomainError for sizes out of range.
    """

    dilation: int | Sizes = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.per_axis("dilation", 1, len(self.kernel))

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """One element for each window."""
        return ops.max_pool(x, self.kernel, self.stride, self.padding, self.dilation)


@dataclass(frozen=True)
class MaxPool1d(MaxPool):
    """`MaxPool` over one axis."""

    axes: ClassVar[int | None] = 1


@dataclass(frozen=True)
class MaxPool2d(MaxPool):
    """`MaxPool` over two axes."""

    axes: ClassVar[int | None] = 2


@dataclass(frozen=True)
class AvgPool(Pool):
    """The mean of each window: (…, *spatial) to (…, *spatial).

    Cells of the padding count as zeros, or with ``count_include_pad=False`` not at all.
    Raises DomainError for sizes out of range.
    """

    count_include_pad: bool = True

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """One element for each window."""
        return ops.avg_pool(x, self.kernel, self.stride, self.padding, self.count_include_pad)


@dataclass(frozen=True)
class AvgPool1d(AvgPool):
    """`AvgPool` over one axis."""

    axes: ClassVar[int | None] = 1


@dataclass(frozen=True)
class AvgPool2d(AvgPool):
    """`AvgPool` over two axes."""

    axes: ClassVar[int | None] = 2


@dataclass(frozen=True)
class SmoothMaxPool(Pool):
    """``log(sum(exp(beta * x))) / beta`` of each window: the more ``beta``, the closer to its largest element.

    (…, *spatial) to (…, *spatial). Raises DomainError for sizes out of range and for a ``beta`` of 0 or not finite.
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
class AdaptivePool(Spatial):
    """A layer whose windows divide each axis so that ``output_size`` elements are left of it."""

    output_size: int | Sizes

    def __post_init__(self) -> None:
        self._sizes()

    def _sizes(self) -> Sizes:
        return self.per_axis("output_size", 1, self.axes)


@dataclass(frozen=True)
class AdaptiveAvgPool(AdaptivePool):
    """Means of windows: (…, *spatial) to (…, *output_size).

    Window i of n on an axis of m begins at ``floor(i m / n)`` and ends before ``ceil((i + 1) m / n)``, as in PyTorch.
    Raises DomainError for sizes below 1.
    """

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """``output_size`` elements of the last axes."""
        return ops.adaptive_avg_pool(x, self._sizes())


@dataclass(frozen=True)
class AdaptiveAvgPool1d(AdaptiveAvgPool):
    """`AdaptiveAvgPool` over one axis."""

    axes: ClassVar[int | None] = 1


@dataclass(frozen=True)
class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """`AdaptiveAvgPool` over two axes."""

    axes: ClassVar[int | None] = 2


@dataclass(frozen=True)
class AdaptiveMaxPool(AdaptivePool):
    """Largest elements of windows: (…, *spatial) to (…, *output_size); the windows of `AdaptiveAvgPool`.

    Raises DomainError for sizes below 1.
    """

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """``output_size`` elements of the last axes."""
        return ops.adaptive_max_pool(x, self._sizes())


@dataclass(frozen=True)
class AdaptiveMaxPool1d(AdaptiveMaxPool):
    """`AdaptiveMaxPool` over one axis."""

    axes: ClassVar[int | None] = 1


@dataclass(frozen=True)
class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """`AdaptiveMaxPool` over two axes."""

    axes: ClassVar[int | None] = 2
