"""Whatever an op is given, it gives a result or says what is wrong: a dgrr error that names the op and the argument."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from dgrr.tape import AnyTensor, DgrrError, DomainError, DTypeError, GradientError, ShapeError, Tape, TapeError, ops
from dgrr.tape.ops import OPS
from dgrr.tape.record.composed import COMPOSED, Composed
from dgrr.tape.record.op import Op
from dgrr.tape.record.samples import Make
from dgrr.tape.transforms.symbolic_tape import SymbolicTape
from dgrr.tape.values.spec import Spec

Record = Op | Composed
RECORDS: list[Record] = [*OPS.values(), *COMPOSED.values()]
PUBLIC: list[Record] = [record for record in RECORDS if not getattr(record, "private", False)]


class Something:
    """Nothing that an op knows."""

    def __repr__(self) -> str:
        return "something"


VALUES: list[Any] = [
    "qq", "", b"x", None, ..., True, np.True_, 0.5, -1.5, 1j, float("nan"), float("inf"), -(2**63), 10**30, -(10**30),
    10**400, Something(), [], (), {}, {1}, [None], ["a"], (0.5,), (True,), (10**30,), [[1], [1, 2]], np.zeros(2),
    np.array([None]), np.complex64(1), np.str_("qq"), np.float32, int, slice(None), slice("a"), slice(None, None, 0),
    AnyTensor.leaf(1.0), range(2), Spec((), np.dtype(np.float32)),
]  # fmt: skip
"""Nonsense for most attributes; where one makes sense there is a result."""

TENSORS: list[Any] = [
    "a", b"x", None, ..., 1j, Something(), {}, [None], ["a"], [[1.0], [1.0, 2.0]], np.zeros(2, np.complex64),
    np.array([None]), np.array(["a"]), np.complex64(1), np.str_("a"), slice(None), np.float16(1),
    np.zeros(2, np.float16),     10**30, -(10**400), [10**30], np.datetime64(0, "s"), np.uint64(2**63), [[]],
    np.array([2**63], np.uint64), True,
]  # fmt: skip
"""Nonsense for most inputs."""


ELSEWHERE = (bool, int, list, tuple, np.float16, np.uint64)
"""Types of values above that may be well in themselves, so that another argument does not fit them."""


@dataclass(frozen=True)
class Call:
    """A call of an op that it accepts."""

    record: Record
    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]

    @classmethod
    def of(cls, record: Record, tape: Tape[Any]) -> "Call":
        """Of the first sample in which nothing is empty, on a tape."""
        samples = record.samples(Make(np.float32))
        sample = next((s for s in samples if all(a is None or a.size for a in s.arrays)), samples[0])
        return cls(record, tuple([None if a is None else _entered(tape, a) for a in sample.arrays]), sample.attrs)

    def __call__(self, inputs: Mapping[int, Any] | None = None, **attrs: Any) -> Any:
        given = list(self.inputs)
        for i, value in (inputs or {}).items():
            given[i] = value
        return self.record(*given, **{**self.attrs, **attrs})


def _entered(tape: Tape[Any], array: Any) -> Any:
    """A leaf, or a symbol where nothing is computed."""
    array = np.asarray(array)
    if isinstance(tape, SymbolicTape):
        return tape.symbol(Spec(array.shape, array.dtype), "x", requires_grad=array.dtype.kind == "f")
    return tape.leaf(array)


def faults(name: str, argument: str, call: Any, value: Any) -> Iterator[str]:
    """What is wrong with how a call ends: nothing for a result, and for a dgrr error that names op and argument."""
    title = f"{name}({argument}={type(value).__name__} {str(value)[:30]})"
    try:
        call()
    except TapeError as error:
        if name not in str(error):
            yield f"{title}: {error}"
    except DgrrError as error:
        text = str(error)
        whole = getattr(value, "dtype", None) == np.uint64
        other = "argument" in text and (whole or isinstance(value, ELSEWHERE))
        if not text.startswith(f"{name}: ") or not (f"argument {argument!r}" in text or other):
            yield f"{title}: {text}"
    except Exception as error:
        yield f"{title}: {type(error).__name__}: {error}"


@pytest.mark.parametrize("record", PUBLIC, ids=lambda record: record.name)
@pytest.mark.parametrize("kind", [Tape, SymbolicTape])
def test_an_attribute_is_taken_or_refused_by_a_dgrr_error(record: Record, kind: type[Tape[Any]]) -> None:
    tape = kind()
    call = Call.of(record, tape)
    before = len(tape)
    found = []
    for name in record.signature.attributes:
        for value in VALUES:
            if record.name == "uniform" and name == "dtype":
                continue  # refused under the name of cast
            found += faults(record.name, name, lambda name=name, value=value: call(**{name: value}), value)
    assert not found, "\n".join(found)
    assert len(tape) >= before


@pytest.mark.parametrize("record", PUBLIC, ids=lambda record: record.name)
def test_an_input_is_taken_or_refused_by_a_dgrr_error(record: Record) -> None:
    call = Call.of(record, Tape())
    found = []
    for i, name in enumerate(record.signature.inputs):
        for value in TENSORS:
            found += faults(record.name, name, lambda i=i, value=value: call({i: value}), value)
    assert not found, "\n".join(found)


NUMBERS = [
    (record, name)
    for record in RECORDS
    for name, kind in zip(record.signature.attributes, record.signature.kinds, strict=True)
    if kind.number
]


def test_attributes_that_are_numbers_are_found() -> None:
    """By their annotations, read here in another way."""
    found = {
        (record.name, name)
        for record in RECORDS
        for name, hint in get_type_hints(record.function).items()
        if name in record.signature.attributes and (hint is float or float in get_args(hint)) and name != "form"
    }
    assert {(record.name, name) for record, name in NUMBERS} == found
    assert len(found) > 30


@pytest.mark.parametrize(("record", "name"), NUMBERS, ids=[f"{record.name}-{name}" for record, name in NUMBERS])
@pytest.mark.parametrize("kind", [Tape, SymbolicTape])
def test_a_var_in_place_of_a_number_is_refused(record: Record, name: str, kind: type[Tape[Any]]) -> None:
    """Its gradient would be lost without a word."""
    tape = kind()
    call, learned = Call.of(record, tape), _entered(tape, np.float32(0.5))
    before = len(tape)
    with pytest.raises(
        GradientError, match=f"^{record.name}: argument '{name}': expected a number.*, got a Var, whose "
    ):
        call(**{name: learned})
    assert len(tape) == before


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_var_is_no_attribute_at_all(record: Record) -> None:
    tape: Tape[Any] = Tape()
    call, learned = Call.of(record, tape), tape.leaf(1.0)
    for name, kind in zip(record.signature.attributes, record.signature.kinds, strict=True):
        if not kind.number:
            with pytest.raises((DTypeError, ShapeError), match=f"argument '{name}': expected .*, got ."):
                call(**{name: learned})


WAYS = [
    (record, name, way)
    for record in RECORDS
    for name, way in record.instead.items()
]  # fmt: skip


@pytest.mark.parametrize(("record", "name", "way"), WAYS, ids=[f"{record.name}-{name}" for record, name, _ in WAYS])
def test_what_an_error_says_to_write_instead_does_the_same_with_a_gradient(record: Record, name: str, way: str) -> None:
    tape: Tape[Any] = Tape()
    call = Call.of(record, tape)
    defaults = {n: p.default for n, p in inspect.signature(record.function).parameters.items()}
    given = {**defaults, **call.attrs, **dict(zip(record.signature.inputs, call.inputs, strict=True))}
    given[name] = 0.7 if given[name] is None else float(given[name])
    expected = record(*call.inputs, **{**call.attrs, name: given[name]})
    learned = tape.leaf(np.float32(given[name]))
    got = eval(way, {"ops": ops, "np": np}, {**given, name: learned})
    assert got.numpy() == pytest.approx(expected.numpy(), rel=1e-5, abs=1e-6)
    assert tape.backward_dense(got.sum())[learned] is not None
    with pytest.raises(GradientError) as caught:
        call(**{name: learned})
    assert f"; write {way}, or give a number" in str(caught.value)


@pytest.mark.parametrize("one", [np.int64(1), np.uint8(1), np.array(1)])
def test_whole_numbers_are_those_of_operator_index(one: Any) -> None:
    x = Tape[Any]().leaf(np.arange(6.0).reshape(2, 3))
    assert ops.softmax(x, one).numpy().tobytes() == ops.softmax(x, 1).numpy().tobytes()
    assert ops.reduce_sum(x, (one,)).shape == (2,)
    assert ops.reshape(x, [3, one * 2]).shape == (3, 2)
    assert ops.narrow(x, one, one, axis=one).shape == (2, 1)
    assert ops.swapaxes(x, one, 0).shape == (3, 2)


@pytest.mark.parametrize("half", [np.float32(0.5), np.float64(0.5), np.array(0.5), np.float16(0.5)])
def test_numbers_may_be_numpys(half: Any) -> None:
    x = Tape[Any]().leaf(np.arange(3.0))
    assert ops.scale(x, half).numpy().tolist() == [0.0, 0.5, 1.0]
    assert ops.scale(x, half).tape.node(1).attrs == {"c": 0.5}


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: ops.swapaxes(x, 0.0, 0), DTypeError, "swapaxes: argument 'axis1': expected a whole number, got 0.0"),
        (lambda x: ops.softmax(x, "a"), DTypeError, "softmax: argument 'axis': expected a whole number, got 'a'"),
        (lambda x: ops.reduce_sum(x, 0.0), DTypeError,
         "reduce_sum: argument 'axis': expected a whole number, a tuple of whole numbers or None, got 0.0"),
        (lambda x: ops.reduce_sum(x, 0, keepdims=1), DTypeError,
         "reduce_sum: argument 'keepdims': expected True or False, got 1"),
        (lambda x: ops.scale(x, None), DTypeError, "scale: argument 'c': expected a number, got None"),
        (lambda x: ops.scale(x, np.zeros(2)), DTypeError,
         "scale: argument 'c': expected a number, got ndarray of shape (2,)"),
        (lambda x: ops.scale(x, 10**400), DomainError,
         "scale: argument 'c': expected a number that a float can hold, got 1"),
        (lambda x: ops.cross_entropy(x, [0, 1], ignore_index=10**30), DomainError,
         "cross_entropy: argument 'ignore_index': expected a number of at most 64 bits"),
        (lambda x: ops.broadcast_to(x, (2**62, 2, 3)), ShapeError,
         "broadcast_to: expected a result of less than 2**63 bytes, got shape (4611686018427387904, 2, 3)"),
        (lambda x: ops.scale(x, x.sum()), GradientError,
         "scale: argument 'c': expected a number, got a Var, whose gradient would be lost; write x * c, or give a"),
        (lambda x: ops.layer_norm(x, eps=x.sum()), GradientError,
         "layer_norm: argument 'eps': expected a number, got a Var, whose gradient would be lost; give a number"),
        (lambda x: ops.scale(x), DTypeError, "scale: missing a required argument: 'c'"),
        (lambda x: ops.scale(x, 1.0, d=2.0), DTypeError, "scale: got an unexpected keyword argument 'd'"),
        (lambda x: ops.max_pool2d(x), DTypeError, "max_pool2d: missing a required argument: 'kernel_size'"),
        (lambda x: ops.max_pool2d(x, 2, kernel_size=2), DTypeError,
         "max_pool2d: multiple values for argument 'kernel_size'"),
        (lambda x: ops.add(x, [[1.0], [1.0, 2.0]]), DTypeError,
         "add: argument 'b': expected an array of numbers, got list: "),
        (lambda x: ops.add(x, np.array([2**63], np.uint64)), DTypeError,
         "add: argument 'b': expected whole numbers that int64 holds, got 9223372036854775808"),
        (lambda x: x[:, ::0], ShapeError,
         "getitem: argument 'index': expected slices of whole numbers with a step other than 0, got slice(None, No"),
        (lambda x: x["a":], ShapeError, "expected slices of whole numbers with a step other than 0, got slice('a'"),
        (lambda x: ops.equal(x > 0.0, 2), DTypeError, "equal: argument 'b': expected True or False beside bool, got 2"),
    ],
)  # fmt: skip
def test_texts(call: Any, error: type[DgrrError], text: str) -> None:
    x = Tape[Any]().leaf(np.ones((2, 3)))
    with pytest.raises(error) as caught:
        call(x)
    assert text in str(caught.value)


class TestANumberBesideAMask:
    """It has the element type of the other branch, never that of the mask."""

    MASK = np.array([True, False])

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("zero", [0.0, 0, np.float64(0), np.float32(0), np.int8(0), False])
    def test_its_type_is_that_of_the_other_branch(self, dtype: type[Any], zero: Any) -> None:
        tape: Tape[Any] = Tape()
        x = tape.leaf(np.array([1.5, 2.5], dtype))
        for mask in (self.MASK, tape.const(self.MASK), AnyTensor.leaf(self.MASK)):
            left, right = ops.where(mask, x, zero), ops.where(mask, zero, x)
            assert left.dtype == right.dtype == dtype
            assert (left.numpy().tolist(), right.numpy().tolist()) == ([1.5, 0.0], [0.0, 2.5])
        grads = tape.backward_dense(ops.where(self.MASK, x, zero).sum())
        assert grads[x].numpy().tolist() == [1.0, 0.0]  # type: ignore[union-attr]

    def test_a_number_that_float32_rounds(self) -> None:
        x = AnyTensor.leaf(np.ones(2, np.float32))
        assert ops.where(self.MASK, x, 0.1).numpy()[1] == np.float32(0.1)
        assert ops.where(self.MASK, x, float("nan")).dtype == np.float32

    def test_two_numbers_have_no_type(self) -> None:
        mask = Tape[Any]().const(self.MASK)
        text = (
            "where: argument 'a': expected an array here or for 'b', got 0.0: nothing says the number's element type; "
            "write np.full((2,), 0.0, np.float32)"
        )
        with pytest.raises(DTypeError) as caught:
            ops.where(mask, 0.0, 1.0)
        assert str(caught.value) == text
        assert ops.where(mask, np.full((2,), 0.0, np.float32), 1.0).numpy().tolist() == [0.0, 1.0]

    def test_a_number_for_the_mask_is_a_bool(self) -> None:
        x = AnyTensor.leaf([1.0, 2.0])
        assert ops.where(True, x, 0.0).numpy().tolist() == [1.0, 2.0]
        with pytest.raises(DTypeError, match="where: argument 'condition': expected True or False beside bool, got 2"):
            ops.where(2, x, 0.0)

    def test_a_number_does_not_take_the_type_of_indices(self) -> None:
        with pytest.raises(DTypeError, match="take: argument 'x': expected an array here, got 5.0: nothing says"):
            ops.take(5.0, AnyTensor.leaf([0, 1]))
