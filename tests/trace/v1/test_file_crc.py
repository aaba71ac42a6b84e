"""The closed form of the file CRC."""

import zlib

from hypothesis import given, strategies as st

from dgrr.trace.v1.file_crc import valid_records_crc32


@given(st.lists(st.binary(min_size=64, max_size=64), max_size=40))
def test_the_crc_of_valid_records_depends_on_their_number_alone(bodies):
    records = b"".join(body + zlib.crc32(body).to_bytes(4, "little") + bytes(4) for body in bodies)
    assert valid_records_crc32(len(bodies)) == zlib.crc32(records)
