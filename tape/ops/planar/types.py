"""The types of convolutions and pools of planes."""

from typing import Any, Literal, TypeVar, overload

from ...record.types import Bs, C, Constant, F, K, Operand
from ...values.shape import Shape
from ...var.var import Gradual, Var

H = TypeVar("H")
W = TypeVar("W")
Kh = TypeVar("Kh")
Kw = TypeVar("Kw")
Ho = TypeVar("Ho")
Wo = TypeVar("Wo")
Pair = int | tuple[int, int]
Borders = tuple[tuple[int, int], ...]
"""Cells (before, behind) each axis."""

# fmt: off


@overload
def convolution(
    x: Var[F, *Bs, C, H, W], weight: Var[F, K, C, Kh, Kw], bias: Operand[F, K] | None = None, stride: Pair = 1,
    padding: Pair | Borders | str = 0, dilation: Pair = 1, groups: Literal[1] = 1, *, out: type[Shape[Ho, Wo]],
) -> Var[F, *Bs, K, Ho, Wo]: ...
@overload
def convolution(
    x: Var[F, *Bs, C, H, W], weight: Var[F, K, C, Kh, Kw], bias: Operand[F, K] | None = None, stride: Pair = 1,
    *, padding: Literal["same"], dilation: Pair = 1, groups: Literal[1] = 1,
) -> Var[F, *Bs, K, H, W]: ...
@overload
def convolution(
    x: Var[F, *Bs, C, H, W], weight: Var[F, K, C, Kh, Kw], bias: Operand[F, K] | None = None, stride: Pair = 1,
    padding: Pair | Borders | str = 0, dilation: Pair = 1, groups: Literal[1] = 1,
) -> Var[F, *Bs, K, Any, Any]: ...
@overload
def convolution(
    x: Var[F, *Bs, C, H, W], weight: Var[F, K, Any, Kh, Kw], bias: Operand[F, K] | None = None, stride: Pair = 1,
    padding: Pair | Borders | str = 0, dilation: Pair = 1, *, groups: int,
) -> Var[F, *Bs, K, Any, Any]: ...
@overload
def convolution(
    x: Constant, weight: Gradual[F], bias: Gradual[F] | Constant | None = None, stride: Pair = 1,
    padding: Pair | Borders | str = 0, dilation: Pair = 1, groups: int = 1,
) -> Gradual[F]: ...
@overload
def convolution(
    x: Gradual[F], weight: Constant, bias: Gradual[F] | Constant | None = None, stride: Pair = 1,
    padding: Pair | Borders | str = 0, dilation: Pair = 1, groups: int = 1,
) -> Gradual[F]: ...
def convolution(*args: Any, **kwargs: Any) -> Any:
    """Channels meet, and others come out; in groups only those that come out are known."""

@overload
def transposed(
    x: Var[F, *Bs, C, H, W], weight: Var[F, C, K, Kh, Kw], bias: Operand[F, K] | None = None, stride: Pair = 1,
    padding: Pair | Borders = 0, output_padding: Pair = 0, groups: Literal[1] = 1, dilation: Pair = 1,
    *, out: type[Shape[Ho, Wo]],
) -> Var[F, *Bs, K, Ho, Wo]: ...
@overload
def transposed(
    x: Var[F, *Bs, C, H, W], weight: Var[F, C, K, Kh, Kw], bias: Operand[F, K] | None = None, stride: Pair = 1,
    padding: Pair | Borders = 0, output_padding: Pair = 0, groups: Literal[1] = 1, dilation: Pair = 1,
) -> Var[F, *Bs, K, Any, Any]: ...
@overload
def transposed(
    x: Var[F, *Bs, C, H, W], weight: Var[F, C, Any, Kh, Kw], bias: Operand[F, Any] | None = None, stride: Pair = 1,
    padding: Pair | Borders = 0, output_padding: Pair = 0, *, groups: int, dilation: Pair = 1,
) -> Var[F, *Bs, Any, Any, Any]: ...
def transposed(*args: Any, **kwargs: Any) -> Any:
    """As `convolution`, with the weight's channels the other way round."""

@overload
def largest_pool(
    x: Var[F, *Bs, H, W], kernel_size: Pair, stride: Pair | None = None, padding: Pair | Borders = 0,
    dilation: Pair = 1, ceil_mode: bool = False, *, out: type[Shape[Ho, Wo]],
) -> Var[F, *Bs, Ho, Wo]: ...
@overload
def largest_pool(
    x: Var[F, *Bs, H, W], kernel_size: Pair, stride: Pair | None = None, padding: Pair | Borders = 0,
    dilation: Pair = 1, ceil_mode: bool = False,
) -> Var[F, *Bs, Any, Any]: ...
def largest_pool(*args: Any, **kwargs: Any) -> Any:
    """A pool with dilation."""

@overload
def mean_pool(
    x: Var[F, *Bs, H, W], kernel_size: Pair, stride: Pair | None = None, padding: Pair | Borders = 0,
    count_include_pad: bool = True, ceil_mode: bool = False, dilation: Pair = 1, *, out: type[Shape[Ho, Wo]],
) -> Var[F, *Bs, Ho, Wo]: ...
@overload
def mean_pool(
    x: Var[F, *Bs, H, W], kernel_size: Pair, stride: Pair | None = None, padding: Pair | Borders = 0,
    count_include_pad: bool = True, ceil_mode: bool = False, dilation: Pair = 1,
) -> Var[F, *Bs, Any, Any]: ...
def mean_pool(*args: Any, **kwargs: Any) -> Any:
    """A pool that counts its cells."""

@overload
def smooth_pool(
    x: Var[F, *Bs, H, W], kernel_size: Pair, stride: Pair | None = None, padding: Pair | Borders = 0, beta: float = 1.0,
    *, out: type[Shape[Ho, Wo]],
) -> Var[F, *Bs, Ho, Wo]: ...
@overload
def smooth_pool(
    x: Var[F, *Bs, H, W], kernel_size: Pair, stride: Pair | None = None, padding: Pair | Borders = 0, beta: float = 1.0
) -> Var[F, *Bs, Any, Any]: ...
def smooth_pool(*args: Any, **kwargs: Any) -> Any:
    """A pool with a sharpness."""
