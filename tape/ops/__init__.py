"""The ops: functions of Vars, each recorded on its operands' tape. ``OPS`` holds their records."""

from ..table import OPS as OPS
from .contract import linear, matmul
from .elementwise import add, div, exp, log, mul, neg, power, relu, scale, sigmoid, sqrt, sub, tanh
from .index import index_add, scatter_add, take
from .loss import cross_entropy, mse_loss
from .reduce import broadcast_to, reduce_mean, reduce_sum
from .select import cast, equal, greater, greater_equal, less, less_equal, not_equal, where
from .shape import flatten, permute, reshape, transpose2d
from .slicing import gather_row, getitem
from .softmax import log_softmax, softmax

sum = reduce_sum
"""numpy's and PyTorch's name for `reduce_sum`."""

__all__ = [
    "add",
    "broadcast_to",
    "cast",
    "cross_entropy",
    "div",
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
    "matmul",
    "mse_loss",
    "mul",
    "neg",
    "not_equal",
    "permute",
    "power",
    "reduce_mean",
    "reduce_sum",
    "relu",
    "reshape",
    "scale",
    "scatter_add",
    "sigmoid",
    "softmax",
    "sqrt",
    "sub",
    "sum",
    "take",
    "tanh",
    "transpose2d",
    "where",
]
