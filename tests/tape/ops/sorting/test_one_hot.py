"""Element types of one_hot as numpy names them."""

from typing import Any

import numpy as np
import pytest

from dgrr.tape import DTypeError, Tape, f64, ops


@pytest.mark.parametrize("dtype", ["float64", np.float64, np.dtype(np.float64), f64])
def test_an_element_type_by_any_of_its_names(dtype: Any, tape: Tape[Any]) -> None:
    made = ops.one_hot(tape.const(np.array([2, 0])), 3, dtype)
    assert made.dtype == np.float64
    assert made.numpy().tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]


def test_another_one_is_refused(tape: Tape[Any]) -> None:
    with pytest.raises(DTypeError, match=r"^one_hot: argument 'dtype': expected "):
        ops.one_hot(tape.const(np.array([2, 0])), 3, np.float16)
