"""What there is in the place of a name that there is not."""

from collections.abc import Sequence
from difflib import get_close_matches

SHOWN = 12
"""How many names an error lists."""


def listing(name: str, known: Sequence[str]) -> str:
    """The names that there are, and the one that was meant perhaps.

    >>> listing("h33", ["h3", "loss"])
    "h3, loss; did you mean 'h3'?"
    """
    names = list(dict.fromkeys(known))
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    close = get_close_matches(name, names, n=1)
    return f"{', '.join(names[:SHOWN])}{rest}{f'; did you mean {close[0]!r}?' if close else ''}"
