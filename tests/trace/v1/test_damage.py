"""Byte surgery: what a disk, a crash or a forger can do to a trace, and the answer."""

import struct
import zlib

import pytest

pytestmark = pytest.mark.long

LR, SEED = 0.01, 42


@pytest.fixture
def run(ref):
    """The records of five steps."""
    return ref.train(5, LR, SEED)


def patch(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


def seal_header(data: bytes) -> bytes:
    """Recompute header_crc32 over bytes 0..35."""
    return patch(data, 36, struct.pack("<I", zlib.crc32(data[:36])))


def test_every_truncation_is_invalid(checked, golden, ref, run):
    for data in (golden, ref.trace_bytes(run)):
        for length in range(len(data)):
            assert checked(data[:length]).code == 3, length


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (0, "truncated header, the file has 0 bytes"),
        (5, "truncated header, the file has 5 bytes"),
        (63, "truncated header: the file has 63 bytes, a header has 64"),
        (64, "truncated: the records of steps 0 and up are missing (64 bytes, expected 424 for 5 steps)"),
        (64 + 2 * 72, "truncated: the records of steps 2 and up are missing"),
        (64 + 2 * 72 + 10, "torn record: step 2 has 10 of 72 bytes"),
    ],
)
def test_truncation_is_told_by_its_place(checked, ref, run, length, text):
    assert text in checked(ref.trace_bytes(run)[:length]).err


def test_trailing_bytes(checked, ref, run):
    data = ref.trace_bytes(run)
    assert "trailing bytes: 3 after the last record (427 bytes, expected 424" in checked(data + bytes(3)).err
    again = checked(data + data[-72:])
    assert again.code == 3
    assert "trailing bytes: 72 after" in again.err


