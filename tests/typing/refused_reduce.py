"""Reductions."""

from given import Given

from dgrr.tape import ops


def sum_of_a_scalar_along_an_axis(g: Given) -> None:
    ops.reduce_sum(g.s, -1)  # E: arg-type | reportCallIssue
    # T: reduce_sum: argument 'axis': expected no axis of a scalar, got -1


def method_of_a_scalar_along_an_axis(g: Given) -> None:
    g.s.mean(0)  # E: call-overload | reportCallIssue
    # T: reduce_mean: argument 'axis': expected no axis of a scalar, got 0


def sum_along_the_last(g: Given) -> None:
    ops.mul(ops.reduce_sum(g.x, -1), g.b)  # E: misc | reportArgumentType
    # T: mul: argument 'b': expected shape (5,), got (3,)


def sum_along_the_first(g: Given) -> None:
    ops.mul(ops.reduce_sum(g.x, 0), g.b)  # E: misc | reportArgumentType
    # T: mul: argument 'b': expected shape (4,), got (3,)


def sum_of_all(g: Given) -> None:
    ops.mul(ops.reduce_sum(g.x), g.x)  # E: misc | reportArgumentType
    # T: mul: argument 'b': expected shape (), got (5, 4)


def method_along_the_last(g: Given) -> None:
    ops.add(g.x.sum(-1), g.b)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (5,), got (3,)


def method_along_the_first(g: Given) -> None:
    ops.add(g.x3.mean(0), g.h)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (5, 4), got (5, 3)


def largest_along_the_last(g: Given) -> None:
    ops.add(g.x.max(-1), g.b)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (5,), got (3,)


def positions_are_no_floats(g: Given) -> None:  # R: DTypeError
    ops.add(ops.argmax(g.x, -1), ops.reduce_sum(g.x, -1))  # E: misc | reportArgumentType
    # T: add: argument 'b': expected int64, got float32


def sum_of_integers(g: Given) -> None:  # R: DTypeError
    g.labels.sum()  # E: - | reportAttributeAccessIssue
    # T: reduce_sum: argument 'x': expected float32 or float64, got int64


def variance_along_the_last(g: Given) -> None:
    ops.add(g.x.var(-1), g.x)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (5,), got (5, 4)


def log_sum_along_the_last(g: Given) -> None:
    ops.sub(g.x, ops.logsumexp(g.x, -1))  # E: misc | reportArgumentType
    # T: sub: argument 'b': expected shape (5, 4), got (5,)


def backward_of_a_partial_sum(g: Given) -> None:
    rows = g.x.sum(-1)
    g.t.backward_scalar(rows)  # E: arg-type | reportArgumentType
    # T: backward_scalar: argument 'out': expected shape (), got (5,)
