"""All that numba compiles for version 1: CRC, data, model, the training loop and the scan of the validator.

It stands in one file, apart from the order of floats (`dgrr.base.ulp`) and the register of CRC-32 (`dgrr.base.crc32`),
because numba's cache notices a change of the file that defines a function, not of the files whose functions it calls.
Nothing here uses fastmath: every operation rounds once, in the order written, and no multiplication is contracted with
an addition.
"""

import math
import zlib
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numba import config, njit
from numpy.typing import NDArray

from ...base import crc32, kernel_cache, ulp

Word: TypeAlias = np.uint64
Int: TypeAlias = int | np.uint64
"""What callers give where compiled code takes a word."""
Words: TypeAlias = NDArray[np.uint64]
"""Records as an array (n, 9) of native words; word 8 is record_crc32 with, in its upper half, the padding."""

_inlined = njit(forceinline=True)


_TEXTS = b"".join(Path(str(module.__file__)).read_bytes() for module in (crc32, ulp))

FOLDER = kernel_cache.folder() / f"v1-{zlib.crc32(_TEXTS):08x}"
"""Where numba keeps what is compiled below: another folder for other modules of `base`, whose changes it does not
notice."""

_settings: Any = config  # its attributes are made at run time, out of sight of type checkers
_settings.CACHE_DIR, _caller_s = str(FOLDER), _settings.CACHE_DIR
"""What was set before is set again at the end of this file."""

CACHED = kernel_cache.can_be_written()
"""Without a folder, numba would refuse to compile what asks for a cache."""

# --- bits ---------------------------------------------------------------------------------------------------

_LOW_HALF = Word(0xFFFFFFFF)

_ordered = _inlined(ulp.ordered)


@_inlined
def _bits(value: float) -> Word:
    return np.float64(value).view(np.uint64)


@_inlined
def _float(bits: Word) -> float:
    return np.uint64(bits).view(np.float64)


@_inlined
def _is_finite(bits: Word) -> bool:
    return bool((bits >> Word(52)) & Word(0x7FF) != Word(0x7FF))


@_inlined
def _ulps(a: float, b: float) -> Word:
    u, v = _ordered(_bits(a)), _ordered(_bits(b))
    return Word(u - v if u > v else v - u)


# --- CRC-32 -------------------------------------------------------------------------------------------------

_T = crc32.TABLES
_feed, _feed_two = _inlined(crc32.feed), _inlined(crc32.feed_two)


@_inlined
def _byte(word: Word, index: int) -> Word:
    return (word >> Word(8 * index)) & Word(0xFF)


@_inlined
def _skip_two(crc: Word) -> Word:
    """Feed 16 zero bytes."""
    return Word(_T[15, _byte(crc, 0)] ^ _T[14, _byte(crc, 1)] ^ _T[13, _byte(crc, 2)] ^ _T[12, _byte(crc, 3)])


@_inlined
def _record_crc(record: Words) -> Word:
    """Return the CRC-32 of a record's first eight words, as little-endian bytes."""
    crc = _feed_two(record[0], record[1], _LOW_HALF)
    crc = _feed_two(record[2], record[3], crc)
    crc = _feed_two(record[4], record[5], crc)
    return _feed_two(record[6], record[7], crc) ^ _LOW_HALF


# --- data and model -----------------------------------------------------------------------------------------

_GAMMA = Word(0x9E3779B97F4A7C15)


@_inlined
def _uniform(state: Word) -> float:
    """Return SplitMix64's output for a state as a float64 in [0, 1) (Steele, Lea and Flood, 2014)."""
    z = (state ^ (state >> Word(30))) * Word(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> Word(27))) * Word(0x94D049BB133111EB)
    return float((z ^ (z >> Word(31))) >> Word(11)) * 2.0**-53


@njit("UniTuple(float64, 2)(uint64, uint64)", cache=CACHED, forceinline=True)
def sample(seed: Int, step: Int) -> tuple[float, float]:
    """Return (x, y) of a step. The generator's state is a counter, so any step is reached at once."""
    state = seed + (Word(2) * step + Word(1)) * _GAMMA
    x = 4.0 * _uniform(state) - 2.0
    return x, (2.0 * x + 1.0) + 0.1 * (_uniform(state + _GAMMA) - 0.5)


@njit("UniTuple(float64, 3)(float64, float64, float64, float64)", cache=CACHED, forceinline=True)
def gradients(w: float, b: float, x: float, y: float) -> tuple[float, float, float]:
    """Return (grad_w, grad_b, loss) of the squared error of `w*x + b` against `y`."""
    e = (w * x + b) - y
    return (2.0 * e) * x, 2.0 * e, e * e


@njit("float64(float64, float64, float64)", cache=CACHED, forceinline=True)
def updated(value: float, learning_rate: float, gradient: float) -> float:
    """Return a parameter after one step of plain SGD: two roundings."""
    return value - learning_rate * gradient


@_inlined
def _kahan_add(total: float, carry: float, value: float) -> tuple[float, float]:
    """Add to a compensated sum; return the new total and what rounding took from it (Kahan, 1965)."""
    term = value - carry
    grown = total + term
    return grown, (grown - total) - term


# --- training -----------------------------------------------------------------------------------------------


