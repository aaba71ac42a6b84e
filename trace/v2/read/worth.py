"""Whether it pays to read STEPs with compiled code, which checks many in one launch."""

import sys

WORTH, WORTH_LOADING = 32, 8192
"""From how many STEPs on it is worth it, where numba is loaded and where it is not."""


def is_worth_preparing(steps: int) -> bool:
    """Whether so many STEPs, which may be like each other, are to be checked so."""
    return steps >= (WORTH if "numba" in sys.modules else WORTH_LOADING)
