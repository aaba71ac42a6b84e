"""The compiled loop against plain Python, bit for bit."""

import math
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dgrr.base import crc32, kernel_cache, ulp
from dgrr.trace.v1 import compiled
from dgrr.trace.v1.compiled import gradients, sample, train_block, updated

SEEDS = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize(("steps", "lr", "seed"), [(8195, 0.01, 42), (700, 0.3, 2**64 - 1), (300, 1e-5, 0)])
def test_a_run_is_the_reference_run(dgrr, ref, tmp_path, steps, lr, seed):
    out = tmp_path / "run.dgrr"
    assert dgrr("train", "--steps", steps, "--lr", lr, "--seed", seed, "--out", out, "--created-at", 7).code == 0
    assert out.read_bytes() == ref.trace_bytes(ref.train(steps, lr, seed), seed=seed, lr=lr, created_at=7)


def test_splitmix64_gives_its_published_values(ref):
    # Vigna's splitmix64.c with seed 1234567, as listed by Rosetta Code.
    assert ref.splitmix64(1234567, 3) == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(seed=SEEDS, step=st.integers(0, 300))
def test_any_sample_is_reached_at_once(ref, seed, step):
    assert sample(seed, step) == ref.samples(seed, step + 1)[step]


@settings(max_examples=50)
@given(first=SEEDS, count=st.integers(1, 300))
def test_record_crcs_are_zlibs_at_any_step_number(first, count):
    records, state = np.zeros((count, 9), np.uint64), np.array([0.5, -0.25, 0.0, 0.0])
    assert train_block(records, first, 42, 0.01, state) == count
    for i, record in enumerate(records):
        assert int(record[0]) == (first + i) % 2**64
        assert int(record[8]) == zlib.crc32(record[:8].astype("<u8").tobytes())


FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(w=FINITE, b=FINITE, x=FINITE, y=FINITE, lr=FINITE)
def test_model_and_update_round_once_an_operation(ref, w, b, x, y, lr):
    expected = ref.step(0, w, b, x, y, lr)
    grad_w, grad_b, loss = gradients(w, b, x, y)
    got = (grad_w, grad_b, updated(w, lr, grad_w), updated(b, lr, grad_b), loss)
    wanted = (expected.grad_w, expected.grad_b, expected.w_after, expected.b_after, expected.loss)
    for value, reference in zip(got, wanted, strict=True):
        assert struct.pack("<d", value) == struct.pack("<d", reference) or (value != value and reference != reference)


def test_the_update_is_not_contracted():
    # 1 - (1+u)(1-u) is u^2 = 2^-104 in one rounding, 0 in two.
    assert updated(1.0, 1 + 2.0**-52, 1 - 2.0**-52) == 0.0


def test_the_update_keeps_the_sign_of_zero():
    assert math.copysign(1.0, updated(-0.0, 0.01, 0.0)) == -1.0


def test_the_gradient_is_rounded_as_the_page_says():
    smallest = 5e-324
    # (2*1.5)*x is three times the smallest number; 2*(1.5*x) rounds to four.
    assert gradients(0.0, 1.5, smallest, 0.0)[0] == 3 * smallest


def first_step_where(condition):
    return next(step for step in range(100) if condition(abs(sample(42, step)[0])))


@pytest.mark.parametrize(
    ("field", "step", "error", "lr"),
    [
        ("w_after", first_step_where(lambda x: x > 1.5), 2.0, 3e307),
        ("b_after", first_step_where(lambda x: x < 0.5), 2.0, 5e307),
        ("loss", 0, 1e160, 0.01),
    ],
)
def test_each_of_the_three_results_is_looked_at(ref, field, step, error, lr):
    x, y = ref.samples(42, step + 1)[step]
    b = y + error
    results = ref.step(step, 0.0, b, x, y, lr)._asdict()
    assert [name for name, value in results.items() if not math.isfinite(value)] == [field]
    records, state = np.zeros((1, 9), np.uint64), np.array([0.0, b, 0.0, 0.0])
    assert train_block(records, step, 42, lr, state) == 0


def test_the_loss_total_is_a_kahan_sum(ref):
    records, state = np.zeros((5000, 9), np.uint64), np.zeros(4)
    train_block(records, 0, 42, 1e-6, state)
    total = carry = naive = 0.0
    losses = [record.loss for record in ref.train(5000, 1e-6, 42)]
    for loss in losses:
        term = loss - carry
        grown = total + term
        total, carry = grown, (grown - total) - term
        naive += loss
    assert state[2] == total
    assert state[3] == carry
    assert abs(total - math.fsum(losses)) < abs(naive - math.fsum(losses))


@pytest.mark.parametrize("value", [math.inf, math.nan, 1e200])
def test_a_value_that_is_not_finite_stops_the_block(value):
    records, state = np.zeros((4, 9), np.uint64), np.array([value, 0.25, 3.0, 0.0])
    assert train_block(records, 9, 42, 0.01, state) == 0
    assert not records.any()
    assert np.array_equal(state, [value, 0.25, 3.0, 0.0], equal_nan=True)


@given(FINITE, FINITE)
def test_compiled_code_counts_ulps_by_the_one_definition(a, b):
    assert int(compiled._ulps(a, b)) == ulp.ulp_distance(a, b)


def test_another_definition_of_ulps_is_another_folder_of_compiled_code():
    stamp = zlib.crc32(b"".join(Path(module.__file__).read_bytes() for module in (crc32, ulp)))
    assert kernel_cache.folder() / f"v1-{stamp:08x}" == compiled.FOLDER
