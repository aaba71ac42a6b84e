"""Convolutions and pools of planes: channels are exact, spatial axes are kept, named, or of any name."""

from typing import Any, assert_type

from given import Ch, Given, High, Img, Ker, Wide, ones

from dgrr.tape import Dim, Shape, Var, f32, ops


class High2(Dim, size=6): ...


class Wide2(Dim, size=7): ...


class Small(Dim): ...


class Low(Dim): ...


def conv2d_makes_channels(g: Given) -> None:
    assert_type(ops.conv2d(g.im, g.k), Var[f32, Img, Ker, Any, Any])


def conv2d_with_attributes(g: Given) -> None:
    bias = g.t.param(ones(7), Shape[Ker])
    assert_type(ops.conv2d(g.im, g.k, bias, stride=(2, 1), padding=1), Var[f32, Img, Ker, Any, Any])


def conv2d_that_keeps_the_planes(g: Given) -> None:
    assert_type(ops.conv2d(g.im, g.k, padding="same"), Var[f32, Img, Ker, High, Wide])


def conv2d_named(g: Given) -> None:
    assert_type(ops.conv2d(g.im, g.k, out=Shape[High2, Wide2]), Var[f32, Img, Ker, High2, Wide2])


def conv2d_in_groups(g: Given) -> None:
    weight = g.t.param(ones(3, 1, 3, 3), Shape[Ch, Any, Any, Any])
    assert_type(ops.conv2d(g.im, weight, groups=3), Var[f32, Img, Ch, Any, Any])


def conv2d_of_one_image(g: Given) -> None:
    assert_type(ops.conv2d(g.im[0], g.k, padding="same"), Var[f32, Ker, High, Wide])


def conv2d_without_types(g: Given) -> None:
    y: Var[f32, Img, Ker, High2, Wide2] = ops.conv2d(g.im.gradual, g.k)
    assert y.shape == (6, 7, 6, 7)


def conv_transpose2d_makes_channels(g: Given) -> None:
    assert_type(ops.conv_transpose2d(ops.conv2d(g.im, g.k), g.k), Var[f32, Img, Ch, Any, Any])


def conv_transpose2d_named(g: Given) -> None:
    y = ops.conv2d(g.im, g.k)
    assert_type(ops.conv_transpose2d(y, g.k, out=Shape[High, Wide]) + g.im, Var[f32, Img, Ch, High, Wide])


def max_pool2d_keeps_what_leads(g: Given) -> None:
    assert_type(ops.max_pool2d(g.im, 2), Var[f32, Img, Ch, Any, Any])


def max_pool2d_named(g: Given) -> None:
    assert_type(ops.max_pool2d(g.im, (2, 3), out=Shape[Small, Low]), Var[f32, Img, Ch, Small, Low])


def avg_pool2d_named(g: Given) -> None:
    assert_type(ops.avg_pool2d(g.im, 3, 1, padding=1, out=Shape[High, Wide]) + g.im, Var[f32, Img, Ch, High, Wide])


def smooth_max_pool2d_keeps_what_leads(g: Given) -> None:
    assert_type(ops.smooth_max_pool2d(g.im[0], 2, beta=3.0), Var[f32, Ch, Any, Any])


def network_of_planes(g: Given) -> None:
    y = ops.max_pool2d(ops.conv2d(g.im, g.k, padding="same").relu(), 2)
    assert_type(y, Var[f32, Img, Ker, Any, Any])
    assert_type(y.flatten(Shape[Img, Small]), Var[f32, Img, Small])
