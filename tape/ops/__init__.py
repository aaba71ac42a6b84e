"""The ops: functions of Vars, each recorded on its operands' tape. ``OPS`` holds their records.

Every op raises TapeError for Vars of different tapes, and where no argument is a Var or a tensor; the docstring of an
op says what else it raises. A shape such as ``(*Bs, M, K)`` names its axes: one name has one size within a call,
``*Bs`` stands for any number of axes, ``...`` for any shape.
"""

from ..var.op_table import OPS as OPS
from .attention.attention import attention_weights, scaled_dot_product_attention
from .attention.multi_head import multi_head_attention
from .conv.conv import conv, conv_transpose
from .elementwise.activation import elu, gelu, leaky_relu, silu, softplus
from .elementwise.arithmetic import add, div, exp, log, mul, neg, power, relu, scale, sigmoid, sqrt, sub, tanh
from .elementwise.clamp import absolute, clamp, maximum, minimum
from .elementwise.functions import cos, erf, expm1, inv, log1p, rsqrt, safe_log, sin, square
from .elementwise.select import cast, equal, greater, greater_equal, less, less_equal, not_equal, where
from .linear.einsum import einsum
from .linear.matmul import linear, matmul
from .losses.cross_entropy import cross_entropy, soft_cross_entropy
from .losses.nll import nll_loss
from .losses.regression import binary_cross_entropy_with_logits, huber_loss, mse_grad, mse_loss
from .norm.groups import group_norm, instance_norm
from .norm.inference import batch_norm_inference
from .norm.norm import batch_norm, layer_norm, rms_norm
from .planar.planar import avg_pool2d, conv2d, conv_transpose2d, max_pool2d, smooth_max_pool2d
from .pooling.avg_pool import adaptive_avg_pool, avg_pool
from .pooling.max_pool import adaptive_max_pool, max_pool
from .pooling.smooth_max_pool import smooth_max_pool
from .pooling.upsample import upsample_bilinear, upsample_nearest
from .random.random import dropout, uniform
from .reduce.extremes import argmax, argmin, reduce_max, reduce_min
from .reduce.moments import logsumexp, var
from .reduce.products import cumsum, prod
from .reduce.reduce import broadcast_to, reduce_mean, reduce_sum
from .reduce.softmax import log_softmax, softmax
from .shape.gather import take_or_zero
from .shape.indexing import embedding, index_add, scatter_add, take
from .shape.joining import append, concat, pad, split, stack
from .shape.reshape import flatten, permute, reshape, swapaxes, transpose2d
from .shape.slicing import gather_row, getitem, narrow

sum = reduce_sum
"""numpy's and PyTorch's name for `reduce_sum`."""

abs = absolute
"""numpy's and PyTorch's name for `absolute`."""

__all__ = [
    "abs",
    "absolute",
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "add",
    "append",
    "argmax",
    "argmin",
    "attention_weights",
    "avg_pool",
    "avg_pool2d",
    "batch_norm",
    "batch_norm_inference",
    "binary_cross_entropy_with_logits",
    "broadcast_to",
    "cast",
    "clamp",
    "concat",
    "conv",
    "conv2d",
    "conv_transpose",
    "conv_transpose2d",
    "cos",
    "cross_entropy",
    "cumsum",
    "div",
    "dropout",
    "einsum",
    "elu",
    "embedding",
    "equal",
    "erf",
    "exp",
    "expm1",
    "flatten",
    "gather_row",
    "gelu",
    "getitem",
    "greater",
    "greater_equal",
    "group_norm",
    "huber_loss",
    "index_add",
    "instance_norm",
    "inv",
    "layer_norm",
    "leaky_relu",
    "less",
    "less_equal",
    "linear",
    "log",
    "log1p",
    "log_softmax",
    "logsumexp",
    "matmul",
    "max_pool",
    "max_pool2d",
    "maximum",
    "minimum",
    "mse_grad",
    "mse_loss",
    "mul",
    "multi_head_attention",
    "narrow",
    "neg",
    "nll_loss",
    "not_equal",
    "pad",
    "permute",
    "power",
    "prod",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_sum",
    "relu",
    "reshape",
    "rms_norm",
    "rsqrt",
    "safe_log",
    "scale",
    "scaled_dot_product_attention",
    "scatter_add",
    "sigmoid",
    "silu",
    "sin",
    "smooth_max_pool",
    "smooth_max_pool2d",
    "soft_cross_entropy",
    "softmax",
    "softplus",
    "split",
    "sqrt",
    "square",
    "stack",
    "sub",
    "sum",
    "swapaxes",
    "take",
    "take_or_zero",
    "tanh",
    "transpose2d",
    "uniform",
    "upsample_bilinear",
    "upsample_nearest",
    "var",
    "where",
]
