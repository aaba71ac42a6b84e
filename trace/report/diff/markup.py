"""Pieces of the page. What a trace says stands between tags alone, escaped, and never in an attribute."""

from collections.abc import Iterable, Sequence

from ..page import escaped


def element(tag: str, text: str, kind: str = "") -> str:
    """An element with a text, and a class.

    >>> element("b", "a < b", "op"), element("p", "")
    ('<b class="op">a &lt; b</b>', '')
    """
    opened = f'{tag} class="{kind}"' if kind else tag
    return f"<{opened}>{escaped(text)}</{tag}>" if text else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts; the first of each row names it."""
    head = "".join(f'<th scope="col">{escaped(text)}</th>' for text in heads)
    body = "".join(f"<tr>{_cells(*row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cells(name: str, *texts: str) -> str:
    return f'<th scope="row">{escaped(name)}</th>' + "".join(f"<td>{escaped(text)}</td>" for text in texts)
