"""Conditions: what a watchpoint waits for."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .expression import Evaluate, Expression, Reference, Values


@dataclass(frozen=True)
class Clause:
    """A condition, or one of those that ``and`` joins to the whole; ``figures`` are the numbers that it compares."""

    references: tuple[Reference, ...]
    evaluate: Evaluate
    figures: Mapping[str, Evaluate]

    def holds(self, values: Values) -> bool:
        """Whether it holds. Raises ConditionError where it is not one truth."""
        with np.errstate(all="ignore"):
            return bool(self.evaluate(values))


class Condition(Expression):
    """A condition that was read.

    Raises:
        ConditionError: the text is no condition; it says where.

    >>> condition = Condition("absmax(h) > 50 and loss < 1")
    >>> [str(reference) for reference in condition.references]
    ['h', 'loss']
    >>> h, loss = condition.references
    >>> condition.holds({h: np.array([3.0, -60.0]), loss: np.array(0.5)})
    True
    """

    def __init__(self, text: str) -> None:
        super().__init__(text, "condition", "loss > 10")

    def _read(self, tree: ast.expr) -> None:
        joined = isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And)
        self.clauses = [self._clause(node) for node in (tree.values if joined else [tree])]  # type: ignore[attr-defined]

    def _clause(self, node: ast.expr) -> Clause:
        before, self._at, self._figures = self._at, dict[Reference, int](), dict[str, Evaluate]()
        evaluate = self._truth(node)
        clause = Clause(tuple(self._at), evaluate, self._figures)
        self._at = before | self._at | before
        return clause

    def holds(self, values: Values) -> bool:
        """Whether all of it holds; every clause is looked at, so that one that is no truth is found at once."""
        held = [clause.holds(values) for clause in self.clauses]
        return all(held)

    def figures(self, values: Values) -> dict[str, float]:
        """The numbers that it compares, by its own words for them."""
        with np.errstate(all="ignore"):
            made = {text: f(values) for clause in self.clauses for text, f in clause.figures.items()}
        return {text: float(x) for text, x in made.items() if np.ndim(x) == 0}
