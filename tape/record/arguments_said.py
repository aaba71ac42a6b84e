"""The ``Args:`` of a class: what each field is for, in its own words or its base's, and which values it takes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from .refusals import Kinds

SECTION = re.compile(r"\n*^Args:\n((?: {4}.*(?:\n|\Z))+)", re.MULTILINE)
WIDTH = 116
"""Columns of a line; ``help`` indents by four more."""

Said = Mapping[str, str]
"""What is said of fields, by name, or by several names with commas between them."""


def said(text: str) -> dict[str, str]:
    """What a docstring says of fields.

    >>> said("Text.\\n\\nArgs:\\n    a, b: two\\n        numbers.\\n    c: a word.\\n")
    {'a, b': 'two numbers.', 'c': 'a word.'}
    """
    found = SECTION.search(text)
    entries = re.split(r"^ {4}(?! )", found[1], flags=re.MULTILINE)[1:] if found else []
    pairs = [" ".join(entry.split()).partition(": ") for entry in entries]
    return {names: words for names, _, words in pairs}


def with_arguments(text: str, fields: Sequence[str], known: Said, kinds: Kinds) -> str:
    """The text of a docstring with what is known of its fields, in their order, and the values that kinds take."""
    own = {names: words for names, words in known.items() if names.split(", ")[0] in fields}
    if not own:
        return text
    order = sorted(own, key=lambda names: fields.index(names.split(", ")[0]))
    lines = [line for names in order for line in _lines(names, own[names], kinds)]
    return "\n".join([SECTION.sub("\n", text).strip(), "", "Args:", *lines])


def _lines(names: str, words: str, kinds: Kinds) -> Iterator[str]:
    kind = kinds.get(names.split(", ")[0])
    taken = f"; {kind.example().expected}" if kind else ""
    entry = f"{names}: {words.removesuffix('.')}{taken}."
    yield from wrap(entry, WIDTH, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False)
