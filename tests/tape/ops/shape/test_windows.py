"""Windows as columns beside the convolution that they are made for, and what they refuse."""

from typing import Any

import numpy as np

from dgrr.tape import Tape, f64, ops


def test_a_convolution_is_a_product_with_the_columns() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.integers(-9, 9, (2, 3, 5, 6)).astype(float), rng.integers(-9, 9, (4, 3, 2, 3)).astype(float)
    tape = Tape(f64)
    columns = ops.unfold(tape.leaf(x), (2, 3), dilation=(1, 2), padding=1, stride=(2, 1))
    expected = ops.conv(tape.leaf(x), tape.leaf(w), stride=(2, 1), padding=1, dilation=(1, 2))
    product: Any = tape.leaf(w.reshape(4, 18)) @ columns
    assert product.numpy().reshape(expected.shape).tolist() == expected.numpy().tolist()  # whole: sums are exact


def test_folding_is_the_adjoint_of_unfolding() -> None:
    rng = np.random.default_rng(0)
    tape = Tape(f64)
    x = tape.leaf(rng.standard_normal((2, 4, 5)))
    call: dict[str, Any] = {"kernel_size": (2, 3), "padding": (1, 0), "stride": (1, 2)}
    columns = ops.unfold(x, **call)
    g = rng.standard_normal(columns.shape)
    gradient = tape.backward_dense(columns, g)[x]
    assert gradient is not None
    assert gradient.numpy().tobytes() == ops.fold(tape.leaf(g), (4, 5), **call).numpy().tobytes()


def test_cells_add_in_the_order_of_the_kernel(tape: Tape[Any]) -> None:
    x = tape.leaf([[0.0, 1.0, 0.0], [0.0, 1e16, 0.0], [-1e16, 0.0, 0.0]])  # cell 2 has one of each row
    assert ops.fold(x, (5,), (3,)).numpy().tolist()[0][2] == -1e16 + (1e16 + (0.0 + 0.0))
    y = tape.leaf([[0.0, 0.0, 1.0], [0.0, 1e16, 0.0], [-1e16, 0.0, 0.0]])
    assert ops.fold(y, (5,), (3,)).numpy().tolist()[0][2] == (1.0 + 1e16) + -1e16 == 0.0
