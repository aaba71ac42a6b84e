"""Elements in order, positions as rows, triangles and equations: what does not fit."""

from given import Given

from dgrr.tape import ops


def sort_result(g: Given) -> None:
    ops.add(ops.sort(g.x), g.h)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (5, 4), got (5, 3)


def argsort_result(g: Given) -> None:  # R: DTypeError
    ops.add(ops.argsort(g.x), g.x)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected int64, got float32


def take_along_axis_by_floats(g: Given) -> None:  # R: DTypeError
    ops.take_along_axis(g.x, g.x)  # E: arg-type | reportArgumentType
    # T: take_along_axis: argument 'indices': expected int64, got float32


def one_hot_of_floats(g: Given) -> None:  # R: DTypeError
    ops.one_hot(g.b, 3)  # E: arg-type | reportArgumentType
    # T: one_hot: argument 'indices': expected int64, got float32


def topk_without_a_number(g: Given) -> None:  # R: DTypeError
    ops.topk(g.x, "two")  # E: arg-type | reportArgumentType
    # T: topk: argument 'k': expected a whole number, got 'two'


def roll_by_a_fraction(g: Given) -> None:  # R: DTypeError
    ops.roll(g.x, 0.5, 1)  # E: arg-type | reportArgumentType
    # T: roll: argument 'shift': expected a whole number or a tuple of whole numbers, got 0.5


def tril_of_a_vector(g: Given) -> None:
    ops.tril(g.b)  # E: arg-type | reportArgumentType
    # T: tril: argument 'x': expected shape (*Bs, M, N), got (3,)


def outer_of_a_matrix(g: Given) -> None:
    ops.outer(g.x, g.b)  # E: arg-type | reportArgumentType
    # T: outer: argument 'a': expected shape (M,), got (5, 4)


def outer_result(g: Given) -> None:
    ops.add(ops.outer(g.b, g.x[0]), g.u)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (3, 4), got (4, 3)


def cholesky_of_other_axes(g: Given) -> None:
    ops.cholesky(g.x)  # E: misc | reportArgumentType
    # T: cholesky: argument 'a': expected shape (*Bs, N, N), got (5, 4)


def equations_of_another_number(g: Given) -> None:
    ops.solve_triangular(g.sq, g.w, upper=False)  # E: misc | reportArgumentType
    # T: solve_triangular: argument 'b': expected shape (4, K), got (3, 4)


def matmul_of_vectors_of_other_axes(g: Given) -> None:
    _ = g.b @ g.x[0]  # E: operator | reportOperatorIssue
    # T: matmul: argument 'b': expected shape (3,), got (4,)
