"""Suggestions for a name that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches

SHOWN = 12
"""How many names an error lists."""


def close_to(name: str, known: Iterable[str]) -> str | None:
    """The name that somebody may have meant, whatever its case.

    >>> close_to("batchnorm", ["BatchNorm", "GroupNorm"]), close_to("another", ["BatchNorm"])
    ('BatchNorm', None)
    """
    by_case = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), by_case, n=1)
    return by_case[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str], form: str = "'{}'") -> str:
    """The end of an error that names it, in a form such as ``nn.{}``; empty where none is close.

    >>> did_you_mean("Liner", ["Linear", "Tanh"], "nn.{}")
    '; did you mean nn.Linear?'
    """
    meant = close_to(name, known)
    return "" if meant is None else f"; did you mean {form.format(meant)}?"


def listing(name: str, known: Iterable[str]) -> str:
    """The names that there are, and the one that was meant perhaps.

    >>> listing("h33", ["h3", "loss"])
    "h3, loss; did you mean 'h3'?"
    """
    names = list(dict.fromkeys(known))
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{rest}{did_you_mean(name, names)}"
