"""What `kernels.py` measures: each kernel of ours and the functions of numpy and PyTorch that do the same.

They are written as expressions, since each engine is imported in its own process alone; the names in them are the
arrays of `Data` and what `kernels.py` adds for the engine. `partial` calls a function of C without a frame of Python.
"""

from typing import NamedTuple

CLASSES, WIDTH = 10, 128
"""Elements of a short row and of a long one."""


class Row(NamedTuple):
    """One kernel; an engine whose expression is empty has nothing that does the same."""

    name: str
    sizes: str
    """The kernel's words."""
    dgrr: str
    """The kernel and its arrays."""
    numpy: str = ""
    torch: str = ""


# fmt: off
ROWS = (
    Row("add", "n", "arithmetic.add, out, a, b", "partial(np.add, a, b, out)", "partial(torch.add, a, b, out=out)"),
    Row("mul", "n", "elementwise.mul, out, a, b",
        "partial(np.multiply, a, b, out)", "partial(torch.mul, a, b, out=out)"),
    Row("div", "n", "elementwise.div, out, a, b", "partial(np.divide, a, b, out)", "partial(torch.div, a, b, out=out)"),
    Row("where_positive", "n", "elementwise.where_positive, out, a, b",
        "lambda: np.where(b > 0, a, 0)", "lambda: torch.ops.aten.threshold_backward(a, b, 0)"),
    Row("relu", "n", "elementwise.relu, out, a",
        "lambda: np.maximum(a, 0, out=out)", "lambda: torch.clamp_min(a, 0, out=out)"),
    Row("neg", "n", "elementwise.neg, out, a", "partial(np.negative, a, out)", "partial(torch.neg, a, out=out)"),
    Row("exp", "n", "elementwise.exp, out, a", "partial(np.exp, a, out)", "partial(torch.exp, a, out=out)"),
    Row("tanh", "n", "elementwise.tanh, out, a", "partial(np.tanh, a, out)", "partial(torch.tanh, a, out=out)"),
    Row("sigmoid", "n", "elementwise.sigmoid, out, a", "", "partial(torch.sigmoid, a, out=out)"),
    Row("sqrt", "n", "elementwise.sqrt, out, positive",
        "partial(np.sqrt, positive, out)", "partial(torch.sqrt, positive, out=out)"),
    Row("log", "n", "elementwise.log, out, positive",
        "partial(np.log, positive, out)", "partial(torch.log, positive, out=out)"),
    Row("scale", "n, 0.3", "elementwise.scale, out, a",
        "lambda: np.multiply(a, 0.3, out)", "lambda: torch.mul(a, 0.3, out=out)"),
    Row("power", "n, 3", "elementwise.power, out, a",
        "lambda: np.power(a, 3, out)", "lambda: torch.pow(a, 3, out=out)"),
    Row("less", "n", "elementwise.less, flags, a, b",
        "lambda: np.less(a, b, flags)", "lambda: torch.lt(a, b, out=flags)"),
    Row("where", "n", "elementwise.where, out, mask, a, b",
        "lambda: np.where(mask, a, b)", "lambda: torch.where(mask, a, b, out=out)"),
    Row("to_other_float", "n", "to_other, converted, a", "lambda: a.astype(other)", "lambda: a.to(other)"),
    Row("sum_all", "1, n", "reduce.sum_rows, one, a", "lambda: a.sum()", "lambda: a.sum()"),
    Row(f"sum_rows, {CLASSES}", "*rows.shape", "reduce.sum_rows, out, a", "lambda: rows.sum(1)", "lambda: rows.sum(1)"),
    Row(f"sum_rows, {WIDTH}", "*wide.shape", "reduce.sum_rows, out, a", "lambda: wide.sum(1)", "lambda: wide.sum(1)"),
    Row(f"sum_columns, {CLASSES}", "1, *rows.shape", "reduce.sum_columns, out, a",
        "lambda: rows.sum(0)", "lambda: rows.sum(0)"),
    Row(f"sum_columns, {WIDTH}", "1, *wide.shape", "reduce.sum_columns, out, a",
        "lambda: wide.sum(0)", "lambda: wide.sum(0)"),
    Row("mse", "n", "reduce.mean_squared_difference, one, a, b",
        "lambda: np.square(a - b).mean()", "lambda: f.mse_loss(a, b)"),
    Row(f"softmax, {CLASSES}", "*rows.shape", "softmax.softmax, out, a",
        "lambda: softmax(rows)", "lambda: torch.softmax(rows, -1)"),
    Row(f"softmax, {WIDTH}", "*wide.shape", "softmax.softmax, out, a",
        "lambda: softmax(wide)", "lambda: torch.softmax(wide, -1)"),
    Row(f"log_softmax, {CLASSES}", "*rows.shape", "softmax.log_softmax, out, a",
        "lambda: log_softmax(rows)", "lambda: torch.log_softmax(rows, -1)"),
    Row("cross_entropy", "*rows.shape", "softmax.cross_entropy_rows, losses, a, labels",
        "lambda: log_softmax(rows)[at]", "lambda: f.cross_entropy(rows, labels)"),
    Row("cross_entropy_grad", "*rows.shape", "softmax.cross_entropy_grad, out, a, labels, scalar",
        "lambda: gradient(rows)"),
    Row("cross_entropy and grad", "*rows.shape", "softmax.cross_entropy_rows_with_grad, losses, out, a, labels, scalar",
        "", "loss_and_gradient"),
    Row("adam", "n", "adam, p, m, v, g, corrections, hyper", "adam", "adam"),
    Row("sgd", "n", "sgd, p, g, hyper", "sgd", "lambda: p.add_(d, alpha=-1e-3)"),
    Row("norm", "n", "optim.tensor_norm, norms, a",
        "lambda: np.sqrt(np.square(a).sum())", "lambda: torch.linalg.vector_norm(a)"),
    Row("finite", "n", "finite.finite, a", "lambda: np.isfinite(a).all()", "lambda: torch.isfinite(a).all()"),
    Row("copy", "*layout(a)", "copy.copy, out, a", "lambda: np.copyto(out, a)", "lambda: out.copy_(a)"),
    Row("copy transposed", "*layout(square.T)", "copy.copy, out, square.T",
        "lambda: np.copyto(out.reshape(square.T.shape), square.T)", "lambda: out.view(square.T.shape).copy_(square.T)"),
)
# fmt: on
