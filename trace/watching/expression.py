"""The language of conditions and edits: names, numbers, comparisons and a table of functions.

Python's parser reads it; nothing of it is run as Python. Figures are made by numpy in float64. They are for people to
read, and no part of the bit contract.
"""

import ast
import operator
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ...base.arrays import Array
from ...base.errors import DomainError
from ...base.suggest import did_you_mean
from .functions import FUNCTIONS

What: TypeAlias = Literal["value", "grad", "update"]

_ARITHMETIC: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.true_divide,
}
_COMPARISONS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_SIGNS: Mapping[type[ast.AST], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_OF_NAMES: Mapping[str, What] = {"grad": "grad", "update": "update"}
_NODE = "node"
_CALLS = (*FUNCTIONS, *_OF_NAMES, _NODE)
_PARTS = "names, numbers, + - * /, comparisons, and, or, not, and calls of functions"


class ConditionError(DomainError):
    """A condition or an edit that cannot be read, or that names nothing in the run."""


class Reference(NamedTuple):
    """Something of a step that a condition names: a value, a gradient, an update.

    ``pattern``: whether the name is a pattern for nodes alone, as ``node("relu")`` says.
    """

    what: What
    name: str
    pattern: bool = False

    def __str__(self) -> str:
        name = f"node({self.name!r})" if self.pattern else self.name
        return name if self.what == "value" else f"{self.what}({name})"


Values: TypeAlias = Mapping[Reference, Array]
"""What each reference of a condition is, in float64."""

Evaluate: TypeAlias = Callable[[Values], Any]


class Expression(ABC):
    """A text of the language that was read.

    Args:
        text: of it.
        what: what errors call it, and an example.

    Raises:
        ConditionError: it cannot be read; the error says where.
    """

    def __init__(self, text: str, what: str, example: str) -> None:
        self.text, self._what = text.strip(), what
        self._at = dict[Reference, int]()
        self._figures = dict[str, Evaluate]()
        if not self.text:
            raise ConditionError(f"{what}: expected one such as {example!r}, got none")
        tree = self._parsed()
        try:
            self._read(tree)
        except RecursionError:
            raise self._too_deep() from None

    @abstractmethod
    def _read(self, tree: ast.expr) -> None:
        """Compile the tree."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """All that it names."""
        return tuple(self._at)

    def error(self, reference: Reference, text: str) -> ConditionError:
        """What is wrong with something that it names, and where that stands."""
        return self._error(self._at[reference], text)

    # ------------------------------------------------------------------ reading

    def _parsed(self) -> ast.expr:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as of 5and
                return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            before = self.text.splitlines(keepends=True)[: (error.lineno or 1) - 1]
            at = sum(map(len, before)) + error.offset - 1 if error.offset else len(self.text)
            hint = '; put names with dots in quotes: "0.weight"' if "." in self.text else ""
            raise self._error(at, f"{error.msg}{hint}") from None
        except ValueError as error:  # which texts with a null byte were until Python 3.12
            raise ConditionError(f"{self._what}: {error}") from None
        except (RecursionError, MemoryError):
            raise self._too_deep() from None

    def _too_deep(self) -> ConditionError:
        return ConditionError(f"{self._what}: it is nested too deeply to be read")

    def _truth(self, node: ast.expr) -> Evaluate:
        """What computes a part of the tree that is to be true or false."""
        at, evaluate = self._place(node), self._of_kind(node, truth=True)

        def one(values: Values) -> bool:
            found = evaluate(values)
            if np.ndim(found):
                said = f"it is true or false of each of {np.size(found)} elements: write any(…) or all(…)"
                raise self._error(at, said)
            return bool(found)

        return one

    def _of_kind(self, node: ast.expr, *, truth: bool, where: str = "") -> Evaluate:
        """What computes a part of the tree that is to be of truths, or of numbers."""
        evaluate, found = self._compiled(node)
        if found == truth:
            return evaluate
        kinds = "numbers", "what is true or false"
        example = ", such as x > 1 or any(isnan(x))" if truth else ""
        raise self._error(self._place(node), f"{where}expected {kinds[truth]}{example}, got {kinds[found]}")

    def _compiled(self, node: ast.expr) -> tuple[Evaluate, bool]:
        """What computes a part of the tree, and whether that is of truths."""
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return self._number(node, number), False
            case ast.Constant(value=str()) | ast.Name():
                return self._reference(node, Reference("value", str(_text_of(node)))), False
            case ast.Call():
                return self._call(node)
            case ast.UnaryOp(op=ast.Not()):
                truth = self._truth(node.operand)
                return lambda values: not truth(values), True
            case ast.UnaryOp() if type(node.op) in _SIGNS:
                sign, operand = _SIGNS[type(node.op)], self._of_kind(node.operand, truth=False)
                return lambda values: sign(operand(values)), False
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                return self._of_two(node, _ARITHMETIC[type(node.op)], *map(self._side, (node.left, node.right))), False
            case ast.BoolOp():
                every, truths = (all if isinstance(node.op, ast.And) else any), [self._truth(x) for x in node.values]
                return lambda values: every([truth(values) for truth in truths]), True
            case ast.Compare():
                return self._compared(node), True
            case ast.Attribute():
                raise self._error(self._place(node), f'put names with dots in quotes: write "{self._source(node)}"')
            case _:
                raise self._error(self._place(node), f"expected {_PARTS}, got {self._source(node)!r}")

    def _names(self, node: ast.expr) -> bool:
        """Whether a part of the tree is something that is named, and no more."""
        return _text_of(node) is not None or (isinstance(node, ast.Call) and self._source(node.func) not in FUNCTIONS)

    def _number(self, node: ast.expr, value: float) -> Evaluate:
        try:
            number = np.float64(value)
        except OverflowError:
            raise self._error(self._place(node), "the number is too large") from None
        return lambda values: number

    def _reference(self, node: ast.expr, reference: Reference) -> Evaluate:
        self._at.setdefault(reference, self._place(node))
        return lambda values: values[reference]

    def _call(self, node: ast.Call) -> tuple[Evaluate, bool]:
        at, called = self._place(node), self._source(node.func)
        if called not in _CALLS:
            hint = did_you_mean(called, _CALLS, "{}")
            raise self._error(at, f"expected a function among {', '.join(_CALLS)}, got {called!r}{hint}")
        if node.keywords or len(node.args) != 1 or isinstance(node.args[0], ast.Starred):
            raise self._error(at, f"{called}: expected one argument, got {self._source(node)!r}")
        if called not in FUNCTIONS:
            return self._reference(node, self._named(called, node.args[0])), False
        function = FUNCTIONS[called]
        argument = self._of_kind(node.args[0], truth=function.of_truths, where=f"{called}: ")
        return lambda values: function.compute(argument(values)), function.gives_truths

    def _named(self, called: str, argument: ast.expr) -> Reference:
        """What ``grad(…)``, ``update(…)`` and ``node(…)`` name."""
        inner = argument
        match argument:
            case ast.Call(func=ast.Name(id="node"), args=[only], keywords=[]) if called != _NODE:
                inner = only
            case _:
                pass
        if _text_of(inner) is None:
            what = 'a pattern of names or ops, such as "relu"' if called == _NODE else 'a name, such as "0.weight"'
            raise self._error(self._place(argument), f"{called}: expected {what}, got {self._source(argument)!r}")
        return Reference(_OF_NAMES.get(called, "value"), str(_text_of(inner)), called == _NODE or inner is not argument)

    def _side(self, node: ast.expr) -> Evaluate:
        return self._of_kind(node, truth=False)

    def _of_two(self, node: ast.expr, compute: Callable[[Any, Any], Any], left: Evaluate, right: Evaluate) -> Evaluate:
        at = self._place(node)

        def evaluate(values: Values) -> Any:
            a, b = left(values), right(values)
            try:
                return compute(a, b)
            except ValueError:
                text = f"the shapes {np.shape(a)} and {np.shape(b)} do not fit each other"
                raise self._error(at, text) from None

        return evaluate

    def _compared(self, node: ast.Compare) -> Evaluate:
        parts = [node.left, *node.comparators]
        if any(type(op) not in _COMPARISONS for op in node.ops):
            text = f"expected a comparison among < <= > >= == !=, got {self._source(node)!r}"
            raise self._error(self._place(node), text)
        sides = [self._side(part) for part in parts]
        said = [(self._source(part), side) for part, side in zip(parts, sides, strict=True) if self._is_said(part)]
        self._figures.update(said)
        pairs = [
            self._of_two(node, _COMPARISONS[type(op)], left, right)
            for op, left, right in zip(node.ops, sides, sides[1:], strict=False)
        ]
        return reduce(partial(self._of_two, node, np.logical_and), pairs)

    # ------------------------------------------------------------------ where

    def _place(self, node: ast.expr) -> int:
        """The character that a part of the tree begins at, from 0."""
        lines = self.text.splitlines(keepends=True)
        before = lines[node.lineno - 1].encode()[: node.col_offset].decode()
        return sum(map(len, lines[: node.lineno - 1])) + len(before)

    def _source(self, node: ast.expr) -> str:
        return ast.get_source_segment(self.text, node) or ""

    def _is_said(self, node: ast.expr) -> bool:
        """Whether what is compared is more than a number that is written there."""
        return any(
            isinstance(part, ast.Call) or _text_of(part) is not None
            for part in ast.walk(node)
            if isinstance(part, ast.expr)
        )

    def _error(self, at: int, text: str) -> ConditionError:
        return ConditionError(f"{self._what}: {text}; at character {at + 1} of {self.text!r}")


def _text_of(node: ast.expr) -> str | None:
    """The name that a name or a text is; None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