@njit("int64(uint64[:, ::1], uint64, uint64, float64, float64[::1])", cache=CACHED)
def train_block(records: Words, first: Int, seed: Int, learning_rate: float, state: NDArray[np.float64]) -> int:
    """Fill `records` with the steps from `first` on; return how many were filled.

    `state` is (w, b, total of the losses, its Kahan carry) and is brought up to date. Fewer records than
    there is room for are filled when a step gives a value that is not finite; that step changes nothing.

    The CRC is linear, so parts of it are taken over instead of computed again: the upper seven bytes of the
    step change every 256 steps, and w_after, b_after stand again in the next record as w_before, b_before.
    """
    w, b, total, carry = state[0], state[1], state[2], state[3]
    done = len(records)
    crc_of_before = _feed_two(_bits(w), _bits(b), Word(0))
    crc_of_page = _feed(first & ~Word(0xFF), _LOW_HALF)
    for i in range(len(records)):
        step = first + Word(i)
        x, y = sample(seed, step)
        grad_w, grad_b, loss = gradients(w, b, x, y)
        w_after, b_after = updated(w, learning_rate, grad_w), updated(b, learning_rate, grad_b)
        if not (math.isfinite(w_after) and math.isfinite(b_after) and math.isfinite(loss)):
            done = i
            break
        if _byte(step, 0) == 0:
            crc_of_page = _feed(step, _LOW_HALF)
        crc_of_after = _feed_two(_bits(w_after), _bits(b_after), Word(0))
        crc = _skip_two(crc_of_page ^ _T[7, _byte(step, 0)]) ^ crc_of_before
        crc = _skip_two(_feed_two(_bits(grad_w), _bits(grad_b), crc)) ^ crc_of_after
        record = records[i]
        record[0] = step
        record[1], record[2] = _bits(w), _bits(b)
        record[3], record[4] = _bits(grad_w), _bits(grad_b)
        record[5], record[6] = _bits(w_after), _bits(b_after)
        record[7] = _bits(loss)
        record[8] = _feed(_bits(loss), crc) ^ _LOW_HALF
        total, carry = _kahan_add(total, carry, loss)
        w, b, crc_of_before = w_after, b_after, crc_of_after
    state[0], state[1], state[2], state[3] = w, b, total, carry
    return done


# --- validation ---------------------------------------------------------------------------------------------

# Bits of a set of broken rules.
RECORD_CRC, PAD, STEP_ID, CHAIN_W, CHAIN_B = 1, 2, 4, 8, 16
NOT_FINITE, NEGATIVE_LOSS, UPDATE_W, UPDATE_B, LOSS = 32, 64, 128, 256, 512


@_inlined
def _form_rules(record: Words, step: Word, w_expected: Word, b_expected: Word) -> int:
    """Return the broken rules that need no arithmetic, as a set of bits."""
    broken = 0
    if _record_crc(record) != record[8] & _LOW_HALF:
        broken |= RECORD_CRC
    if record[8] > _LOW_HALF:
        broken |= PAD
    if record[0] != step:
        broken |= STEP_ID
    if record[1] != w_expected:
        broken |= CHAIN_W
    if record[2] != b_expected:
        broken |= CHAIN_B
    for k in range(1, 8):
        if not _is_finite(record[k]):
            broken |= NOT_FINITE
    return broken


@_inlined
def _value_rules(record: Words, learning_rate: float, ulp_tol: Int) -> int:
    """Return the broken rules about the values of a record whose values are finite, as a set of bits."""
    broken = 0
    grad_w, grad_b, loss = _float(record[3]), _float(record[4]), _float(record[7])
    if loss < 0.0:
        broken |= NEGATIVE_LOSS
    if _ulps(updated(_float(record[1]), learning_rate, grad_w), _float(record[5])) > ulp_tol:
        broken |= UPDATE_W
    if _ulps(updated(_float(record[2]), learning_rate, grad_b), _float(record[6])) > ulp_tol:
        broken |= UPDATE_B
    if _bits((0.5 * grad_b) * (0.5 * grad_b)) != record[7]:
        broken |= LOSS
    return broken


@_inlined
def _follows_seed(record: Words, step: Word, seed: Int) -> bool:
    """Say whether gradients and loss are those of the seed's sample at the recorded parameters."""
    x, y = sample(seed, step)
    grad_w, grad_b, loss = gradients(_float(record[1]), _float(record[2]), x, y)
    return bool(_bits(grad_w) == record[3] and _bits(grad_b) == record[4] and _bits(loss) == record[7])


@njit(
    "void(uint64[:, ::1], uint64, uint64, float64, uint64, uint64[::1], float64[::1], int64[::1], int64[:, ::1])",
    cache=CACHED,
)
def scan_block(
    records: Words,
    first: Int,
    seed: Int,
    learning_rate: float,
    ulp_tol: Int,
    previous: Words,
    losses: NDArray[np.float64],
    tally: NDArray[np.int64],
    findings: NDArray[np.int64],
) -> None:
    """Check the records of the steps from `first` on; what goes from block to block is changed in place.

    `previous`: bits of w_after and b_after of the record before the block (for step 0: of its own w_before
    and b_before). `losses`: total and Kahan carry. `tally`: how many records break a rule, how many do not
    follow the seed, and the first step that does not. `findings` (cap, 2): step and broken rules of the first
    records that break any.
    """
    w_expected, b_expected = previous[0], previous[1]
    total, carry = losses[0], losses[1]
    for i in range(len(records)):
        record = records[i]
        step = first + Word(i)
        broken = _form_rules(record, step, w_expected, b_expected)
        if not broken & NOT_FINITE:
            broken |= _value_rules(record, learning_rate, ulp_tol)
        if broken:
            if tally[0] < findings.shape[0]:
                findings[tally[0], 0], findings[tally[0], 1] = step, broken
            tally[0] += 1
        if not _follows_seed(record, step, seed):
            if tally[1] == 0:
                tally[2] = step
            tally[1] += 1
        total, carry = _kahan_add(total, carry, _float(record[7]))
        w_expected, b_expected = record[5], record[6]
    previous[0], previous[1] = w_expected, b_expected
    losses[0], losses[1] = total, carry


_settings.CACHE_DIR = _caller_s
