"""The documented set of ops: every name in it is covered by one record, and no record covers a name outside it."""

from collections import Counter

import pytest

from dgrr.tape.ops import OPS
from dgrr.tape.var.op_table import COMPOSED

DOCUMENTED = {
    "shape": (
        "flatten", "reshape", "transpose2d", "transpose3d_first_to_last", "transpose3d_last_to_first",
        "transpose3d_last_two", "swap_adjacent_at_depth", "broadcast_to", "reduce_sum", "reduce_mean",
    ),
    "indexing": (
        "gather_scalar", "gather_row", "gather_scalar_nat", "gather_vec_nat", "gather_rows_nat", "scatter_add_vec",
        "scatter_add_row",
    ),
    "elementwise": (
        "add", "sub", "mul", "scale", "abs", "sqrt", "clamp", "max", "min", "relu", "sigmoid", "softplus", "tanh",
        "exp", "log", "inv", "safe_log",
    ),
    "linear": ("linear", "matmul", "bmm", "concat_vectors", "concat_dim0", "slice_range0"),
    "conv": ("conv", "conv2d", "conv_transpose", "conv_transpose2d"),
    "pooling": (
        "max_pool", "max_pool2d", "max_pool2d_pad", "avg_pool", "avg_pool2d", "avg_pool2d_pad", "smooth_max_pool",
        "smooth_max_pool2d",
    ),
    "norms": ("layer_norm", "batch_norm_channel_first"),
    "attention": ("multi_head_attention",),
    "softmax and loss": ("softmax", "log_softmax", "sum", "mse_loss"),
}  # fmt: skip

HELPERS = ("mse_grad",)
"""Functions that are documented beside the ops."""

NAMES = [name for group in DOCUMENTED.values() for name in group]
COVERED = Counter(name for table in (OPS, COMPOSED) for record in table.values() for name in record.covers)


def test_there_are_59_names() -> None:
    assert len(NAMES) == len(set(NAMES)) == 59


@pytest.mark.parametrize("name", [*NAMES, *HELPERS])
def test_a_documented_name_is_covered_by_one_record(name: str) -> None:
    assert COVERED[name] == 1


def test_no_other_name_is_covered() -> None:
    assert set(COVERED) <= {*NAMES, *HELPERS}
