"""The ops: functions of Vars, each recorded on its operands' tape. ``OPS`` holds their records.

Every op raises TapeError for Vars of different tapes, and where no argument is a Var or a tensor; the docstring of an
op says what else it raises. A shape such as ``(*Bs, M, K)`` names its axes: one name has one size within a call,
``*Bs`` stands for any number of axes, ``...`` for any shape.
"""

from ..record.op import OPS as OPS
from .attention.attention import (
    attention_weights as attention_weights,
)
from .attention.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from .attention.multi_head import multi_head_attention as multi_head_attention
from .conv.conv import conv as conv
from .conv.conv import conv_transpose as conv_transpose
from .elementwise.activation import (
    elu as elu,
)
from .elementwise.activation import (
    gelu as gelu,
)
from .elementwise.activation import (
    leaky_relu as leaky_relu,
)
from .elementwise.activation import (
    silu as silu,
)
from .elementwise.activation import (
    softplus as softplus,
)
from .elementwise.arithmetic import (
    add as add,
)
from .elementwise.arithmetic import (
    div as div,
)
from .elementwise.arithmetic import (
    mul as mul,
)
from .elementwise.arithmetic import (
    neg as neg,
)
from .elementwise.arithmetic import (
    power as power,
)
from .elementwise.arithmetic import (
    relu as relu,
)
from .elementwise.arithmetic import (
    scale as scale,
)
from .elementwise.arithmetic import (
    sqrt as sqrt,
)
from .elementwise.arithmetic import (
    sub as sub,
)
from .elementwise.clamp import absolute as absolute
from .elementwise.clamp import clamp as clamp
from .elementwise.clamp import maximum as maximum
from .elementwise.clamp import minimum as minimum
from .elementwise.exponential import exp as exp
from .elementwise.exponential import log as log
from .elementwise.exponential import sigmoid as sigmoid
from .elementwise.exponential import tanh as tanh
from .elementwise.functions import (
    cos as cos,
)
from .elementwise.functions import (
    erf as erf,
)
from .elementwise.functions import (
    expm1 as expm1,
)
from .elementwise.functions import (
    inv as inv,
)
from .elementwise.functions import (
    log1p as log1p,
)
from .elementwise.functions import (
    rsqrt as rsqrt,
)
from .elementwise.functions import (
    safe_log as safe_log,
)
from .elementwise.functions import (
    sin as sin,
)
from .elementwise.functions import (
    square as square,
)
from .elementwise.select import (
    cast as cast,
)
from .elementwise.select import (
    equal as equal,
)
from .elementwise.select import (
    greater as greater,
)
from .elementwise.select import (
    greater_equal as greater_equal,
)
from .elementwise.select import (
    less as less,
)
from .elementwise.select import (
    less_equal as less_equal,
)
from .elementwise.select import (
    not_equal as not_equal,
)
from .elementwise.select import (
    where as where,
)
from .linear.einsum import einsum as einsum
from .linear.matmul import linear as linear
from .linear.matmul import matmul as matmul
from .losses.cross_entropy import cross_entropy as cross_entropy
from .losses.cross_entropy import soft_cross_entropy as soft_cross_entropy
from .losses.nll import nll_loss as nll_loss
from .losses.regression import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from .losses.regression import (
    huber_loss as huber_loss,
)
from .losses.regression import (
    mse_grad as mse_grad,
)
from .losses.regression import (
    mse_loss as mse_loss,
)
from .norm.groups import group_norm as group_norm
from .norm.groups import instance_norm as instance_norm
from .norm.inference import batch_norm_inference as batch_norm_inference
from .norm.norm import batch_norm as batch_norm
from .norm.norm import layer_norm as layer_norm
from .norm.norm import rms_norm as rms_norm
from .planar.planar import (
    avg_pool2d as avg_pool2d,
)
from .planar.planar import (
    conv2d as conv2d,
)
from .planar.planar import (
    conv_transpose2d as conv_transpose2d,
)
from .planar.planar import (
    max_pool2d as max_pool2d,
)
from .planar.planar import (
    smooth_max_pool2d as smooth_max_pool2d,
)
from .pooling.avg_pool import adaptive_avg_pool as adaptive_avg_pool
from .pooling.avg_pool import avg_pool as avg_pool
from .pooling.max_pool import adaptive_max_pool as adaptive_max_pool
from .pooling.max_pool import max_pool as max_pool
from .pooling.smooth_max_pool import smooth_max_pool as smooth_max_pool
from .pooling.upsample import upsample_bilinear as upsample_bilinear
from .pooling.upsample import upsample_nearest as upsample_nearest
from .random.random import dropout as dropout
from .random.random import uniform as uniform
from .reduce.extremes import argmax as argmax
from .reduce.extremes import argmin as argmin
from .reduce.extremes import reduce_max as reduce_max
from .reduce.extremes import reduce_min as reduce_min
from .reduce.moments import logsumexp as logsumexp
from .reduce.moments import var as var
from .reduce.products import cumsum as cumsum
from .reduce.products import prod as prod
from .reduce.reduce import broadcast_to as broadcast_to
from .reduce.reduce import reduce_mean as reduce_mean
from .reduce.reduce import reduce_sum as reduce_sum
from .reduce.softmax import log_softmax as log_softmax
from .reduce.softmax import softmax as softmax
from .shape.gather import take_or_zero as take_or_zero
from .shape.indexing import embedding as embedding
from .shape.indexing import index_add as index_add
from .shape.indexing import scatter_add as scatter_add
from .shape.indexing import take as take
from .shape.joining import append as append
from .shape.joining import concat as concat
from .shape.joining import pad as pad
from .shape.joining import split as split
from .shape.joining import stack as stack
from .shape.reshape import (
    flatten as flatten,
)
from .shape.reshape import (
    permute as permute,
)
from .shape.reshape import (
    reshape as reshape,
)
from .shape.reshape import (
    swapaxes as swapaxes,
)
from .shape.reshape import (
    transpose2d as transpose2d,
)
from .shape.slicing import gather_row as gather_row
from .shape.slicing import getitem as getitem
from .shape.slicing import narrow as narrow

sum = reduce_sum
"""numpy's and PyTorch's name for `reduce_sum`."""

abs = absolute
"""numpy's and PyTorch's name for `absolute`."""

# Collected, so that an op is named once here: in its import, whose alias says that it is handed on.
__all__ = sorted(name for name, value in vars().items() if callable(value) and not name.startswith("_"))  # pyright: ignore[reportUnsupportedDunderAll]
