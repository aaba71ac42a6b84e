"""ULP distances, and the closed form of the file CRC."""

import math
import struct
import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dgrr.trace.v1.file_crc import valid_records_crc32
from dgrr.trace.v1.ulp import ulp_distance, ulp_distances

NUMBERS = st.floats(allow_nan=False)


@given(NUMBERS, NUMBERS)
def test_distance_is_symmetric_and_zero_only_for_equal_numbers(a, b):
    assert ulp_distance(a, b) == ulp_distance(b, a)
    assert (ulp_distance(a, b) == 0) == (a == b)


@given(st.lists(NUMBERS, min_size=3, max_size=3))
def test_distances_add_up_along_the_line(values):
    low, middle, high = sorted(values)
    assert ulp_distance(low, high) == ulp_distance(low, middle) + ulp_distance(middle, high)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_neighbours_are_at_distance_one(value):
    assert ulp_distance(value, math.nextafter(value, math.inf)) == 1
    assert ulp_distance(value, math.nextafter(value, -math.inf)) == 1


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_distance_counts_the_bits_of_one_sign(a, b):
    def number(bits):
        return struct.unpack("<d", struct.pack("<Q", bits))[0]

    assert ulp_distance(number(a), number(b)) == abs(a - b)
    assert ulp_distance(number(a | 2**63), number(b)) == a + b


def test_zeros_coincide_and_the_farthest_fit():
    assert ulp_distances(np.array([0.0, -math.inf]), np.array([-0.0, math.inf])).tolist() == [
        0,
        2 * 0x7FF << 52,
    ]


@given(st.lists(st.binary(min_size=64, max_size=64), max_size=40))
def test_the_crc_of_valid_records_depends_on_their_number_alone(bodies):
    records = b"".join(body + zlib.crc32(body).to_bytes(4, "little") + bytes(4) for body in bodies)
    assert valid_records_crc32(len(bodies)) == zlib.crc32(records)
