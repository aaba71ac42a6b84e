"""The fully connected layer."""

from dataclasses import dataclass
from typing import Any, overload

from ....base.arrays import Array, Arrays
from ... import ops
from ...errors import DomainError, ShapeError
from ...record.kinds import MISFIT, integer
from ...values.shape import Dim
from ...var.var import AnyVar, Var
from ..context import Context
from ..initializers import uniform_fan_in
from ..layer import F, In, Layer, Out, S
from ..parameters import Parameter, weight_and_bias
from ..scope import Params, parameter


@dataclass(frozen=True, init=False)
class Linear(Layer[In, Out]):
    """``x @ weight.T + bias`` on the last axis; weight is (out_features, in_features).

    A size is a number, or a Dim that has one: ``Linear(Pixels, Classes)`` is a ``Layer[Pixels, Classes]``.

    Source: torch.nn.Linear.
    Shapes: x (*Bs, in_features) -> (*Bs, out_features)
    Dtypes: x, the parameters and the result float32 or float64, all alike.
    Raises:
        DomainError: a size is below 1.
        ShapeError: a Dim has no size; when called, the last axis of x is not ``in_features``.
        DTypeError: when called, x has another dtype than the parameters, or holds no floats.

    >>> from dgrr.tape import Dim, nn
    >>> class Pixels(Dim, size=64): ...
    >>> nn.Linear(Pixels, 10) == nn.Linear(64, 10)
    True
    """

    in_features: int
    out_features: int
    bias: bool = True

    def __init__(self, in_features: type[In] | int, out_features: type[Out] | int, *, bias: bool = True) -> None:
        for name, given in (("in_features", in_features), ("out_features", out_features)):
            object.__setattr__(self, name, _size(f"Linear: argument {name!r}", given))
        object.__setattr__(self, "bias", bias)
        self.__post_init__()

    def own_parameters(self) -> dict[str, Parameter]:
        """``weight`` and, unless switched off, ``bias``."""
        start = uniform_fan_in(self.in_features)
        return weight_and_bias((self.out_features, self.in_features), start, self.out_features if self.bias else 0)

    @overload
    def __call__(self, p: Params | Arrays, x: Var[F, *S, In], ctx: Context | None = None) -> Var[F, *S, Out]: ...
    @overload
    def __call__(self, p: Arrays, x: Array, ctx: Context | None = None) -> Array: ...
    @overload
    def __call__(self, p: Params, x: Array, ctx: Context | None = None) -> AnyVar: ...
    # A layer of numbers is no other than one of axes here, whose last axis is known then.
    def __call__(self, p: Any, x: Any, ctx: Context | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """(…, in_features) to (…, out_features)."""
        bias = parameter(p, self, "bias") if self.bias else None
        return ops.linear(x, parameter(p, self, "weight"), bias)


def _size(where: str, given: type[Dim] | int) -> int:
    """A size given as a number or as a Dim."""
    size = integer(getattr(given, "size", None) if isinstance(given, type) else given)
    if size is MISFIT:
        name = getattr(given, "__name__", repr(given))
        raise ShapeError(f"{where}: expected a number or a Dim with a size, got {name}; write class In(Dim, size=...)")
    if size < 1:
        raise DomainError(f"{where}: expected at least 1, got {size}")
    return int(size)
