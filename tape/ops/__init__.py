"""The ops: functions of Vars, each recorded on its operands' tape. ``OPS`` holds their records.

Every op raises TapeError for Vars of different tapes, and where no argument is a Var or a tensor, DTypeError for an
attribute of another type than its annotation says, and GradientError for a Var in place of a number, whose gradient
would be lost; the docstring of an op says what else it raises. A shape such as ``(*Bs, M, K)`` names its axes: one name
has one size within a call, ``*Bs`` stands for any number of axes, ``...`` for any shape.
"""

from typing import TYPE_CHECKING

from ...base.pytorch_names import refuse_names as _refuse_names
from ..record.op import OPS as OPS
from .attention.attention import attention_weights as attention_weights, masked_softmax as masked_softmax
from .attention.multi_head import multi_head_attention as multi_head_attention
from .attention.rotary import rotary as rotary
from .attention.scaled_dot_product import scaled_dot_product_attention as scaled_dot_product_attention
from .conv.conv import conv as conv, conv_transpose as conv_transpose
from .elementwise.activation import (
    celu as celu,
    elu as elu,
    gelu as gelu,
    hardswish as hardswish,
    leaky_relu as leaky_relu,
    logsigmoid as logsigmoid,
    mish as mish,
    relu6 as relu6,
    selu as selu,
    silu as silu,
    softplus as softplus,
    softsign as softsign,
)
from .elementwise.arithmetic import (
    add as add,
    div as div,
    mul as mul,
    neg as neg,
    power as power,
    relu as relu,
    scale as scale,
    sqrt as sqrt,
    sub as sub,
)
from .elementwise.clamp import absolute as absolute, clamp as clamp, maximum as maximum, minimum as minimum
from .elementwise.exponential import exp as exp, log as log, sigmoid as sigmoid, tanh as tanh
from .elementwise.functions import (
    cos as cos,
    erf as erf,
    expm1 as expm1,
    inv as inv,
    log1p as log1p,
    rsqrt as rsqrt,
    safe_log as safe_log,
    sin as sin,
    square as square,
)
from .elementwise.integer import (
    floor_divide as floor_divide,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    remainder as remainder,
)
from .elementwise.inverse import (
    acos as acos,
    acosh as acosh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    cosh as cosh,
    sinh as sinh,
    tan as tan,
)
from .elementwise.pow import pow as pow
from .elementwise.rounding import (
    ceil as ceil,
    floor as floor,
    round as round,
    sign as sign,
    trunc as trunc,
)
from .elementwise.select import (
    cast as cast,
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    less as less,
    less_equal as less_equal,
    not_equal as not_equal,
    where as where,
)
from .indices.along import scatter_add_along_axis as scatter_add_along_axis, take_along_axis as take_along_axis
from .indices.take import embedding as embedding, index_add as index_add, scatter_add as scatter_add, take as take
from .indices.take_or_zero import take_or_zero as take_or_zero
from .linear.einsum import einsum as einsum
from .linear.matmul import linear as linear, matmul as matmul
from .linear.orthogonal import qr as qr
from .linear.singular import svd as svd
from .linear.systems import cholesky_solve as cholesky_solve, inverse as inverse, solve as solve
from .linear.triangles import (
    diagonal as diagonal,
    outer as outer,
    trace as trace,
    tril as tril,
    triu as triu,
)
from .linear.triangular import cholesky as cholesky, solve_triangular as solve_triangular
from .loops.cond import cond as cond
from .loops.scan import scan as scan
from .loops.while_loop import while_loop as while_loop
from .losses.binary import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    sigmoid_focal_loss as sigmoid_focal_loss,
)
from .losses.cross_entropy import cross_entropy as cross_entropy, soft_cross_entropy as soft_cross_entropy
from .losses.ctc import ctc_loss as ctc_loss
from .losses.distances import (
    cosine_embedding_loss as cosine_embedding_loss,
    cosine_similarity as cosine_similarity,
    pairwise_distance as pairwise_distance,
    triplet_margin_loss as triplet_margin_loss,
)
from .losses.likelihoods import (
    gaussian_nll_loss as gaussian_nll_loss,
    kl_div as kl_div,
    poisson_nll_loss as poisson_nll_loss,
)
from .losses.margins import (
    hinge_embedding_loss as hinge_embedding_loss,
    margin_ranking_loss as margin_ranking_loss,
    multi_margin_loss as multi_margin_loss,
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    soft_margin_loss as soft_margin_loss,
)
from .losses.nll import nll_loss as nll_loss
from .losses.regression import (
    huber_loss as huber_loss,
    l1_loss as l1_loss,
    mse_grad as mse_grad,
    mse_loss as mse_loss,
    smooth_l1_loss as smooth_l1_loss,
)
from .norm.groups import group_norm as group_norm, instance_norm as instance_norm
from .norm.inference import batch_norm_inference as batch_norm_inference
from .norm.norm import batch_norm as batch_norm, layer_norm as layer_norm, rms_norm as rms_norm
from .planar.planar import (
    avg_pool2d as avg_pool2d,
    conv2d as conv2d,
    conv_transpose2d as conv_transpose2d,
    max_pool2d as max_pool2d,
    smooth_max_pool2d as smooth_max_pool2d,
)
from .pooling.avg_pool import adaptive_avg_pool as adaptive_avg_pool, avg_pool as avg_pool
from .pooling.interpolate import interpolate as interpolate
from .pooling.lp_pool import lp_pool as lp_pool
from .pooling.max_pool import (
    adaptive_max_pool as adaptive_max_pool,
    max_pool as max_pool,
    max_pool_indices as max_pool_indices,
)
from .pooling.smooth_max_pool import smooth_max_pool as smooth_max_pool
from .pooling.unpool import max_unpool as max_unpool
from .pooling.upsample import upsample_bilinear as upsample_bilinear, upsample_nearest as upsample_nearest
from .random.draws import (
    bernoulli as bernoulli,
    integers as integers,
    normal as normal,
    permutation as permutation,
)
from .random.random import dropout as dropout, uniform as uniform
from .reduce.extremes import argmax as argmax, argmin as argmin, reduce_max as reduce_max, reduce_min as reduce_min
from .reduce.moments import logsumexp as logsumexp, var as var
from .reduce.norms import norm as norm, std as std
from .reduce.products import cumsum as cumsum, prod as prod
from .reduce.reduce import broadcast_to as broadcast_to, reduce_mean as reduce_mean, reduce_sum as reduce_sum
from .reduce.running import (
    cumargmax as cumargmax,
    cumargmin as cumargmin,
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
)
from .reduce.softmax import log_softmax as log_softmax, softmax as softmax
from .sampling.affine_grid import affine_grid as affine_grid
from .sampling.grid_sample import grid_sample as grid_sample, grid_sample3d as grid_sample3d
from .shape.index import index as index
from .shape.joining import append as append, concat as concat, split as split, stack as stack
from .shape.padding import pad as pad
from .shape.pixels import pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle
from .shape.rearrange import flip as flip, repeat as repeat, roll as roll, tile as tile
from .shape.reshape import (
    flatten as flatten,
    permute as permute,
    reshape as reshape,
    swapaxes as swapaxes,
    transpose2d as transpose2d,
)
from .shape.slicing import gather_row as gather_row, getitem as getitem, narrow as narrow
from .shape.stop_gradient import stop_gradient as stop_gradient
from .shape.windows import fold as fold, unfold as unfold
from .sorting.one_hot import one_hot as one_hot
from .sorting.order import argsort as argsort, sort as sort, topk as topk

sum = reduce_sum
"""numpy's and PyTorch's name for `reduce_sum`."""

abs = absolute
"""numpy's and PyTorch's name for `absolute`."""

BUILT_IN = frozenset(OPS.values())
"""The records of the ops of this package, without those that others make later."""

# Collected, so that an op is named once here: in its import, whose alias says that it is handed on.
__all__ = sorted(name for name, value in vars().items() if callable(value) and not name.startswith("_"))  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:  # checkers refuse by themselves what this refuses
    __getattr__ = _refuse_names(__name__, __all__)
