"""What is shown as text or HTML: the ways that need nothing of the screen, for what stands below it."""

from collections.abc import Iterable, Mapping
from html import escape

_FRAME = "overflow-x:auto;max-width:100%"
TABLE = '<table cellpadding="4" style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
LEFT = "text-align:left;vertical-align:top"
_STYLE = "margin:0.3em 0;line-height:1.25;white-space:pre;overflow-x:auto;max-width:100%"


def text(content: str) -> str:
    """HTML of lines as they are."""
    return f'<pre style="{_STYLE}">{escape(content)}</pre>'


def panel(title: str, *parts: str) -> str:
    """HTML of something: its title, and below it its parts, such as those that `facts` and `text` give.

    >>> panel("a < b", facts({"steps": 3}))[:68]
    '<div style="overflow-x:auto;max-width:100%"><strong>a &lt; b</strong'
    """
    head = f"<strong>{escape(title)}</strong>" if title else ""
    return f'<div style="{_FRAME}">{head}{"".join(parts)}</div>'


def facts(rows: Mapping[str, object]) -> str:
    """HTML of names and what they are, one below the other."""
    lines = (
        f'<tr><th scope="row" style="{LEFT}">{escape(name)}</th><td style="{LEFT}">{_lines(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"{TABLE}<tbody>{''.join(lines)}</tbody></table>"


def _lines(value: object) -> str:
    return escape(str(value)).replace("\n", "<br>")


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
