"""Smooth maximum pools: a logarithm of a sum of exponentials over each window, with derivatives of every order."""

# A derivative may call the op that it belongs to, whose type is not known before its decorator is.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from functools import partial
from typing import Any

import numpy as np

from ...errors import DomainError, ShapeError
from ...numerics.engine.kernel import Kernel
from ...numerics.sizes import Sizes
from ...record.lowering import Slot, elementwise
from ...record.op_decorator import op
from ...record.samples import Make, Sample, bad
from ...record.types import F
from ...values.per_axis import PerAxis
from ...values.spec import Spec
from ...var.var import Gradual
from ..elementwise.arithmetic import add, mul, scale, sub
from ..elementwise.kernels import basic as elementwise_kernels
from .kernels import smooth
from .pool_op import pool_op
from .reference import pools as reference
from .rules import Rules, axes_of, pooled, sliding_rules, through
from .samples import plain, special

COMPARISON, EXPONENTIAL, LOGARITHM = 3, 30, 40
"""Operations for each cell of each window."""


def _rules(kernel_size: Sizes, stride: PerAxis | None, padding: PerAxis) -> Rules:
    return sliding_rules("smooth_max_pool", kernel_size, stride, padding)


def _infer(x: Spec, kernel_size: Sizes, stride: PerAxis | None, padding: PerAxis, beta: float) -> Spec:
    limits = np.finfo(x.dtype)
    if not float(limits.tiny) <= abs(beta) <= float(limits.max):
        raise DomainError(
            f"smooth_max_pool: argument 'beta': expected a finite number other than 0 that {x.dtype} can hold, "
            f"got {beta!r}"
        )
    return pooled("smooth_max_pool", x, _rules(kernel_size, stride, padding))


def _over_windows(kernel: Kernel, inputs: list[Slot], rules: Rules, beta: float, work: int) -> Slot:
    """A kernel from the cells of x, the first input, to the windows."""
    x = inputs[0]
    out = pooled("smooth_max_pool", x.spec, rules).shape
    return through(kernel, inputs, out, axes_of(x.shape, rules), work, float(beta))


def _pivots(x: Slot, rules: Rules, beta: float) -> Slot:
    return _over_windows(smooth.smooth_pivots, [x], rules, beta, COMPARISON)


def _sums(inputs: list[Slot], rules: Rules, beta: float) -> Slot:
    return _over_windows(smooth.smooth_sums, inputs, rules, beta, EXPONENTIAL)


def _lower(x: Slot, rules: Rules, beta: float) -> Slot:
    pivots = _pivots(x, rules, beta)
    sums = _sums([x, pivots], rules, beta)
    return elementwise(smooth.smooth_values, pivots, sums, attrs=(float(beta),), work=LOGARITHM)


def _betas(make: Make) -> list[Sample]:
    extreme = make(2, 4, 5) * make.dtype.type(300)
    attrs = {"kernel_size": (2, 3), "stride": (1, 2)}
    return [Sample((extreme,), {**attrs, "beta": beta}) for beta in (2.5, -0.3)]


BETA = "smooth_max_pool: argument 'beta': expected a finite number other than 0 that float32 can hold, got "


@pool_op(
    lambda x, rules, beta: _lower(x, rules, beta),
    reference.smooth_max_pool,
    vjp=lambda g, x, rules, beta: smooth_max_pool_grad(g, x, rules, beta),
    jvp=lambda dx, x, rules, beta: smooth_max_pool_mean(dx, x, rules, beta),
    infer=_infer,
    samples=lambda make: [*plain(make), *special(make), *_betas(make)],
    errors=(
        *[bad(DomainError, f"{BETA}{b!r}", (2, 4), kernel_size=(2,), beta=b) for b in (0.0, 1e39, -1e-46)],
        *[bad(DomainError, f"{BETA}{b!r}", (2, 4), kernel_size=(2,), beta=b) for b in (float("inf"), float("nan"))],
    ),
    covers=("smooth_max_pool",),
    instead={"beta": "ops.smooth_max_pool(x * beta, kernel_size, stride, padding) / beta"},
)
def smooth_max_pool(
    x: Gradual[F],
    kernel_size: tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] | tuple[tuple[int, int], ...] = 0,
    beta: float = 1.0,
) -> Gradual[F]:
    """``log(sum(exp(beta x))) / beta`` of windows that slide along the last axes: at least the maximum, close to it.

    ``x`` is (*Bs, *spatial); ``kernel_size`` has a size for each spatial axis. Negative beta gives a smooth minimum.
    It does not overflow, since the largest ``beta x`` of the window is taken out first. The gradient goes to the cells
    by the softmax of ``beta x``. Padding adds cells that take no part. Sizes are those of `max_pool`.

    Source: the log-sum-exp of each window: Boyd and Vandenberghe (2004), Convex Optimization, section 3.1.5.
    Shapes: x (*Bs, *spatial) -> (*Bs, *windows); as many spatial axes as ``kernel_size`` has sizes

    >>> from dgrr.tape import Tape, ops
    >>> ops.smooth_max_pool(Tape().leaf([0.0, 0.0, 9.0, 1.0]), (2,)).numpy().round(4)
    array([0.6931, 9.0003])
    """
    ...


def _infer_grad(weights: Spec, x: Spec, rules: Rules, beta: float) -> Spec:
    expected = pooled("smooth_max_pool_grad", x, rules).shape
    if weights.shape != expected:
        raise ShapeError(f"smooth_max_pool_grad: argument 'weights': expected shape {expected}, got {weights.shape}")
    return x


