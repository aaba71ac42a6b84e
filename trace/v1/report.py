"""How values are shown to people: in decimal, as hexadecimal float and as bits."""

import struct
from collections.abc import Iterable

from ...base.printed import aligned


def float_bits(value: float) -> int:
    """Return the 64 bits of a float64."""
    return int.from_bytes(struct.pack("<d", value), "little")


def three_ways(value: float) -> str:
    """Show a float64 as the shortest decimal that reads back to it, as hexadecimal float and as bits.

    >>> three_ways(0.1)
    '0.1                      0x1.999999999999ap-4       3fb999999999999a'
    """
    return f"{value!r:<24} {value.hex():<26} {float_bits(value):016x}"


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Lay out (label, text) rows, indented and with the texts aligned."""
    return aligned(rows, "    ")


def about(steps: int, seed: int, learning_rate: float) -> str:
    """What a run is, in a line."""
    return f"{steps} steps, seed {seed}, learning rate {learning_rate!r}"


def losses(total: float, steps: int) -> str:
    """Their sum and their mean, where there are any."""
    return f"total {total!r}, mean {total / steps!r}" if steps else "none"
