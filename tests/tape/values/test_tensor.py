"""Values: read-only arrays of four element types."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import AnyTensor, Dim, DTypeError, Shape, ShapeError, Tensor

pytestmark = pytest.mark.quick


class Rows(Dim):
    pass


def test_leaf_copies() -> None:
    given = np.arange(6.0).reshape(2, 3)
    tensor = AnyTensor.leaf(given)
    given[0, 0] = 99
    assert tensor.numpy()[0, 0] == 0
    assert not tensor.numpy().flags.writeable
    assert given.flags.writeable


def test_leaf_is_row_major_and_keeps_its_rank() -> None:
    tensor = AnyTensor.leaf(np.arange(6.0).reshape(2, 3).T)
    assert tensor.array.flags.c_contiguous
    assert tensor.shape == (3, 2)
    assert AnyTensor.leaf(np.float32(2)).shape == ()
    assert AnyTensor.leaf(np.zeros((0, 3))).size == 0


def test_the_constructor_takes_a_view_as_it_is() -> None:
    base = np.arange(6.0)
    tensor = AnyTensor(base[::-2])
    assert tensor.numpy().tolist() == [5.0, 3.0, 1.0]
    assert np.shares_memory(tensor.numpy(), base)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_the_four_element_types(dtype: Any) -> None:
    assert AnyTensor.leaf(np.ones(3, dtype)).dtype == dtype


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32])
def test_other_integers_become_int64(dtype: Any) -> None:
    top = np.iinfo(dtype).max
    tensor = AnyTensor.leaf(np.array([top], dtype))
    assert tensor.dtype == np.int64
    assert tensor.item() == top


@pytest.mark.parametrize("value", [np.ones(2, np.float16), np.ones(2, complex), "text", [None]])
def test_other_element_types_are_refused(value: Any) -> None:
    with pytest.raises(DTypeError, match=r"^leaf: expected float32, float64, an integer type or bool, got "):
        AnyTensor.leaf(value)


def test_item() -> None:
    assert AnyTensor.leaf([[2.5]]).item() == 2.5
    assert AnyTensor.leaf(True).item() is True
    with pytest.raises(ShapeError, match=r"^item: expected one element, got shape \(0,\); use .numpy\(\)$"):
        AnyTensor.leaf(np.zeros(0)).item()


def test_add() -> None:
    a, b = AnyTensor.leaf([1.0, 2.0]), AnyTensor(np.array([10.0, 99.0, 20.0])[::2])
    assert a.add(b).numpy().tolist() == [11.0, 22.0]
    with pytest.raises(ShapeError, match=r"^add: argument 'other': expected shape \(2,\), got \(3,\)$"):
        a.add(AnyTensor.leaf([1.0, 2.0, 3.0]))
    with pytest.raises(DTypeError, match=r"^add: argument 'other': expected dtype float64, got float32$"):
        a.add(AnyTensor.leaf(np.ones(2, np.float32)))


@pytest.mark.parametrize("dtype", [np.int64, np.bool_])
def test_add_takes_floats(dtype: Any) -> None:
    a = AnyTensor.leaf(np.ones(3, dtype))
    with pytest.raises(
        DTypeError, match=r"^add: expected float32 or float64, got (int64|bool); convert with ops.cast$"
    ):
        a.add(a)


def test_expect() -> None:
    tensor = AnyTensor.leaf(np.ones((2, 3)))
    typed = tensor.expect(Shape[Rows, Any])
    assert isinstance(typed, Tensor)
    assert np.shares_memory(typed.numpy(), tensor.numpy())
    assert tensor.expect((2, 3)).shape == (2, 3)
    with pytest.raises(ShapeError, match=r"^expect: expected shape \(Rows, Rows\), got \(2, 3\)$"):
        tensor.expect(Shape[Rows, Rows])
    with pytest.raises(ShapeError, match=r"^expect: expected shape \(2,\), got \(2, 3\)$"):
        tensor.expect((2,))


def test_numpy_reads_tensors() -> None:
    tensor = AnyTensor.leaf([1.0, 2.0])
    assert np.asarray(tensor) is tensor.array or np.shares_memory(np.asarray(tensor), tensor.array)
    assert np.array(tensor).flags.writeable
    assert np.asarray(tensor, np.float32).dtype == np.float32
    assert (len(tensor), repr(tensor)) == (2, "AnyTensor(array([1., 2.]))")