def test_every_bit_flip_is_found_but_for_the_creation_time(checked, golden):
    passed = []
    for bit in range(8 * len(golden)):
        flipped = bytearray(golden)
        flipped[bit // 8] ^= 1 << bit % 8
        answer = checked(bytes(flipped))
        assert answer.code in (0, 3)
        if answer.code == 0:
            passed.append(bit)
    assert passed == list(range(8 * 40, 8 * 48))


@pytest.mark.parametrize(
    ("offset", "new", "text"),
    [
        (0, b"DGRX", "it begins with b'DGRX', expected b'DGRR'"),
        (4, b"\x03\x00", "unsupported version 3, expected 1 or 2"),
        (6, b"\x01\x00", "pad0 is 0x0001, expected zero"),
        (50, b"\x01", "reserved bytes 48..63 are 00000100000000000000000000000000, expected zeros"),
        (16, struct.pack("<Q", 2**64 - 1), "step_count is 18446744073709551615, more than a file can hold"),
        (24, struct.pack("<d", -0.01), "learning_rate is -0.01, expected finite and above 0"),
        (24, struct.pack("<d", 0.0), "learning_rate is 0.0, expected finite and above 0"),
        (24, struct.pack("<d", float("nan")), "learning_rate is nan, expected finite and above 0"),
        (32, b"abcd", "file_crc32 is 64636261, bytes 64 and up give 8b4ad361: corruption"),
    ],
)
def test_a_wrong_header_with_a_right_crc(checked, ref, run, offset, new, text):
    answer = checked(seal_header(patch(ref.trace_bytes(run), offset, new)))
    assert answer.code == 3
    assert text in answer.err


def test_a_wrong_header_crc(checked, golden):
    answer = checked(patch(golden, 8, b"\x2b"))
    assert answer.code == 3
    assert "header_crc32 is 08aa6bca, bytes 0..35 give" in answer.err


def reseal(ref, records: bytes) -> bytes:
    return ref.pack_file(records, seed=SEED, lr=LR)


def test_swapped_repeated_and_missing_records_with_right_crcs(checked, ref, run):
    packed = [ref.pack_record(record) for record in run]
    for order in ([0, 2, 1, 3, 4], [0, 1, 1, 2, 3, 4], [0, 1, 3, 4], [4, 3, 2, 1, 0], [1, 2, 3, 4]):
        answer = checked(reseal(ref, b"".join(packed[i] for i in order)))
        assert answer.code == 3
        assert "records are missing, repeated or moved" in answer.err
        renumbered = [run[old]._replace(step_id=new) for new, old in enumerate(order)]
        answer = checked(ref.trace_bytes(renumbered))
        if order == [1, 2, 3, 4]:  # a run that starts elsewhere, as the golden one does
            assert answer.code == 0
        else:
            assert answer.code == 3
            assert "w_before is not w_after of step" in answer.err
            assert "b_before is not b_after of step" in answer.err


@pytest.mark.parametrize("name", ["w", "b"])
def test_a_chain_broken_in_one_parameter(checked, ref, run, name):
    x, y = ref.samples(SEED, 2)[1]
    start = {"w": run[0].w_after, "b": run[0].b_after}
    start[name] += 0.5
    answer = checked(ref.trace_bytes([run[0], ref.step(1, start["w"], start["b"], x, y, LR)]))
    assert answer.code == 3
    assert answer.err.count("step 1: ") == 1
    assert f"step 1: {name}_before is not {name}_after of step 0" in answer.err


def test_swapped_records_leave_the_file_crc_unchanged(ref, run):
    packed = [ref.pack_record(record) for record in run]
    assert zlib.crc32(b"".join(packed)) == zlib.crc32(b"".join(reversed(packed)))


@pytest.mark.parametrize("field", ["w_before", "b_before", "grad_w", "grad_b", "w_after", "b_after", "loss"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_not_finite_with_right_crcs(checked, ref, run, field, value):
    run[4] = run[4]._replace(**{field: value})
    answer = checked(ref.trace_bytes(run))
    assert answer.code == 3
    assert f"step 4: {field} is {value!r}; expected finite values" in answer.err


def test_a_wrong_loss(checked, ref, run):
    for loss, text in ((-1.0, "loss is -1.0, expected 0 or more"), (7.0, "loss is not (grad_b/2)^2")):
        run[4] = run[4]._replace(loss=loss)
        answer = checked(ref.trace_bytes(run))
        assert answer.code == 3
        assert f"step 4: {text}" in answer.err
    assert "diagnosis   loss: seed 42 gives" in answer.err


def test_a_wrong_record_crc_and_padding(checked, ref, run):
    packed = bytearray(b"".join(ref.pack_record(record) for record in run))
    packed[72 + 64] ^= 1
    packed[72 + 68] = 5
    answer = checked(reseal(ref, bytes(packed)))
    assert answer.code == 3
    assert "step 1: record_crc32 is" in answer.err
    assert "bytes 0..63 of the record give" in answer.err
    assert "step 1: pad0 is 0x00000005, expected zero" in answer.err


def test_the_first_failure_in_file_order_decides(checked, ref, run):
    late = run[3]._replace(w_after=run[3].w_after + 1)
    early = run[1]._replace(loss=7.0)
    update_first = [*run[:3], late, run[4]]
    assert checked(ref.trace_bytes(update_first)).code == 5
    assert checked(ref.trace_bytes([run[0], early, *update_first[2:]])).code == 3
    bad_crc = patch(ref.trace_bytes(update_first), 32, b"abcd")
    assert checked(seal_header(bad_crc)).code == 3


def test_failures_are_listed_up_to_a_cap_and_counted(checked, ref):
    records = [record._replace(loss=7.0) for record in ref.train(50, LR, SEED)]
    answer = checked(ref.trace_bytes(records))
    assert answer.err.count("loss is not") == 20
    assert "... and 30 more records that break rules" in answer.err


def test_rules_hold_across_blocks(checked, ref):
    records = ref.train(8200, LR, SEED)
    assert checked(ref.trace_bytes(records)).code == 0
    moved = [*records[:8192], records[8193]._replace(step_id=8192)]
    answer = checked(ref.trace_bytes(moved))
    assert answer.code == 3
    assert "step 8192: w_before is not w_after of step 8191" in answer.err


def test_zeroed_bytes(checked, ref, run):
    data = ref.trace_bytes(run)
    for offset in range(len(data)):
        zeroed = patch(data, offset, b"\0")
        if zeroed != data:
            assert checked(zeroed).code == (0 if 40 <= offset < 48 else 3), offset
