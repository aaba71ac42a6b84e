"""The sample is what the page says it is, uniform, and nobody's choice."""

import hashlib
import struct

import pytest

from dgrr.trace.auditing.challenge import challenge, drawn


def from_the_page(root: bytes, nonce: bytes, units: int, count: int) -> list[int]:
    """The sample by docs/traces.md, written without the package."""
    message = b"DGRRaudit1" + struct.pack("<I", len(root)) + root + struct.pack("<I", len(nonce)) + nonce
    seed, block, words = hashlib.sha256(message).digest(), 0, list[int]()
    places = list(range(units)) if units < 10_000 else None
    exchanged: dict[int, int] = {}
    for i in range(count):
        bound = units - i
        while True:
            if not words:
                digest = hashlib.sha256(seed + struct.pack("<Q", block)).digest()
                words, block = [int.from_bytes(digest[j : j + 8], "little") for j in range(0, 32, 8)], block + 1
            word = words.pop(0)
            if word < (1 << 64) // bound * bound:
                break
        j = i + word % bound
        if places is not None:
            places[i], places[j] = places[j], places[i]
        else:
            exchanged[i], exchanged[j] = exchanged.get(j, j), exchanged.get(i, i)
    return places[:count] if places is not None else [exchanged[i] for i in range(count)]


@pytest.mark.parametrize("units", [1, 2, 3, 10, 1000, 2**62 + 1, 2**63 + 1])
@pytest.mark.parametrize("nonce", [b"", b"n", bytes(64)])
def test_the_sample_is_that_of_the_page(units: int, nonce: bytes) -> None:
    count = min(units, 50)
    found = drawn(challenge(b"root", nonce), units, count)
    assert found == from_the_page(b"root", nonce, units, count)
    assert len(set(found)) == count and all(unit in range(units) for unit in found)


def test_these_are_its_numbers_for_ever() -> None:
    seed = challenge(bytes(16), b"\x01\x02")
    assert seed.hex() == "931983d813a34f7bdc222aa66761b9d15a7cc585a06db11a8ce15f016aeed936"
    assert drawn(seed, 10_000, 4) == [6395, 1866, 930, 8336]


def test_a_larger_sample_begins_with_the_smaller() -> None:
    seed = challenge(b"root", b"nonce")
    assert drawn(seed, 300, 300)[:7] == drawn(seed, 300, 7)
    assert sorted(drawn(seed, 300, 300)) == list(range(300))


def test_parts_that_join_to_the_same_bytes_are_told_apart() -> None:
    assert challenge(b"ab", b"c") != challenge(b"a", b"bc")


def test_every_unit_is_drawn_as_often() -> None:
    """20,000 draws of 3 of 10: each unit 6,000 times, but for five standard deviations of a hypergeometric share."""
    counts = [0] * 10
    for i in range(20_000):
        for unit in drawn(challenge(b"root", i.to_bytes(4, "big")), 10, 3):
            counts[unit] += 1
    assert all(abs(count - 6000) < 5 * (20_000 * 0.3 * 0.7) ** 0.5 for count in counts), counts
