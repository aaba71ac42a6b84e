"""What a notebook shows as text: the one way that needs nothing of the screen, for what stands below it."""

from html import escape

_STYLE = "margin:0.3em 0;line-height:1.25;white-space:pre;overflow-x:auto;max-width:100%"


def text(content: str) -> str:
    """HTML of lines as they are."""
    return f'<pre style="{_STYLE}">{escape(content)}</pre>'


class Printed:
    """What a notebook shows as the text that it prints."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return text(str(self))
