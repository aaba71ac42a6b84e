"""Figures that ranks compute in turn, in the order in which one process would."""

import json
from collections.abc import Sequence
from itertools import chain, zip_longest

from .exchange import Exchange
from .texts import texts_of_all

Row = tuple[int, dict[str, float]]
"""How many samples, and figures by name."""


def in_turn(exchange: Exchange, own: Sequence[Row]) -> list[Row]:
    """The rows of all ranks, of which rank r has the numbers r, r + size, r + 2 * size, …; to the bit on all."""
    found = [json.loads(text) for text in texts_of_all(exchange, json.dumps(own).encode())]
    together = chain.from_iterable(zip_longest(*found))
    return [(row[0], row[1]) for row in together if row is not None]
