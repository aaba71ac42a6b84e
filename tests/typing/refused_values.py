"""Leaves, tapes and what opens them."""

from given import Batch, Given, Hid, In, ones

from dgrr.tape import Shape, Tape, Var, f32, f64, ops


def shape_as_a_tuple(g: Given) -> None:
    g.t.leaf(ones(5, 4), (Batch, In))  # E: call-overload | reportCallIssue
    # T: leaf: argument 'shape': expected Shape[...] or a tuple of sizes, got


def shape_of_a_list(g: Given) -> None:
    g.x.expect([5, 4])  # E: call-overload | reportCallIssue
    # T: expect: argument 'shape': expected Shape[...] or a tuple of sizes, got [5, 4]


def shape_of_one_dim(g: Given) -> None:
    g.x.expect(In)  # E: arg-type | reportCallIssue
    # T: expect: argument 'shape': expected Shape[...] or a tuple of sizes, got


def unopened(g: Given) -> None:  # R: none
    ops.relu(g.t.var(g.x.id))  # E: arg-type | reportArgumentType


def unopened_operand(g: Given) -> None:  # R: none
    _ = g.x + g.t.var(g.x.id)  # E: operator | reportOperatorIssue


def opened_as_another(g: Given) -> None:
    found = g.t.var(g.x.id).expect(Shape[Batch, In])
    ops.add(found, g.h)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (5, 4), got (5, 3)


def assigned_in_another_order(g: Given) -> None:  # R: none
    _: Var[f32, In, Batch] = g.x  # E: assignment | reportAssignmentType


def assigned_as_another_type(g: Given) -> None:  # R: none
    _: Var[f64, Batch, In] = g.x  # E: assignment | reportAssignmentType


def assigned_with_another_rank(g: Given) -> None:  # R: none
    _: Var[f32, Batch] = g.x  # E: assignment | reportAssignmentType


def passed_as_another(g: Given) -> None:  # R: none
    def rows(x: Var[f32, Batch, Hid]) -> int:
        return len(x)

    rows(g.x)  # E: arg-type | reportArgumentType


def returned_as_another(g: Given) -> None:  # R: none
    def first(x: Var[f32, Batch, In]) -> Var[f32, Batch]:
        return x[0]  # E: return-value | reportReturnType

    first(g.x)


def tape_of_no_dtype() -> None:  # R: none
    Tape(int)  # E: type-var | reportArgumentType


def leaf_of_another_type() -> None:  # R: DTypeError
    x = Tape(f32).leaf(ones(5, 4).astype("float64"), Shape[Batch, In])
    _: Var[f64, Batch, In] = x  # E: assignment | reportAssignmentType
    # T: leaf: argument 'value': expected float32 on this tape, got float64


def backward_of_a_matrix(g: Given) -> None:
    g.t.backward_scalar(g.x)  # E: arg-type | reportArgumentType
    # T: backward_scalar: argument 'out': expected shape (), got (5, 4)


def backward_of_a_vector(g: Given) -> None:
    rows = ops.reduce_sum(g.x, -1)
    g.t.backward_scalar(rows)  # E: arg-type | reportArgumentType
    # T: backward_scalar: argument 'out': expected shape (), got (5,)


def backward_with_a_graph_of_a_matrix(g: Given) -> None:
    g.t.backward_scalar(g.x, create_graph=True)  # E: call-overload | reportCallIssue
    # T: backward_scalar: argument 'out': expected shape (), got (5, 4)
