"""Further functions of each element, whole numbers and masks."""

from given import Given

from dgrr.tape import f64, ops


def atan2_of_other_shapes(g: Given) -> None:
    ops.atan2(g.x, g.h)  # E: misc | reportArgumentType
    # T: atan2: argument 'b': expected shape (5, 4), got (5, 3)


def pow_of_other_shapes(g: Given) -> None:
    _ = g.x**g.h  # E: operator | reportOperatorIssue
    # T: pow: argument 'exponent': expected a shape that broadcasts with (5, 4), got (5, 3)


def floor_of_integers(g: Given) -> None:  # R: DTypeError
    ops.floor(g.labels)  # E: type-var | reportArgumentType
    # T: floor: argument 'x': expected float32 or float64, got int64


def remainder_of_floats(g: Given) -> None:  # R: DTypeError
    ops.remainder(g.x, g.x)  # E: type-var | reportArgumentType
    # T: remainder: argument 'a': expected int64, got float32


def logic_of_floats(g: Given) -> None:  # R: DTypeError
    ops.logical_and(g.x, g.x)  # E: arg-type | reportArgumentType
    # T: logical_and: argument 'a': expected bool, got float32


def whole_numbers_and_floats(g: Given) -> None:  # R: DTypeError
    ops.add(g.labels, ops.cast(g.labels, f64))  # E: misc | reportArgumentType
    # T: add: argument 'b': expected int64, got float64


def running_maxima_of_integers(g: Given) -> None:  # R: DTypeError
    ops.cummax(g.labels, 0)  # E: type-var | reportArgumentType
    # T: cummax: argument 'x': expected float32 or float64, got int64


def iteration_over_a_scalar(g: Given) -> None:
    for _ in g.s:  # E: misc | reportGeneralTypeIssues
        pass
    # T: iter: expected an axis to go along, got a scalar
