"""The update law: exit code 5, what is said about it, and which kind of bug it was."""

import math
import random
import struct
from fractions import Fraction

import pytest

LR, SEED = 0.01, 42


def bits(value: float) -> str:
    return f"{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}"


def write(path, data):
    path.write_bytes(data)
    return path


def test_a_wrong_update_is_shown_in_decimal_hex_and_bits(dgrr, ref, tmp_path):
    run = ref.train(4, LR, SEED)
    right = run[3].w_after
    wrong = math.nextafter(math.nextafter(right, 9), 9)
    path = write(tmp_path / "t", ref.trace_bytes([*run[:3], run[3]._replace(w_after=wrong)]))
    for command in (["validate", path], ["replay", "--step", 0, "--trace", path]):
        answer = dgrr(*command)
        assert answer.code == 5
        assert "step 3: w_after is not w_before - learning_rate*grad_w" in answer.err
        for value in (right, wrong):
            assert " ".join([repr(value), value.hex(), bits(value)]) in " ".join(answer.err.split())
        assert "2 ULP, allowed 0" in answer.err
        assert "update: gradients and loss are those of seed 42" in answer.err


def test_replay_allows_the_distance_that_it_is_given(dgrr, ref, tmp_path):
    run = ref.train(4, LR, SEED)
    wrong = math.nextafter(math.nextafter(run[3].b_after, 9), 9)
    path = write(tmp_path / "t", ref.trace_bytes([*run[:3], run[3]._replace(b_after=wrong)]))
    assert dgrr("replay", "--step", 3, "--trace", path, "--ulp-tol", 1).code == 5
    answer = dgrr("replay", "--step", 3, "--trace", path, "--ulp-tol", 2)
    assert answer.code == 0
    assert "2 ULP" in answer.out
    for command in ("inspect", "rollback"):
        assert dgrr(command, "--step", 3, "--trace", path).code == 5
    assert dgrr("compare", "--a", path, "--b", path, "--ulp-tol", 9).code == 5


def fma_steps(ref):
    """Yield steps where one rounding of the update gives another value than two."""
    generator = random.Random(0)
    while True:
        x, y, w = (generator.uniform(-2, 2) for _ in range(3))
        record = ref.step(0, w, 0.25, x, y, LR)
        fused = float(Fraction(w) - Fraction(LR) * Fraction(record.grad_w))
        if fused != record.w_after:
            yield record, fused


def test_a_contracted_update_is_told(checked, ref):
    record, fused = next(fma_steps(ref))
    answer = checked(ref.trace_bytes([record._replace(w_after=fused)]))
    assert answer.code == 5
    assert "yes: a fused multiply-add gives the stored value, so the writer contracted the update" in answer.err


def test_what_no_fma_explains_is_told(checked, ref):
    record, fused = next(fma_steps(ref))
    answer = checked(ref.trace_bytes([record._replace(w_after=record.w_after + 0.5)]))
    assert answer.code == 5
    assert f"no: a fused multiply-add gives {fused!r}" in answer.err


def test_an_update_that_overflows(checked, ref):
    record = ref.Rec(0, -1.7e308, 0.0, 1.0, 2.0, 1.0, -3e307, 1.0)
    answer = checked(ref.trace_bytes([record], lr=1.7e308))
    assert answer.code == 5
    assert "no: it overflows" in answer.err
    assert "inf" in answer.err


def diagnosed(checked, ref, record, change):
    answer = checked(ref.trace_bytes([record._replace(**change, w_after=9.0)]))
    assert answer.code == 5
    return answer.err


def test_data_gradient_and_update_bugs_are_told_apart(checked, ref):
    (x, y), record = ref.samples(SEED, 1)[0], ref.train(1, LR, SEED)[0]
    assert "diagnosis   update: gradients and loss are those of seed 42" in diagnosed(checked, ref, record, {})
    other = ref.step(0, 0.0, 0.0, x + 0.5, y, LR)
    assert f"diagnosis   data: the recorded gradients belong to x = {other.grad_w / other.grad_b!r}, seed 42" in (
        diagnosed(checked, ref, other, {})
    )
    doubled = {"grad_w": 2 * record.grad_w, "grad_b": 2 * record.grad_b}
    assert f"diagnosis   gradient: seed 42 gives x = {x!r}, y = {y!r}, and these grad_w = {record.grad_w!r}" in (
        diagnosed(checked, ref, record, doubled)
    )


def test_corruption_is_told_apart_from_bugs(checked, ref):
    data = bytearray(ref.trace_bytes(ref.train(1, LR, SEED)))
    data[64 + 47] ^= 1  # w_after
    answer = checked(bytes(data))
    assert answer.code == 3
    assert "diagnosis   corruption: record_crc32 does not fit either" in answer.err


def test_gradients_that_do_not_tell_x_are_not_called_data(checked, ref):
    x, y = ref.samples(SEED, 1)[0]
    start = ref.step(0, 0.0, y, x, y, LR)
    assert start.grad_b == 0.0
    err = diagnosed(checked, ref, start, {})
    assert "diagnosis   update:" in err


def test_the_update_is_not_judged_by_a_broken_header(checked, ref):
    data = bytearray(ref.trace_bytes(ref.train(3, LR, SEED)))
    data[30] ^= 1  # learning_rate
    answer = checked(bytes(data))
    assert answer.code == 3
    assert "header_crc32" in answer.err
    assert "w_after" not in answer.err


@pytest.mark.parametrize("created_at", [0, -1, 2**63 - 1])
def test_any_creation_time_is_valid(checked, ref, created_at):
    assert checked(ref.trace_bytes(ref.train(2, LR, SEED), created_at=created_at)).code == 0
