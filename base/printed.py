"""What is shown as text: the ways that need nothing of the screen, for what stands below it."""

from collections.abc import Iterable
from html import escape

_STYLE = "margin:0.3em 0;line-height:1.25;white-space:pre;overflow-x:auto;max-width:100%"


def text(content: str) -> str:
    """HTML of lines as they are."""
    return f'<pre style="{_STYLE}">{escape(content)}</pre>'


def aligned(rows: Iterable[tuple[str, object]], indent: str = "  ", width: int = 0) -> str:
    """Lines of names and what they are, one below the other; names take up so many columns at least.

    >>> print(aligned([("steps", 3), ("last loss", 0.5)]))
      steps      3
      last loss  0.5
    """
    pairs = list(rows)
    width = max([width, *(len(name) for name, _ in pairs)])
    below = "\n" + " " * (len(indent) + width + 2)
    lines = (f"{indent}{name:<{width}}  {value}".replace("\n", below) for name, value in pairs)
    return "\n".join([line.rstrip() for line in lines])


class Printed:
    """What a notebook shows as the text that it prints."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return text(str(self))
