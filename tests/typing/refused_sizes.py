"""What no type checker sees: sizes, and arithmetic on them. The run time refuses them."""

from typing import Any, Literal

from given import Batch, Flat, Given, Hid, High, In, Out, Wide, ones

from dgrr.tape import Dim, Shape, Tape, f32, nn, ops


def size_of_a_bound_dim(g: Given) -> None:
    g.t.leaf(ones(6, 4), Shape[Batch, In])
    # T: leaf: argument 'value': expected shape (Batch=5, In=4), got (6, 4)


def size_of_a_sized_dim(g: Given) -> None:
    g.t.param(ones(5, 5), Shape[Batch, In])
    # T: param: argument 'value': expected shape (Batch=5, In=4), got (5, 5)


def size_of_a_literal(g: Given) -> None:
    g.t.const(ones(2, 4), Shape[Literal[2], Literal[3]])
    # T: const: argument 'value': expected shape (2, 3), got (2, 4)


def number_of_axes(g: Given) -> None:
    g.t.leaf(ones(5, 4, 1), Shape[Batch, In])
    # T: leaf: argument 'value': expected shape (Batch=5, In=4), got (5, 4, 1)


def size_of_a_dim_used_twice(g: Given) -> None:
    g.t.leaf(ones(2, 3), Shape[Flat, Flat])
    # T: leaf: argument 'value': expected shape (Flat, Flat), got (2, 3)


def expected_shape(g: Given) -> None:
    g.t.var(g.x.id).expect(Shape[Batch, Out])
    # T: expect: expected shape (Batch=5, Out=2), got (5, 4)


def expected_sizes(g: Given) -> None:
    g.g.expect((4, 3))
    # T: expect: expected shape (4, 3), got (4, 4)


def elements_of_a_reshape(g: Given) -> None:
    ops.reshape(g.x, Shape[Hid, Hid])
    # T: reshape: argument 'shape': expected 20 elements as in (5, 4), got (3, 3)


def elements_that_do_not_divide(g: Given) -> None:
    g.x.reshape(Shape[Hid, Flat])
    # T: reshape: argument 'shape': expected 20 elements as in (5, 4), got (3, -1)


def two_new_dims_of_a_reshape(g: Given) -> None:
    class Other(Dim): ...

    g.x.reshape(Shape[Flat, Other])
    # T: reshape: argument 'shape': expected 20 elements as in (5, 4), got (-1, -1)


def pack_of_a_reshape(g: Given) -> None:
    g.x.reshape(Shape[Batch, *tuple[Any, ...]])
    # T: reshape: argument 'shape': expected a name or a size for each axis, got (Batch=5, ...)


def kept_axes_of_a_flatten(g: Given) -> None:
    g.im.flatten(Shape[Batch, Flat])
    # T: flatten: argument 'start_axis': expected shape (Batch=5, Flat), got (6, 216)


def joined_axis_of_a_flatten(g: Given) -> None:
    g.im.flatten(Shape[In])
    # T: flatten: argument 'start_axis': expected shape (In=4,), got (1296,)


def axes_of_a_flatten(g: Given) -> None:
    g.x.flatten(Shape[Batch, In, Flat])
    # T: flatten: argument 'start_axis': expected an axis from -2 to 1, got 2


def repetition_to_another_size(g: Given) -> None:
    ops.broadcast_to(g.b, Shape[Batch, In])
    # T: broadcast_to: argument 'shape': expected a shape that (3,) can be repeated to, got (5, 4)


def repetition_to_an_unknown_size(g: Given) -> None:
    g.s.broadcast_to(Shape[Flat, Hid])
    # T: broadcast_to: argument 'shape': expected axes whose sizes are known on this tape, got (Flat, Hid=3)


def product_of_gradual_vars(g: Given) -> None:
    ops.matmul(g.x.gradual, g.w.gradual)
    # T: matmul: argument 'b': expected shape (4, N), got (3, 4)


def sum_of_gradual_vars(g: Given) -> None:
    _ = g.x.gradual + g.h.gradual
    # T: add: argument 'b': expected a shape that broadcasts with (5, 4), got (5, 3)


def gradual_and_typed(g: Given) -> None:
    ops.add(g.g, g.x)
    # T: add: argument 'b': expected shape (4, 4), got (5, 4)


def axis_that_does_not_exist(g: Given) -> None:
    g.x.sum(2)
    # T: reduce_sum: argument 'axis': expected an axis from -2 to 1, got 2


def softmax_of_a_scalar(g: Given) -> None:
    ops.softmax(g.s)
    # T: softmax: argument 'axis': expected no axis of a scalar, got -1


def position_that_does_not_exist(g: Given) -> None:  # R: BoundsError
    ops.gather_row(g.x, 5)
    # T: gather_row: argument 'i': expected -5 to 4, got 5


def label_that_is_no_class(g: Given) -> None:  # R: BoundsError
    ops.cross_entropy(g.h[:, :1], g.labels)
    # T: cross_entropy: argument 'labels': expected a class from 0 to 0, got 1 at position 1


def layer_of_a_dim_without_a_size() -> None:
    nn.Linear(Batch, Hid)
    # T: Linear: argument 'in_features': expected a number or a Dim with a size, got Batch


def layers_of_numbers_that_break(g: Given) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(4, 2))
    model(g.params(model), g.x)
    # T: 2: linear: argument 'w': expected shape (N, 3), got (2, 4)


def parameters_of_another_layer(g: Given) -> None:
    nn.Linear(In, Hid)(g.params(nn.Linear(Hid, Out)), g.x)
    # T: linear: argument 'w': expected shape (N, 4), got (2, 3)


def var_of_another_tape(g: Given) -> None:  # R: TapeError
    ops.mul(g.x, Tape(f32).leaf(ones(5, 4), Shape[Batch, In]))
    # T: expected a Var of


def type_of_a_leaf(g: Given) -> None:  # R: DTypeError
    g.t.leaf(ones(5, 4).astype("float64"), Shape[Batch, In])
    # T: leaf: argument 'value': expected float32 on this tape, got float64


def size_of_a_convolution(g: Given) -> None:
    ops.conv2d(g.im, g.k, out=Shape[High, Any])
    # T: conv2d: argument 'out': expected shape (High=8, _), got (6, 7)


def size_of_a_kernel(g: Given) -> None:
    ops.conv2d(g.im[:, :, :2, :2], g.k)
    # T: conv2d: argument 'x': expected spatial sizes that leave a result of at least 1, not of (0, 0), got (2, 2)


def size_of_a_pool(g: Given) -> None:
    ops.max_pool2d(g.im, 2, out=Shape[Any, Wide])
    # T: max_pool2d: argument 'out': expected shape (_, Wide=9), got (4, 4)


def window_beyond_a_plane(g: Given) -> None:
    ops.avg_pool2d(g.im, 20)
    # T: avg_pool2d: argument 'x': expected spatial sizes that hold a cell of every window, got shape (6, 3, 8, 9)
