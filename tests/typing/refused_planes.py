"""Planes of other sizes, borders and places."""

from given import Batch, Given, Img, ones

from dgrr.tape import Dim, Shape, ops


class Small(Dim): ...


class Two(Dim, size=2): ...


def grid_sample_of_another_batch(g: Given) -> None:
    grid = g.t.param(ones(5, 4, 4, 2), Shape[Batch, Small, Small, Two])
    ops.grid_sample(g.im, grid)  # E: misc | reportArgumentType
    # T: grid_sample: argument 'grid': expected shape (6, Ho, Wo, N), got (5, 4, 4, 2)


def grid_sample_result(g: Given) -> None:
    grid = g.t.param(ones(6, 4, 4, 2), Shape[Img, Small, Small, Two])
    ops.add(ops.grid_sample(g.im, grid), g.im)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (6, 3, 4, 4), got (6, 3, 8, 9)


def grid_sample_of_a_vector(g: Given) -> None:
    ops.grid_sample(g.b, g.im)  # E: misc | reportArgumentType
    # T: grid_sample: argument 'x': expected shape (*Bs, C, H, W), got (3,)


def pixel_shuffle_of_a_matrix(g: Given) -> None:
    ops.pixel_shuffle(g.x, 2)  # E: arg-type | reportArgumentType
    # T: pixel_shuffle: argument 'x': expected shape (*Bs, C, H, W), got (5, 4)


def interpolate_by_words(g: Given) -> None:
    ops.interpolate(g.im, "twice")  # E: arg-type | reportArgumentType
    # R: DTypeError
    # T: interpolate: argument 'size': expected a tuple of whole numbers or None, got 'twice'


def max_unpool_by_floats(g: Given) -> None:
    ops.max_unpool(g.im, g.im, (2, 2))  # E: arg-type | reportArgumentType
    # R: DTypeError
    # T: max_unpool: argument 'indices': expected int64, got float32
