"""Layers applied one after the other."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..context import Context
from ..var import AnyVar
from .layer import Layer, Params


@dataclass(frozen=True, init=False, repr=False)
class Sequential(Layer):
    """Layers applied one after the other; their parameters are named ``"0.weight"``, ``"0.bias"``, ``"2.weight"``, …

    >>> from dgrr.tape import nn
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    >>> {name: value.shape for name, value in model.init(seed=0).items()}
    {'0.weight': (2, 3), '0.bias': (2,)}
    """

    layers: tuple[Layer, ...]

    def __init__(self, *layers: Layer) -> None:
        object.__setattr__(self, "layers", layers)

    def children(self) -> Mapping[str, Layer]:
        """The layers by their positions."""
        return {str(i): layer for i, layer in enumerate(self.layers)}

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The last layer's output."""
        for name in self.children():
            x = self.part(name, p, x, ctx)
        return x

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self.layers))})"
