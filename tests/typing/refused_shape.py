"""Other shapes for the same elements, repetition, and elements picked by position."""

from given import Batch, Flat, Given, Hid, Img, In

from dgrr.tape import Shape, ops


def reshape_result(g: Given) -> None:
    ops.add(ops.reshape(g.im, Shape[Img, Flat]), g.x)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (6, 216), got (5, 4)


def reshape_as_a_method(g: Given) -> None:
    _ = g.im.reshape(Shape[Img, Flat]) @ g.u  # E: operator | reportOperatorIssue
    # T: matmul: argument 'b': expected shape (216, N), got (4, 3)


def reshape_to_dims_without_a_shape(g: Given) -> None:
    g.x.reshape(Batch, In)  # E: call-overload | reportArgumentType
    # R: DTypeError
    # T: reshape: argument 'shape': expected a whole number, a tuple of whole numbers or Shape[...], got


def flatten_result(g: Given) -> None:
    _ = ops.flatten(g.im, Shape[Img, Flat]) @ g.u  # E: operator | reportOperatorIssue
    # T: matmul: argument 'b': expected shape (216, N), got (4, 3)


def flatten_to_a_dim(g: Given) -> None:
    ops.flatten(g.im, Flat)  # E: arg-type | reportCallIssue
    # R: DTypeError
    # T: flatten: argument 'start_axis': expected a whole number or Shape[...], got


def broadcast_result(g: Given) -> None:
    ops.add(ops.broadcast_to(g.b, Shape[Batch, Hid]), g.x)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (5, 3), got (5, 4)


def broadcast_by_a_list_of_dims(g: Given) -> None:
    ops.broadcast_to(g.b, [Batch, Hid])  # E: call-overload | reportCallIssue
    # R: DTypeError
    # T: broadcast_to: argument 'shape': expected a tuple of whole numbers or Shape[...], got


def one_row_result(g: Given) -> None:
    ops.add(g.x[0], g.b)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (4,), got (3,)


def gather_row_of_a_vector(g: Given) -> None:
    ops.gather_row(g.b, 0)  # E: arg-type | reportArgumentType
    # T: gather_row: argument 'x': expected shape (M, N), got (3,)


def embedding_of_floats(g: Given) -> None:  # R: DTypeError
    ops.embedding(g.table, g.b)  # E: arg-type | reportArgumentType
    # T: embedding: argument 'indices': expected int64, got float32


def embedding_of_a_vector(g: Given) -> None:
    ops.embedding(g.b, g.labels)  # E: arg-type | reportArgumentType
    # T: embedding: argument 'weight': expected shape (N, K), got (3,)


def embedding_result(g: Given) -> None:
    ops.add(ops.embedding(g.table, g.labels), g.h)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (5, 4), got (5, 3)


def take_by_floats(g: Given) -> None:  # R: DTypeError
    ops.take(g.table, g.b)  # E: arg-type | reportCallIssue
    # T: take: argument 'indices': expected int64, got float32


def take_result(g: Given) -> None:
    ops.add(ops.take(g.table, g.labels), g.table)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (5, 4), got (9, 4)
