"""Pooling to a given size, over any number of spatial axes."""

from dataclasses import dataclass
from typing import ClassVar

from .... import ops
from ....numerics.sizes import Sizes
from ....var.var import AnyVar
from ...checks import Spatial
from ...context import Context
from ...layer import Params


@dataclass(frozen=True)
class AdaptivePool(Spatial):
    """A layer whose windows divide each axis so that ``output_size`` elements are left of it."""

    output_size: int | Sizes

    def __post_init__(self) -> None:
        super().__post_init__()
        self._sizes()

    def _sizes(self) -> Sizes:
        return self.numbers("output_size", 1, self.axes)


@dataclass(frozen=True)
class AdaptiveAvgPool(AdaptivePool):
    """Means of windows.

    Window i of n on an axis of m begins at ``floor(i m / n)`` and ends before ``ceil((i + 1) m / n)``, as in PyTorch.

    Source: torch.nn.AdaptiveAvgPool1d, AdaptiveAvgPool2d and AdaptiveAvgPool3d.
    Shapes: x (*Bs, *spatial) -> (*Bs, *output_size)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or a tuple has another number of them than there are axes.
        ShapeError: when called, x has too few axes, or an empty one.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AdaptiveAvgPool((2,))({}, Tape().leaf([1.0, 3.0, 2.0])).numpy()
    array([2. , 2.5])
    """

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """``output_size`` elements of the last axes."""
        return ops.adaptive_avg_pool(x, self._sizes())


@dataclass(frozen=True)
class AdaptiveAvgPool1d(AdaptiveAvgPool):
    """`AdaptiveAvgPool` over one axis.

    Source: torch.nn.AdaptiveAvgPool1d.
    Shapes: x (*Bs, length) -> (*Bs, output_size)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or a tuple has another number of them than there are axes.
        ShapeError: when called, x has too few axes, or an empty one.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AdaptiveAvgPool1d(2)({}, Tape().leaf([1.0, 3.0, 2.0])).numpy()
    array([2. , 2.5])
    """

    axes: ClassVar[int | None] = 1


@dataclass(frozen=True)
class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """`AdaptiveAvgPool` over two axes.

    Source: torch.nn.AdaptiveAvgPool2d.
    Shapes: x (*Bs, H, W) -> (*Bs, *output_size)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or a tuple has another number of them than there are axes.
        ShapeError: when called, x has too few axes, or an empty one.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AdaptiveAvgPool2d(1)({}, Tape().leaf([[1.0, 2.0], [4.0, 3.0]])).numpy()
    array([[2.5]])
    """

    axes: ClassVar[int | None] = 2


@dataclass(frozen=True)
class AdaptiveMaxPool(AdaptivePool):
    """Largest elements of windows; the windows are those of `AdaptiveAvgPool`.

    Source: torch.nn.AdaptiveMaxPool1d, AdaptiveMaxPool2d and AdaptiveMaxPool3d.
    Shapes: x (*Bs, *spatial) -> (*Bs, *output_size)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or a tuple has another number of them than there are axes.
        ShapeError: when called, x has too few axes, or an empty one.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AdaptiveMaxPool((2,))({}, Tape().leaf([1.0, 3.0, 2.0])).numpy()
    array([3., 3.])
    """

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """``output_size`` elements of the last axes."""
        return ops.adaptive_max_pool(x, self._sizes())


@dataclass(frozen=True)
class AdaptiveMaxPool1d(AdaptiveMaxPool):
    """`AdaptiveMaxPool` over one axis.

    Source: torch.nn.AdaptiveMaxPool1d.
    Shapes: x (*Bs, length) -> (*Bs, output_size)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or a tuple has another number of them than there are axes.
        ShapeError: when called, x has too few axes, or an empty one.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AdaptiveMaxPool1d(2)({}, Tape().leaf([1.0, 3.0, 2.0])).numpy()
    array([3., 3.])
    """

    axes: ClassVar[int | None] = 1


@dataclass(frozen=True)
class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """`AdaptiveMaxPool` over two axes.

    Source: torch.nn.AdaptiveMaxPool2d.
    Shapes: x (*Bs, H, W) -> (*Bs, *output_size)
    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DomainError: a size is no int in its range, or a tuple has another number of them than there are axes.
        ShapeError: when called, x has too few axes, or an empty one.
        DTypeError: when called, x holds no floats.

    >>> from dgrr.tape import Tape, nn
    >>> nn.AdaptiveMaxPool2d(1)({}, Tape().leaf([[1.0, 2.0], [4.0, 3.0]])).numpy()
    array([[4.]])
    """

    axes: ClassVar[int | None] = 2
