"""Bytes of any length, of every rank for every rank."""

from itertools import accumulate, pairwise

import numpy as np

from .exchange import Exchange


def texts_of_all(exchange: Exchange, own: bytes) -> list[bytes]:
    """What every rank gives, in their order, on all ranks."""
    lengths = np.zeros(exchange.size, np.int64)
    lengths[exchange.rank] = len(own)
    exchange.largest(lengths)
    bounds = [0, *accumulate(lengths.tolist())]
    whole = np.empty(bounds[-1], np.uint8)
    whole[bounds[exchange.rank] : bounds[exchange.rank + 1]] = np.frombuffer(own, np.uint8)
    exchange.gather(whole, bounds)
    return [whole[first:last].tobytes() for first, last in pairwise(bounds)]
