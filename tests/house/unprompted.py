"""Lines of a docstring that are code, and stand neither in an example nor in an indented block of code.

doctest runs what begins with ``>>>``. A line that has lost it, behind an empty line, is text to doctest: the example
before it counts, and nobody runs the rest.
"""

import ast
import doctest
import inspect
import re
from collections.abc import Iterator

WORDS = (ast.Module, ast.Expr, ast.Tuple, ast.Name, ast.Constant, ast.AnnAssign, ast.expr_context)
"""What a line of prose can be to a parser: a word, a number, words between commas, ``name: word``."""


def unprompted(docstring: str) -> list[str]:
    """The lines that are code."""
    return [line for line in _prose(inspect.cleandoc(docstring)) if _is_code(line)]


def _prose(doc: str) -> Iterator[str]:
    """The lines outside of examples, and outside of what is indented below a line that ends in ``::``."""
    literal = False
    for part in doctest.DocTestParser().parse(doc):
        for line in part.splitlines() if isinstance(part, str) else ():
            literal = literal and (not line or line.startswith(" "))
            if line and not literal:
                yield line
            literal = literal or line.endswith("::")


def _is_code(line: str) -> bool:
    """Whether a line is a statement, or the head of one, that no sentence would be."""
    try:
        tree = ast.parse(line.strip() + (" pass" if line.endswith(":") else ""))
    except SyntaxError:
        return False
    shapes = re.search(r"\w \(\*", line)  # ``key (*Bs, Keys)`` is no call
    return not shapes and not all(isinstance(node, WORDS) for node in ast.walk(tree))
