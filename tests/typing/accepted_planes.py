"""Planes of other sizes, borders and places."""

from typing import Any, assert_type

from given import Ch, Given, High, Img, Wide, ones

from dgrr.tape import Dim, Shape, Var, f32, i64, ops


class Small(Dim): ...


class Low(Dim): ...


class Two(Dim, size=2): ...


def grid_sample_has_the_planes_of_the_grid(g: Given) -> None:
    grid = g.t.param(ones(6, 5, 4, 2), Shape[Img, Small, Low, Two])
    assert_type(ops.grid_sample(g.im, grid, "bicubic", "border"), Var[f32, Img, Ch, Small, Low])


def grid_sample_of_one_image(g: Given) -> None:
    grid = g.t.param(ones(5, 4, 2), Shape[Small, Low, Two])
    assert_type(ops.grid_sample(g.im[0], grid, align_corners=True), Var[f32, Ch, Small, Low])


def grid_of_an_affine_map(g: Given) -> None:
    theta = g.t.param(ones(6, 2, 3), Shape[Img, Two, Ch])
    grid = ops.affine_grid(theta, (5, 4)).expect(Shape[Img, Small, Low, Two])
    assert_type(ops.grid_sample(g.im, grid), Var[f32, Img, Ch, Small, Low])


def interpolate_is_gradual(g: Given) -> None:
    larger = ops.interpolate(g.im, scale_factor=(2.0, 1.5), mode="bicubic")
    assert_type(larger, Var[f32, *tuple[Any, ...]])
    smaller = ops.interpolate(larger, (8, 9), mode="bilinear", antialias=True).expect(Shape[Img, Ch, High, Wide])
    assert_type(smaller + g.im, Var[f32, Img, Ch, High, Wide])


def pad_by_own_elements(g: Given) -> None:
    assert_type(ops.pad(g.im, ((0, 0), (0, 0), (1, -1), (2, -2)), mode="reflect"), Var[f32, *tuple[Any, ...]])


def pixels_for_channels(g: Given) -> None:
    planes = g.im[:, :, :8, :8]
    shuffled: Var[f32, *tuple[Any, ...]] = ops.pixel_unshuffle(planes, 2)
    assert_type(ops.pixel_shuffle(shuffled, 2), Var[f32, *tuple[Any, ...]])


def max_pool2d_that_hangs_over(g: Given) -> None:
    y = ops.max_pool2d(g.im, 2, padding=((1, 0), (0, 1)), ceil_mode=True, out=Shape[Small, Low])
    assert_type(y, Var[f32, Img, Ch, Small, Low])
    assert_type(ops.avg_pool2d(g.im, 2, ceil_mode=True), Var[f32, Img, Ch, Any, Any])


def conv2d_with_borders_that_differ(g: Given) -> None:
    assert ops.conv2d(g.im, g.k, padding=((1, 0), (0, 1))).shape == (6, 7, 7, 8)


def unpooled_planes(g: Given) -> None:
    places = ops.max_pool_indices(g.im, (2, 3))
    assert_type(places, Var[i64, *tuple[Any, ...]])
    pooled = ops.max_pool(g.im, (2, 3))
    assert_type(ops.max_unpool(pooled, places, (2, 3)), Var[f32, *tuple[Any, ...]])


def lp_pool_is_gradual(g: Given) -> None:
    assert_type(ops.lp_pool(g.im, 2, (2, 2)), Var[f32, *tuple[Any, ...]])
