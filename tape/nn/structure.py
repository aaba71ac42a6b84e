"""Layers about shapes and paths: no arithmetic of their own but a sum."""

from collections.abc import Mapping
from dataclasses import dataclass

from .. import ops
from ..context import Context
from ..shape import Sizes, normal_axis
from ..var import AnyVar
from .layer import Layer, Params


@dataclass(frozen=True)
class Flatten(Layer):
    """The axes from ``start_axis`` on joined into one; unless given, all but the batch."""

    start_axis: int = 1

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(batch, a, b, …) to (batch, a * b * …)."""
        return ops.flatten(x, self.start_axis)


@dataclass(frozen=True)
class Unflatten(Layer):
    """One axis divided into several: ``Unflatten(1, (1, 8, 8))`` makes images of one channel of 64 features.

    One of the sizes may be -1, for what is left.
    """

    axis: int
    sizes: Sizes

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """(…, n, …) to (…, *sizes, …). Raises ShapeError unless the sizes multiply to n."""
        axis = normal_axis("Unflatten", self.axis, len(x.shape))
        return ops.reshape(x, (*x.shape[:axis], *self.sizes, *x.shape[axis + 1 :]))


@dataclass(frozen=True)
class Residual(Layer):
    """``x + layer(x)`` (He et al., 2016); the parameters of the layer stand under ``"layer."``."""

    layer: Layer

    def children(self) -> Mapping[str, Layer]:
        """The layer."""
        return {"layer": self.layer}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The same shape. Raises ShapeError for a layer that changes it."""
        return ops.add(x, self.part("layer", p, x, ctx))
