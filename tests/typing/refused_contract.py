"""Products of matrices."""

from given import Batch, Given, In, Out, ones

from dgrr.tape import Shape, ops


def matmul_of_other_inner_axes(g: Given) -> None:
    _ = g.x @ g.w  # E: operator | reportOperatorIssue
    # T: matmul: argument 'b': expected shape (4, N), got (3, 4)


def matmul_as_a_function(g: Given) -> None:
    ops.matmul(g.x, g.w)  # E: arg-type | reportCallIssue
    # T: matmul: argument 'b': expected shape (4, N), got (3, 4)


def matmul_of_other_batches(g: Given) -> None:
    a = g.t.leaf(ones(2, 5, 4), Shape[Out, Batch, In])
    _ = a @ g.u3  # E: operator | reportOperatorIssue
    # T: matmul: argument 'b': expected leading axes that broadcast with (2,), got shape (6, 4, 3); sizes must be equal


def matmul_of_a_vector(g: Given) -> None:
    _ = g.b @ g.u  # E: operator | reportOperatorIssue
    # T: matmul: argument 'b': expected shape (3, N), got (4, 3)


def matmul_result(g: Given) -> None:
    _ = g.x @ g.u + g.x  # E: operator | reportOperatorIssue
    # T: add: argument 'b': expected a shape that broadcasts with (5, 3), got (5, 4)


def linear_weight(g: Given) -> None:
    ops.linear(g.x, g.u, g.b)  # E: misc | reportArgumentType
    # T: linear: argument 'w': expected shape (N, 4), got (4, 3)


def linear_bias(g: Given) -> None:
    ops.linear(g.x, g.sq, g.b)  # E: misc | reportArgumentType
    # T: linear: argument 'b': expected shape (4,), got (3,)


def linear_bias_of_another_rank(g: Given) -> None:
    ops.linear(g.x, g.w, g.h)  # E: arg-type | reportArgumentType
    # T: linear: argument 'b': expected shape (3,), got (5, 3)


def linear_of_a_scalar(g: Given) -> None:
    ops.linear(g.s, g.w, g.b)  # E: arg-type | reportArgumentType
    # T: linear: argument 'x': expected shape (*Bs, K), got ()


def linear_result(g: Given) -> None:
    ops.mul(ops.linear(g.x, g.w, g.b), g.x)  # E: misc | reportArgumentType
    # T: mul: argument 'b': expected shape (5, 3), got (5, 4)


def linear_of_arguments_in_another_order(g: Given) -> None:
    ops.linear(g.w, g.x, g.b)  # E: misc | reportArgumentType
    # T: linear: argument 'b': expected shape (5,), got (3,)


def transpose_of_a_vector(g: Given) -> None:
    ops.transpose2d(g.b)  # E: arg-type | reportArgumentType
    # T: transpose2d: argument 'x': expected shape (M, N), got (3,)


def transpose_of_three_axes(g: Given) -> None:
    ops.transpose2d(g.x3)  # E: arg-type | reportArgumentType
    # T: transpose2d: argument 'x': expected shape (M, N), got (6, 5, 4)


def transpose_as_an_attribute(g: Given) -> None:
    _ = g.x3.T  # E: misc | reportAttributeAccessIssue
    # T: transpose2d: argument 'x': expected shape (M, N), got (6, 5, 4)


def transpose_result(g: Given) -> None:
    ops.add(ops.transpose2d(g.w), g.w)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (4, 3), got (3, 4)
