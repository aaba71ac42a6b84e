"""The ops: functions of Vars, each recorded on its operands' tape. ``OPS`` holds their records."""

from ..table import OPS as OPS
from .contract import linear, matmul
from .einsum import einsum
from .elementwise import add, div, exp, log, mul, neg, power, relu, scale, sigmoid, sqrt, sub, tanh
from .extremes import argmax, argmin, reduce_max, reduce_min
from .gather import take_or_zero
from .index import embedding, index_add, scatter_add, take
from .joining import append, concat, pad, split, stack
from .loss import cross_entropy, mse_loss
from .moments import logsumexp, var
from .products import cumsum, prod
from .reduce import broadcast_to, reduce_mean, reduce_sum
from .select import cast, equal, greater, greater_equal, less, less_equal, not_equal, where
from .shape import flatten, permute, reshape, swapaxes, transpose2d
from .slicing import gather_row, getitem, narrow
from .softmax import log_softmax, softmax

sum = reduce_sum
"""numpy's and PyTorch's name for `reduce_sum`."""

__all__ = [
    "add",
    "append",
    "argmax",
    "argmin",
    "broadcast_to",
    "cast",
    "concat",
    "cross_entropy",
    "cumsum",
    "div",
    "einsum",
    "embedding",
    "equal",
    "exp",
    "flatten",
    "gather_row",
    "getitem",
    "greater",
    "greater_equal",
    "index_add",
    "less",
    "less_equal",
    "linear",
    "log",
    "log_softmax",
    "logsumexp",
    "matmul",
    "mse_loss",
    "mul",
    "narrow",
    "neg",
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
    "scale",
    "scatter_add",
    "sigmoid",
    "softmax",
    "split",
    "sqrt",
    "stack",
    "sub",
    "sum",
    "swapaxes",
    "take",
    "take_or_zero",
    "tanh",
    "transpose2d",
    "var",
    "where",
]
