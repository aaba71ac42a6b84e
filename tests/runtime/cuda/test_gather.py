"""The batches of several steps reach the inputs of a GPU's plan as they reach those of the machine's."""

import numpy as np

from dgrr.runtime.cuda.bind import _gather


def test_rows_come_from_their_places() -> None:
    column, buffer = np.arange(24.0).reshape(8, 3), np.zeros((2, 3))
    places = np.array([5, 0, 9, 7, 7, 9])
    source = [buffer.ctypes.data, column.ctypes.data, column.strides[0], places.ctypes.data, 3, 2, 24]
    for step in range(2):
        _gather(source, step)
        assert buffer.tolist() == column[places[3 * step : 3 * step + 2]].tolist()


def test_whole_batches_come_from_their_addresses() -> None:
    batches, buffer = [np.full((2, 3), float(k)) for k in range(3)], np.zeros((2, 3))
    places = np.array([[batch.ctypes.data] for batch in batches])
    for step, batch in enumerate(batches):
        _gather([buffer.ctypes.data, 0, 1, places.ctypes.data, 1, 1, buffer.nbytes], step)
        assert buffer.tolist() == batch.tolist()
