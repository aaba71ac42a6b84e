"""What a notebook shows of a thing: its text, or a title and facts. Needs nothing of the screen, and has no colours."""

from collections.abc import Mapping
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


class Printed:
    """What a notebook shows as the text that it prints."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return text(str(self))
