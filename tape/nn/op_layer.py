"""Layers that are an op: their fields are its attributes, by the same names."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ..var.var import AnyVar, Var
from .context import Context
from .layer import F, Features, In, Layer, Out, S, SameShape
from .scope import Params


class OpLayer(Layer[In, Out]):
    """``op(x, …)``, with the fields for attributes.

    Dtypes: x and the result float32, float64, int64 or bool, alike.
    """

    op: ClassVar[Callable[..., Any]]

    def __init_subclass__(cls, op: Callable[..., Any] | None = None, **options: Any) -> None:
        """Keep the op."""
        super().__init_subclass__(**options)
        if op is not None:
            cls.op = staticmethod(op)

    def _attributes(self) -> Mapping[str, Any]:
        """The attributes of the op by name: the fields, which are all that a frozen dataclass holds."""
        return vars(self)

    def __call__(self, p: Params, x: AnyVar, ctx: Context | None = None) -> AnyVar:
        """The op's result."""
        y: AnyVar = self.op(x, **self._attributes())
        return y


class FloatOpLayer(OpLayer[In, Out]):
    """An op of floats.

    Dtypes: x and the result float32 or float64, alike.
    Raises:
        DTypeError: when called, x holds no floats.
    """


class Activation(SameShape[Features], FloatOpLayer[Features, Features]):
    """An op of each place as a layer."""

    def __call__(self, p: Params, x: Var[F, *S], ctx: Context | None = None) -> Var[F, *S]:
        """The same shape."""
        y: Var[F, *S] = self.op(x, **self._attributes())
        return y
