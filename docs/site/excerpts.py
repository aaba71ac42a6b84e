"""Excerpts in the results of a search, also where the site is opened from a folder.

Sphinx's search fetches each page that it found to show some of its text, and a browser fetches no files: the page of
the search has the texts of all pages with it.
"""

import json
import re
from pathlib import Path

MAIN = re.compile(r'<article role="main"[^>]*>(.*?)</article>', re.DOTALL)
TAGS = re.compile(r'<a class="headerlink".*?</a>|<(script|style)\b.*?</\1>|<(?!section|/section)[^>]*>', re.DOTALL)
"""All markup but for the sections, by which a result names its place."""

SCRIPT = """"use strict";
const TEXTS = %s;
window.fetch = async (address) => {
  const root = new URL("./", document.baseURI).href;
  const page = new URL(address, root).href.slice(root.length).replace(/[?#].*/, "");
  return new Response(`<div role="main">${TEXTS[page] ?? ""}</div>`);
};
"""


def write(site: Path) -> None:
    """Give the page of the search the texts of a built site."""
    pages = {page.relative_to(site).as_posix(): text(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    script = SCRIPT % json.dumps(pages, ensure_ascii=False)
    (site / "_static" / "excerpts.js").write_text(script, encoding="utf-8")
    search = site / "search.html"
    with_it = search.read_text(encoding="utf-8").replace(
        "</head>", '<script src="_static/excerpts.js"></script></head>', 1
    )
    search.write_text(with_it, encoding="utf-8")


def text(page: str) -> str:
    """The text of a page of the site in its sections; of a page without any, nothing.

    >>> text('<nav>x</nav><article role="main"><section id="a"><p>One <b>two</b></p></section></article>')
    '<section id="a">One two</section>'
    """
    found = MAIN.search(page)
    return re.sub(r"\s+", " ", TAGS.sub("", found[1])).strip() if found else ""