def _lower_grad(weights: Slot, x: Slot, rules: Rules, beta: float) -> Slot:
    pivots, axes = _pivots(x, rules, beta), axes_of(x.shape, rules)
    shares = elementwise(elementwise_kernels.div, weights, _sums([x, pivots], rules, beta))
    slopes = smooth.smooth_slopes
    return through(slopes, [x, shares, pivots], x.shape, axes, EXPONENTIAL, float(beta), back=True)


def _curvature(u: Any, weights: Any, x: Any, slopes: Any, mean: Any, rules: Rules, beta: float) -> Any:
    """How the gradient for ``weights``, which is ``slopes``, changes along ``u``, whose means are ``mean``."""
    return scale(sub(mul(u, slopes), smooth_max_pool_grad(mul(weights, mean), x, rules, beta)), beta)


def _pairs(make: Make) -> list[tuple[Sizes, Sizes, dict[str, Any]]]:
    """Shapes of the input and of the result with the attributes of the private ops."""
    cases: tuple[tuple[Sizes, Sizes, int, int, float], ...] = (
        ((2, 5), (2,), 1, 0, 1.0), ((2, 3, 5, 6), (3, 2), 2, 1, -0.7), ((0, 3), (2,), 1, 0, 1.0),
    )  # fmt: skip
    found: list[tuple[Sizes, Sizes, dict[str, Any]]] = []
    for shape, kernel, stride, padding, beta in cases:
        rules = _rules(kernel, stride, padding)
        found.append((shape, pooled("pool", Spec(shape, make.dtype), rules).shape, {"rules": rules, "beta": beta}))
    return found


@op(
    infer=_infer_grad,
    lower=_lower_grad,
    vjp=(
        lambda g, x, rules, beta: smooth_max_pool_mean(g, x, rules, beta),
        lambda g, weights, x, y, rules, beta: _curvature(
            g, weights, x, y, smooth_max_pool_mean(g, x, rules, beta), rules, beta
        ),
    ),
    jvp=lambda dweights, dx, weights, x, y, rules, beta: add(
        smooth_max_pool_grad(dweights, x, rules, beta),
        _curvature(dx, weights, x, y, smooth_max_pool_mean(dx, x, rules, beta), rules, beta),
    ),
    reference=reference.smooth_max_pool_grad,
    samples=lambda make: [Sample((make(*out), make(*shape)), attrs) for shape, out, attrs in _pairs(make)],
    errors=(
        bad(
            ShapeError,
            "smooth_max_pool_grad: argument 'weights': expected shape (2, 2), got (2, 3)",
            (2, 3),
            (2, 4),
            rules=((2, 2, 0, 1),),
            beta=1.0,
        ),
    ),
    batch_axis={"weights": 0, "x": 0},
    private=True,
)
def smooth_max_pool_grad(weights: Gradual[F], x: Gradual[F], rules: Rules, beta: float) -> Gradual[F]:
    """Each weight shared among the cells of its window by the softmax of ``beta x``: the gradient of smooth_max_pool.

    A cell adds what it gets in ascending order, from +0.
    """
    ...


def _infer_mean(u: Spec, x: Spec, rules: Rules, beta: float) -> Spec:
    if u.shape != x.shape:
        raise ShapeError(f"smooth_max_pool_mean: argument 'u': expected shape {x.shape}, got {u.shape}")
    return pooled("smooth_max_pool_mean", x, rules)


def _lower_mean(u: Slot, x: Slot, rules: Rules, beta: float) -> Slot:
    pivots = _pivots(x, rules, beta)
    weighted = _over_windows(smooth.smooth_weighted_sums, [x, u, pivots], rules, beta, EXPONENTIAL)
    return elementwise(elementwise_kernels.div, weighted, _sums([x, pivots], rules, beta))


def _mean_jvp(du: Any, dx: Any, u: Any, x: Any, y: Any, rules: Rules, beta: float) -> Any:
    mean = partial(smooth_max_pool_mean, x=x, rules=rules, beta=beta)
    return add(mean(du), scale(sub(mean(mul(u, dx)), mul(y, mean(dx))), beta))


@op(
    infer=_infer_mean,
    lower=_lower_mean,
    vjp=(
        lambda g, x, rules, beta: smooth_max_pool_grad(g, x, rules, beta),
        lambda g, u, x, y, rules, beta: _curvature(u, g, x, smooth_max_pool_grad(g, x, rules, beta), y, rules, beta),
    ),
    jvp=_mean_jvp,
    reference=reference.smooth_max_pool_mean,
    samples=lambda make: [Sample((make(*shape), make(*shape)), attrs) for shape, _, attrs in _pairs(make)],
    errors=(
        bad(
            ShapeError,
            "smooth_max_pool_mean: argument 'u': expected shape (2, 4), got (2, 3)",
            (2, 3),
            (2, 4),
            rules=((2, 2, 0, 1),),
            beta=1.0,
        ),
    ),
    batch_axis={"u": 0, "x": 0},
    private=True,
)
def smooth_max_pool_mean(u: Gradual[F], x: Gradual[F], rules: Rules, beta: float) -> Gradual[F]:
    """The mean of ``u`` in each window, weighted by the softmax of ``beta x``: the adjoint of smooth_max_pool_grad."""
    ...
