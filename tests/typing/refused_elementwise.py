"""Operators, functions of each element, comparisons, selection and conversion."""

from given import Batch, Given, Twin, ones

from dgrr.tape import Shape, f64, ops


def add_of_other_shapes(g: Given) -> None:
    _ = g.x + g.h  # E: operator | reportOperatorIssue
    # T: add: argument 'b': expected a shape that broadcasts with (5, 4), got (5, 3)


def add_as_a_function(g: Given) -> None:
    ops.add(g.x, g.h)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (5, 4), got (5, 3)


def add_of_another_rank(g: Given) -> None:
    _ = g.x + g.b  # E: operator | reportOperatorIssue
    # T: add: argument 'b': expected a shape that broadcasts with (5, 4), got (3,)


def add_does_not_broadcast(g: Given) -> None:  # R: none
    _ = g.h + g.b  # E: operator | reportOperatorIssue


def add_of_a_scalar_var(g: Given) -> None:  # R: none
    _ = g.h + g.s  # E: operator | reportOperatorIssue


def add_of_twins(g: Given) -> None:  # R: none
    _ = g.h + g.t.leaf(ones(5, 3), Shape[Batch, Twin])  # E: arg-type | reportOperatorIssue


def add_of_another_dtype(g: Given) -> None:  # R: TapeError
    _ = g.x + g.other  # E: operator | reportOperatorIssue
    # T: expected a Var of


def add_after_a_cast(g: Given) -> None:  # R: DTypeError
    ops.add(g.x, ops.cast(g.x, f64))  # E: misc | reportArgumentType
    # T: add: argument 'b': expected float32, got float64


def sub_of_other_shapes(g: Given) -> None:
    ops.sub(g.x3, g.x)  # E: misc | reportArgumentType
    # T: sub: argument 'b': expected shape (6, 5, 4), got (5, 4)


def mul_of_other_shapes(g: Given) -> None:
    _ = g.x * g.u  # E: operator | reportOperatorIssue
    # T: mul: argument 'b': expected a shape that broadcasts with (5, 4), got (4, 3)


def div_of_other_shapes(g: Given) -> None:
    ops.div(g.h, g.y)  # E: misc | reportArgumentType
    # T: div: argument 'b': expected shape (5, 3), got (5, 2)


def maximum_of_other_shapes(g: Given) -> None:
    ops.maximum(g.x, g.h)  # E: misc | reportArgumentType
    # T: maximum: argument 'b': expected a shape that broadcasts with (5, 4), got (5, 3)


def relu_of_integers(g: Given) -> None:  # R: DTypeError
    ops.relu(g.labels)  # E: type-var | reportArgumentType
    # T: relu: argument 'x': expected float32 or float64, got int64


def method_of_integers(g: Given) -> None:  # R: DTypeError
    g.labels.exp()  # E: - | reportAttributeAccessIssue
    # T: exp: argument 'x': expected float32 or float64, got int64


def relu_of_a_number(g: Given) -> None:  # R: TapeError
    ops.relu(3.0)  # E: arg-type | reportArgumentType
    # T: relu: expected a Var among the arguments


def result_keeps_the_shape(g: Given) -> None:
    _ = ops.relu(g.x) * g.h  # E: operator | reportOperatorIssue
    # T: mul: argument 'b': expected a shape that broadcasts with (5, 4), got (5, 3)


def softmax_of_another_shape(g: Given) -> None:
    ops.mul(ops.softmax(g.x), g.h)  # E: misc | reportArgumentType
    # T: mul: argument 'b': expected shape (5, 4), got (5, 3)


def comparison_of_other_shapes(g: Given) -> None:
    _ = g.x < g.h  # E: operator | reportOperatorIssue
    # T: less: argument 'b': expected a shape that broadcasts with (5, 4), got (5, 3)


def comparison_as_a_function(g: Given) -> None:
    ops.greater(g.x, g.h)  # E: misc | reportArgumentType
    # T: greater: argument 'b': expected shape (5, 4), got (5, 3)


def arithmetic_on_masks(g: Given) -> None:  # R: DTypeError
    ops.add(g.mask, g.mask)  # E: type-var | reportArgumentType
    # T: add: argument 'a': expected float32 or float64 or int64, got bool


def where_of_a_float_condition(g: Given) -> None:  # R: DTypeError
    ops.where(g.x, g.x, g.x)  # E: arg-type | reportArgumentType
    # T: where: argument 'condition': expected bool, got float32


def where_of_other_shapes(g: Given) -> None:
    ops.where(g.mask, g.x, g.h)  # E: misc | reportArgumentType
    # T: where: argument 'b': expected a shape that broadcasts with (5, 4), got (5, 3)


def where_of_another_condition(g: Given) -> None:
    ops.where(g.h > 0.0, g.x, g.x)  # E: misc | reportArgumentType
    # T: where: argument 'a': expected a shape that broadcasts with (5, 3), got (5, 4)


def cast_that_is_not_converted(g: Given) -> None:  # R: DTypeError
    ops.mse_loss(ops.cast(g.x, f64), g.x)  # E: misc | reportArgumentType
    # T: mse_loss: argument 'a': expected float32, got float64
