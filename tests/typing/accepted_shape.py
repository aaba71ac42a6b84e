"""Other shapes for the same elements, repetition, and elements picked by position."""

from typing import Any, Literal, assert_type

from given import Batch, Ch, Flat, Given, Hid, High, Img, In, Wide, Words

from dgrr.tape import Shape, Var, f32, i64, ops


def reshape_to_names(g: Given) -> None:
    assert_type(ops.reshape(g.im, Shape[Img, Flat]), Var[f32, Img, Flat])
    assert_type(g.im.reshape(Shape[Img, Flat]), Var[f32, Img, Flat])


def reshape_back(g: Given) -> None:
    flat = g.im.reshape(Shape[Img, Flat])
    assert_type(flat.reshape(Shape[Img, Ch, High, Wide]) + g.im, Var[f32, Img, Ch, High, Wide])


def reshape_to_literal_sizes(g: Given) -> None:
    assert_type(g.x.reshape(Shape[Literal[2], Literal[10]]), Var[f32, Literal[2], Literal[10]])


def reshape_to_sizes(g: Given) -> None:
    assert_type(g.x.reshape(2, -1), Var[f32, *tuple[Any, ...]])
    assert_type(ops.reshape(g.x, (2, 10)), Var[f32, *tuple[Any, ...]])


def flatten_to_names(g: Given) -> None:
    assert_type(ops.flatten(g.im, Shape[Img, Flat]), Var[f32, Img, Flat])


def flatten_of_some_axes(g: Given) -> None:
    assert_type(g.im.flatten(Shape[Img, Ch, Flat]), Var[f32, Img, Ch, Flat])


def flatten_to_one_name(g: Given) -> None:
    assert_type(g.x.flatten(Shape[Flat]), Var[f32, Flat])


def flatten_by_an_axis(g: Given) -> None:
    assert_type(ops.flatten(g.im, 1), Var[f32, *tuple[Any, ...]])


def broadcast_to_names(g: Given) -> None:
    assert_type(ops.broadcast_to(g.b, Shape[Batch, Hid]), Var[f32, Batch, Hid])
    assert_type(g.h + g.s.broadcast_to(Shape[Batch, Hid]), Var[f32, Batch, Hid])


def broadcast_to_sizes(g: Given) -> None:
    assert_type(g.b.broadcast_to((5, 3)), Var[f32, *tuple[Any, ...]])


def one_row(g: Given) -> None:
    assert_type(g.x[0], Var[f32, In])
    assert_type(g.x3[-1][0], Var[f32, In])
    assert_type(g.b[2], Var[f32])


def slices_are_gradual(g: Given) -> None:
    assert_type(g.x[1:, ::2], Var[f32, *tuple[Any, ...]])


def gather_row(g: Given) -> None:
    assert_type(ops.gather_row(g.x, 3), Var[f32, In])


def embedding_of_positions(g: Given) -> None:
    assert_type(ops.embedding(g.table, g.labels), Var[f32, Batch, In])


def take_along_the_first(g: Given) -> None:
    assert_type(ops.take(g.table, g.labels), Var[f32, Batch, In])
    assert_type(ops.take(g.b, g.labels), Var[f32, Batch])


def take_along_another(g: Given) -> None:
    assert_type(ops.take(g.x, g.labels, axis=1), Var[f32, *tuple[Any, ...]])


def take_by_the_largest(g: Given) -> None:
    best = ops.argmax(g.x, -1)
    assert_type(best, Var[i64, Batch])
    assert_type(ops.embedding(g.table, best), Var[f32, Batch, In])


def index_add_keeps_the_shape(g: Given) -> None:
    assert_type(ops.index_add(g.table, g.labels, g.x), Var[f32, Words, In])


def joining_is_gradual(g: Given) -> None:
    joined = ops.concat([g.x, g.x], axis=0)
    assert_type(joined, Var[Any, *tuple[Any, ...]])
    assert_type(joined.expect(Shape[Any, In]), Var[Any, Any, In])
