"""Closed HTML, as notebooks show it."""

from html.parser import HTMLParser
from typing import Any


class Balanced(HTMLParser):
    """Reads HTML whose every tag is closed in its order; `data` is its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open, self.data = list[str](), list[str]()
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.data.append(data)
