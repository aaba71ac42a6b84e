"""The state digest: against a second implementation of its byte string, and on states that must differ."""

import hashlib
import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime.step.state_digest import state_digest
from dgrr.tape.errors import DTypeError

pytestmark = pytest.mark.quick

Array = npt.NDArray[Any]
Arrays = dict[str, Array]

FORMATS = {"float32": "<f", "float64": "<d", "int64": "<q", "uint8": "<B", "bool": "<?"}
NANS = {"float32": bytes.fromhex("0000c07f"), "float64": bytes.fromhex("000000000000f87f")}


def element_bytes(dtype: str, value: Any) -> bytes:
    return NANS[dtype] if value != value else struct.pack(FORMATS[dtype], value)


def sized(content: bytes) -> bytes:
    return len(content).to_bytes(8, "little") + content


def digest_by_the_page(params: Arrays, state: Arrays) -> str:
    """The documented byte string, put together element by element."""
    text = b"dgrr state 1\n"
    for arrays in (params, state):
        text += len(arrays).to_bytes(8, "little")
        for name, array in arrays.items():
            dtype = str(array.dtype.newbyteorder("="))
            text += sized(name.encode("utf-8")) + sized(dtype.encode("ascii"))
            text += b"".join(size.to_bytes(8, "little") for size in (array.ndim, *array.shape))
            elements = (array[index].item() for index in np.ndindex(array.shape))
            text += sized(b"".join(element_bytes(dtype, element) for element in elements))
    return hashlib.sha256(text).hexdigest()


def wide(bits: int) -> Array:
    return np.array([bits], np.uint64).view(np.float64)


def narrow(bits: int) -> Array:
    return np.array([bits], np.uint32).view(np.float32)


STATES: list[tuple[Arrays, Arrays]] = [
    ({}, {}),
    ({"w": np.zeros((2, 3), np.float32)}, {"step": np.array(7)}),
    ({"w": np.zeros((3, 2), np.float32)}, {"step": np.array(7)}),
    ({"w": np.zeros((2, 3), np.float64)}, {"step": np.array(7)}),
    ({"w": np.array([[1.5, -0.0], [np.inf, 1e-45]], np.float32), "ü": np.zeros((0, 4))}, {}),
    ({}, {"w": np.array([[1.5, -0.0], [np.inf, 1e-45]], np.float32), "ü": np.zeros((0, 4))}),
    (
        {"w": np.array([np.nan, 1.0, -np.nan])},
        {"flags": np.array([True, False]), "u": np.arange(3, dtype=np.uint8)},
    ),
    ({"w": np.arange(24.0).reshape(2, 3, 4)}, {"m": np.arange(24.0).reshape(2, 3, 4).T}),
]


@pytest.mark.parametrize(("params", "state"), STATES)
def test_the_documented_byte_string(params: Arrays, state: Arrays) -> None:
    assert state_digest(params, state) == digest_by_the_page(params, state)


def test_the_documented_states_differ() -> None:
    assert len({state_digest(*state) for state in STATES}) == len(STATES)


def test_a_fixed_digest() -> None:
    entry = sized(b"w") + sized(b"float32") + struct.pack("<QQ", 1, 2) + sized(bytes.fromhex("0000803f00000080"))
    text = b"dgrr state 1\n" + struct.pack("<Q", 1) + entry + struct.pack("<Q", 0)
    assert state_digest({"w": np.array([1.0, -0.0], np.float32)}, {}) == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": np.zeros(2)}, {"b": np.zeros(2)}),
        ({"a": np.zeros(1)}, {"a": -np.zeros(1)}),
        ({"a": np.zeros(2, np.int64)}, {"a": np.zeros(2)}),
        ({"a": np.zeros((0, 2))}, {"a": np.zeros((2, 0))}),
        ({"a": np.zeros(()), "b": np.ones(())}, {"b": np.ones(()), "a": np.zeros(())}),
        ({"a": np.zeros(1), "b": np.zeros(0)}, {"a": np.zeros(0), "b": np.zeros(1)}),
        ({"ab": np.zeros(1)}, {"a": np.zeros(1), "b": np.zeros(1)}),
    ],
)
def test_different_states_differ(one: Arrays, other: Arrays) -> None:
    assert state_digest(one, {}) != state_digest(other, {})
    assert state_digest({}, one) != state_digest({}, other)
    assert state_digest(one, {}) != state_digest({}, one)


def test_every_bit_counts() -> None:
    base = np.array([1.0, 2.0], np.float32)
    flipped = [(base.view(np.uint32) ^ np.array([1 << k, 0], np.uint32)).view(np.float32) for k in range(32)]
    assert len({state_digest({"w": array}, {}) for array in (base, *flipped)}) == 33


@pytest.mark.parametrize("bits", [0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 0x7FC12345])
def test_nans_of_float32_are_one(bits: int) -> None:
    array = narrow(bits)
    before = array.tobytes()
    assert state_digest({"w": array}, {}) == digest_by_the_page({"w": np.array([np.nan], np.float32)}, {})
    assert array.tobytes() == before


@pytest.mark.parametrize("bits", [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, (1 << 64) - 1])
def test_nans_of_float64_are_one(bits: int) -> None:
    assert state_digest({"w": wide(bits)}, {}) == digest_by_the_page({"w": np.array([np.nan])}, {})


def test_layout_and_byte_order_do_not_count() -> None:
    array = np.random.default_rng(0).standard_normal((6, 4))
    array[0, 0] = np.nan
    layouts = [np.asfortranarray(array), np.repeat(array, 2, 0)[::2], array.astype(">f8")]
    for layout in layouts:
        assert state_digest({"w": layout}, {}) == state_digest({"w": array}, {})


@pytest.mark.parametrize("dtype", ["float16", "complex64", "object", "U3"])
def test_other_dtypes_are_refused(dtype: str) -> None:
    with pytest.raises(DTypeError) as caught:
        state_digest({}, {"w": np.zeros(1, dtype)})
    expected = "expected float32, float64, bool or integers"
    assert str(caught.value) == f"state_digest: 'w': {expected}, got {np.dtype(dtype)}; use astype"
