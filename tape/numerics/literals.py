"""Whether the numbers that stand in the sources are those that the sources say.

Python parses a number by the rounding mode of the thread that compiles the module, and keeps it in the module's
``.pyc``. One that was compiled while another library rounded upwards holds 1e-3 one place too large, for ever. The
modules of a package are compiled together, so this one speaks for all.
"""

from pathlib import Path

KNOWN = {
    0.1: "0x1.999999999999ap-4",
    0.3: "0x1.3333333333333p-2",
    1e-3: "0x1.0624dd2f1a9fcp-10",
}
"""Literals and their bits: each other rounding mode misses one of them."""


def require_rounded_to_nearest() -> None:
    """Raise ImportError unless the literals of this module have the bits that they must have."""
    for number, bits in KNOWN.items():
        if number.hex() != bits:
            raise ImportError(
                f"{__name__}: expected the literal {float.fromhex(bits)!r}, got {number!r}: the module was compiled "
                "while numbers were not rounded to nearest, and so the others of dgrr; delete the __pycache__ folders "
                f"in {Path(__file__).parents[2]}, and import dgrr before what changes the rounding mode"
            )


require_rounded_to_nearest()
