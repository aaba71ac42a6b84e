"""Arithmetic of rules and schedules one number at a time, each operation rounded."""


def binary_power(base: float, exponent: int) -> float:
    """A whole power by squaring, from the lowest bit of the exponent."""
    result = 1.0
    for bit in reversed(f"{exponent:b}"):
        result = result * base if bit == "1" else result
        base = base * base
    return result
