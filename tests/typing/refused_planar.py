"""Convolutions and pools of planes."""

from given import Given, Hid, High, Img, Ker, Out, Wide, ones

from dgrr.tape import Shape, Var, f32, ops


def conv2d_of_other_channels(g: Given) -> None:
    weight = g.t.param(ones(7, 2, 3, 3), Shape[Ker, Out, Hid, Hid])
    ops.conv2d(g.im, weight)  # E: misc | reportArgumentType
    # T: conv2d: argument 'x': expected shape (*Bs, 2, S1, S2) to fit weight and groups, got (6, 3, 8, 9)


def conv2d_of_a_matrix(g: Given) -> None:
    ops.conv2d(g.x, g.k)  # E: arg-type | reportArgumentType
    # T: conv2d: argument 'x': expected shape (*Bs, C, H, W), got (5, 4)


def conv2d_with_a_matrix(g: Given) -> None:
    ops.conv2d(g.im, g.w)  # E: arg-type | reportArgumentType
    # T: conv2d: argument 'weight': expected shape (K, N, Kh, Kw), got (3, 4)


def conv2d_bias(g: Given) -> None:
    ops.conv2d(g.im, g.k, g.b)  # E: misc | reportArgumentType
    # T: conv2d: argument 'bias': expected shape (7,), got (3,)


def conv2d_that_keeps_the_planes(g: Given) -> None:
    y = ops.conv2d(g.im, g.k, padding="same")
    ops.add(y, g.im)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (6, 7, 8, 9), got (6, 3, 8, 9)


def conv2d_result(g: Given) -> None:
    y = ops.conv2d(g.im, g.k)
    ops.mul(y, g.x)  # E: misc | reportArgumentType
    # T: mul: argument 'b': expected shape (6, 7, 6, 7), got (5, 4)


def conv2d_named_by_one_axis(g: Given) -> None:
    ops.conv2d(g.im, g.k, out=Shape[High])  # E: arg-type | reportArgumentType
    # T: conv2d: argument 'out': expected shape (High=8,), got (6, 7)


def conv_transpose2d_of_other_channels(g: Given) -> None:
    ops.conv_transpose2d(g.im, g.k)  # E: misc | reportArgumentType
    # T: conv_transpose2d: argument 'weight': expected shape (3, N, Kh, Kw), got (7, 3, 3, 3)


def max_pool2d_of_a_vector(g: Given) -> None:
    ops.max_pool2d(g.b, 2)  # E: arg-type | reportArgumentType
    # T: max_pool2d: argument 'x': expected shape (*Bs, H, W), got (3,)


def max_pool2d_by_three_sizes(g: Given) -> None:
    ops.max_pool2d(g.im, (2, 2, 2))  # E: arg-type | reportArgumentType
    # T: max_pool2d: argument 'kernel_size': expected a number or two of them, got (2, 2, 2)


def max_pool2d_result(g: Given) -> None:
    ops.add(ops.max_pool2d(g.im, 2), g.x)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (6, 3, 4, 4), got (5, 4)


def avg_pool2d_assigned(g: Given) -> None:  # R: none
    kept = ops.avg_pool2d(g.im, 1, out=Shape[High, Wide])
    _: Var[f32, Img, Ker, High, Wide] = kept  # E: assignment | reportAssignmentType


def avg_pool2d_named(g: Given) -> None:
    y = ops.avg_pool2d(g.im, 1, out=Shape[High, Wide])
    ops.conv_transpose2d(y, g.k)  # E: misc | reportArgumentType
    # T: conv_transpose2d: argument 'weight': expected shape (3, N, Kh, Kw), got (7, 3, 3, 3)


def smooth_max_pool2d_result(g: Given) -> None:
    ops.add(ops.smooth_max_pool2d(g.im, 1), g.h)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (6, 3, 8, 9), got (5, 3)
