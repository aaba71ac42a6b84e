"""Simulated forgeries: how many of them pass an audit whose nonce is drawn anew for each.

What is simulated is the finding: in a trace of record mode ``digest``, a forged step is found from it up to the next
keyframe, as `test_audit` holds of real forged traces, step by step. What is drawn is real.
"""

from collections.abc import Collection

import numpy as np

from dgrr.trace.auditing.challenge import challenge, drawn


def is_found(forged: Collection[int], sample: Collection[int], keyframes: int) -> bool:
    """Whether a drawn step lies at or behind a forged one, with no keyframe between."""
    last: dict[int, int] = {}
    for unit in sample:
        last[unit // keyframes] = max(unit, last.get(unit // keyframes, 0))
    return any(step <= last.get(step // keyframes, -1) for step in forged)


def hidden(steps: int, count: int, keyframes: int) -> list[int]:
    """Where a forger hides so many steps best: each before a keyframe, where nothing but itself leads to it."""
    ends = [*range(keyframes - 1, steps, keyframes), steps - 1]
    order = [end - back for back in range(keyframes) for end in dict.fromkeys(ends) if end - back >= 0]
    return list(dict.fromkeys(order))[:count]


def scattered(steps: int, count: int, seed: int) -> list[int]:
    """So many steps, anywhere."""
    return sorted(np.random.default_rng(seed).choice(steps, count, replace=False).tolist())


def passed(root: bytes, steps: int, count: int, sample: int, keyframes: int, forgeries: int, *, hides: bool) -> int:
    """How many of so many forgeries pass, each of `count` forged steps and audited with a nonce of its own."""
    passing, best = 0, hidden(steps, count, keyframes)
    for i in range(forgeries):
        forged = best if hides else scattered(steps, count, i)
        units = drawn(challenge(root, i.to_bytes(8, "big")), steps, sample)
        passing += not is_found(forged, units, keyframes)
    return passing
