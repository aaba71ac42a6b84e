"""The errors: their family, their texts, and that neither threads nor repetition change what is said."""

import pickle
from typing import Any

import numpy as np
import pytest

from dgrr import tape as dgrr_tape
from dgrr.tape import (
    BoundsError,
    DgrrError,
    DomainError,
    DTypeError,
    GradientError,
    MissingAttributeError,
    NonFiniteError,
    ShapeError,
    SingularMatrixError,
    Tape,
    TapeError,
    ops,
)

from .ops.properties.forward import THREAD_COUNTS, threads

pytestmark = pytest.mark.quick

FAMILY = {
    ShapeError: ValueError,
    DTypeError: TypeError,
    TapeError: RuntimeError,
    DomainError: ValueError,
    BoundsError: IndexError,
    GradientError: RuntimeError,
    MissingAttributeError: AttributeError,
    NonFiniteError: ArithmeticError,
    SingularMatrixError: ArithmeticError,
}


@pytest.mark.parametrize("error", FAMILY)
def test_every_error_is_a_dgrr_error_and_a_builtin_one(error: type[DgrrError]) -> None:
    assert issubclass(error, DgrrError)
    assert issubclass(error, FAMILY[error])
    assert error.__name__ in dgrr_tape.__all__
    assert str(pickle.loads(pickle.dumps(error("text")))) == "text"


def test_there_are_no_other_errors() -> None:
    assert set(DgrrError.__subclasses__()) >= set(FAMILY)
    public = {name for name in dgrr_tape.__all__ if name.endswith("Error")}
    assert public == {error.__name__ for error in (*FAMILY, DgrrError)}


INDEXED: dict[str, Any] = {
    "take": lambda x, indices: ops.take(x, indices),
    "index_add": lambda x, indices: ops.index_add(x, indices, x),
    "scatter_add": lambda x, indices: ops.scatter_add(x, indices, 8),
    "cross_entropy": lambda x, indices: ops.cross_entropy(x, indices),
}


@pytest.mark.parametrize("name", INDEXED)
def test_the_first_index_outside_is_named_on_any_number_of_threads(name: str) -> None:
    """Positions 2, 3 and 7 are outside; the threads of the later ones may well come first."""
    indices = np.array([0, 1, 90, 80, 2, 1, 0, 70])
    for count in THREAD_COUNTS:
        tape: Tape[Any] = Tape()
        x, i = tape.leaf(np.zeros((8, 3))), tape.const(indices)
        with (
            threads(count),
            pytest.raises(BoundsError, match=f"^{name}: argument '.*, got 90 at position 2$"),
        ):
            INDEXED[name](x, i)
        assert len(tape) == 2


def test_a_failure_is_the_same_the_second_time() -> None:
    tape: Tape[Any] = Tape()
    x, i = tape.leaf(np.zeros((2, 3))), tape.const([0, 2])
    texts = []
    for _ in range(2):
        with pytest.raises(BoundsError) as caught:
            ops.take(x, i)
        texts.append(str(caught.value))
    assert texts == ["take: argument 'indices': expected -2 to 1, got 2 at position 1"] * 2


def test_a_failing_call_leaves_the_op_usable() -> None:
    tape: Tape[Any] = Tape()
    x = tape.leaf(np.arange(6.0).reshape(2, 3))
    with pytest.raises(BoundsError):
        ops.take(x, tape.const([5]))
    assert ops.take(x, tape.const([1])).numpy().tolist() == [[3.0, 4.0, 5.0]]
