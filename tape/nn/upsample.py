"""Upsampling: more elements along the spatial axes, made from those that there are."""

from dataclasses import dataclass

from .. import ops
from ..context import Context
from ..errors import DomainError
from ..shape import Sizes
from ..var import AnyVar
from .checks import Spatial, refuse
from .layer import Params


@dataclass(frozen=True)
class UpsampleNearest(Spatial):
    """Elements repeated: ``scale_factor`` times along each of the last axes, or so that their sizes become ``size``.

    Raises DomainError unless one of the two is given, as ints of at least 1.
    """

    scale_factor: Sizes | None = None
    size: Sizes | None = None

    def __post_init__(self) -> None:
        if (self.scale_factor is None) == (self.size is None):
            raise DomainError(
                "UpsampleNearest: arguments 'scale_factor' and 'size': expected one of the two, "
                f"got {self.scale_factor!r} and {self.size!r}"
            )
        self.per_axis("size" if self.scale_factor is None else "scale_factor", 1, None)

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, *spatial) to (…, *spatial)."""
        return ops.upsample_nearest(x, self.scale_factor, self.size)


@dataclass(frozen=True)
class UpsampleBilinear(Spatial):
    """The last two axes interpolated to ``size``; with ``align_corners`` the corners keep their values.

    Raises DomainError unless ``size`` is two ints of at least 1.
    """

    size: tuple[int, int]
    align_corners: bool = False

    def __post_init__(self) -> None:
        if len(self.per_axis("size", 1, None)) != 2:
            raise refuse(self, "size", "a tuple of two ints")

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, h, w) to (…, *size)."""
        return ops.upsample_bilinear(x, self.size, self.align_corners)
