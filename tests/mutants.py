"""Formulas with each of their operations changed, one at a time, and all that read them evaluated anew.

A mutant has one operation in the place of another: a sum for a difference, a product for a quotient, the other side of
a selection, the opposite comparison, a number without its sign, another constant, an fma whose last term has the other
sign; or it lacks a function of one argument.
"""

import ast
import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import deepcopy
from types import ModuleType
from typing import Any

from dgrr.base.errors import DgrrError
from dgrr.tape import ops
from dgrr.tape.numerics.simd import minmax, operations

SWAPPED: dict[type[ast.AST], Any] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
CALLS = {
    other: name
    for one in (
        ("add", "sub"),
        ("mul", "div"),
        ("shl", "lshr"),
        ("bitand", "bitor"),
        ("larger", "smaller"),
        ("greater", "less"),
        ("greater_equal", "less_equal"),
        ("maximum", "minimum"),
    )
    for name, other in (one, one[::-1])
}
NUMBERED = ("scale", "shift", "power")
"""Ops whose second argument is a number."""
ONE = ("abs", "absolute", "neg", "relu", "square", "sqrt", "root", "softplus", "sigmoid", "log", "exp", "log_softmax")
"""What may be left out, as its argument has its type."""

Text = ast.FunctionDef
OTHERS = {**vars(minmax), **{name: vars(ops)[name] for name in CALLS if name in vars(ops)}}
"""What may come to stand in a formula whose module has not imported it."""


class Formulas:
    """The formulas of some modules, as Python reads them."""

    def __init__(self, modules: Sequence[ModuleType], marks: Collection[str], more: Collection[str] = ()) -> None:
        """``marks`` are the decorators of those that count, ``more`` names of others; with all that they call."""
        self.modules = modules
        found = [(module, text) for module in modules for text in _functions(module)]
        marked = {text.name for _, text in found if text.name in more or _decorators(text) & {*marks}}
        wanted = _with_called(marked, [text for _, text in found if text.name in marked or not text.decorator_list])
        self.texts = {text.name: (module, text) for module, text in found if text.name in wanted}
        assert len(self.texts) == sum(text.name in wanted for _, text in found), "two formulas of one name"
        for _, text in self.texts.values():
            text.decorator_list = []

    def readers(self, name: str) -> set[str]:
        """The formula and all that read it."""
        found, before = {name}, set[str]()
        while found != before:
            before = set(found)
            found |= {other for other, (_, text) in self.texts.items() if _names(text) & found}
        return found

    def evaluated(self, name: str, text: Text) -> dict[str, Callable[..., Any]]:
        """All formulas, made anew with this text of one of them."""
        spaces = {module: {**OTHERS, **vars(operations), **vars(module)} for module in self.modules}
        for other, (module, own) in self.texts.items():
            tree = ast.Module([text if other == name else own], [])
            exec(compile(tree, module.__name__, "exec"), spaces[module])
        for module, space in spaces.items():
            space.update({face: _made_of(space[face], spaces) for face in space if isinstance(space[face], ModuleType)})
            homes = {other: home for other, (home, _) in self.texts.items() if _is_of(module, other, home)}
            space.update({other: spaces[home][other] for other, home in homes.items()})
        return {other: spaces[home][other] for other, (home, _) in self.texts.items()}

    def require_found(self, name: str, holds: Callable[[dict[str, Callable[..., Any]]], bool], equal: set[str]) -> None:
        """A formula is what ``holds`` says of it and its readers; of its mutants only the ``equal`` ones."""

        def is_held(text: Text) -> bool:
            made = self.evaluated(name, text)
            try:
                return holds(made)
            except (DgrrError, ArithmeticError, LookupError, TypeError, ValueError):
                return False

        own = self.texts[name][1]
        assert is_held(own)
        missed = sorted(what for what, text in mutants(own) if is_held(text))
        assert missed == sorted(what for what in equal if what.startswith(f"{name}: "))


def _functions(module: ModuleType) -> list[Text]:
    """The functions that a module defines; of overloads the last."""
    nodes = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, Text)]
    return list({node.name: node for node in nodes}.values())


def _decorators(text: Text) -> set[str]:
    return {node.id for decorator in text.decorator_list for node in ast.walk(decorator) if isinstance(node, ast.Name)}


def _with_called(marked: set[str], found: Sequence[Text]) -> set[str]:
    """These functions and those of the others that their bodies name."""
    named = {text.name: {name for node in text.body for name in _names(node)} for text in found}
    before = set[str]()
    while marked != before:
        before, marked = marked, marked | {name for one in marked for name in named[one] if name in named}
    return marked


def _made_of(module: ModuleType, spaces: dict[ModuleType, dict[str, Any]]) -> ModuleType:
    """A module as formulas see it that ask it for others."""
    if module in spaces:
        made = ModuleType(module.__name__)
        vars(made).update(spaces[module])
        return made
    return module


def _is_of(module: ModuleType, name: str, home: ModuleType) -> bool:
    """Whether a module has the formula of that name from its home."""
    return vars(module).get(name) is vars(home)[name]


def _names(text: ast.AST) -> set[str]:
    named = {node.id for node in ast.walk(text) if isinstance(node, ast.Name)}
    return named | {node.attr for node in ast.walk(text) if isinstance(node, ast.Attribute)}


def changes(node: ast.AST) -> Iterator[Callable[[Any], ast.AST]]:
    """The ways in which one node is made another, each of a copy of it."""
    match node:
        case ast.BinOp(op=op) if type(op) in SWAPPED:
            yield lambda n: ast.BinOp(n.left, SWAPPED[type(n.op)](), n.right)
        case ast.Compare(ops=[op], comparators=[other]) if type(op) in SWAPPED:
            yield lambda n: ast.Compare(n.left, [SWAPPED[type(n.ops[0])]()], n.comparators)
            if isinstance(other, ast.Constant) and isinstance(other.value, float):
                yield lambda n: ast.Compare(n.left, n.ops, [_other(n.comparators[0])])
        case ast.UnaryOp(op=ast.USub()):
            yield lambda n: n.operand
        case ast.Call(func=ast.Name(id="select" | "where"), args=[_, _, _]):
            yield lambda n: ast.Call(n.func, [n.args[0], n.args[2], n.args[1]], [])
        case ast.IfExp():
            yield lambda n: ast.IfExp(n.test, n.orelse, n.body)
        case ast.Call(func=ast.Name(id="fma")):
            yield lambda n: ast.Call(n.func, [*n.args[:2], ast.UnaryOp(ast.USub(), n.args[2])], [])
        case ast.Call(func=ast.Name(id=name), args=[_, number]) if name in NUMBERED:
            yield lambda n: n.args[0]
            if isinstance(number, ast.Constant):
                yield lambda n: ast.Call(n.func, [n.args[0], _other(n.args[1])], [])
        case ast.Call(func=ast.Name(id=name), args=[_]) if name in ONE:
            yield lambda n: n.args[0]
        case ast.Call(func=ast.Name(id="constant"), args=[_, value]) if "nan" not in ast.unparse(value):
            yield lambda n: ast.Call(n.func, [n.args[0], _other(n.args[1])], [])
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            yield lambda n: ast.Call(ast.Name(CALLS[n.func.id], ast.Load()), n.args, [])
        case _:
            return


def _other(value: ast.expr) -> ast.expr:
    """Another constant: twice it, or 1 in the place of 0."""
    if isinstance(value, ast.Constant) and value.value == 0:
        return ast.Constant(1.0)
    return ast.BinOp(value, ast.Mult(), ast.Constant(-1.0 if "inf" in ast.unparse(value) else 2.0))


def mutants(text: ast.FunctionDef) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every mutant of a formula, by what is changed in which line of it."""
    for place, node in enumerate(ast.walk(text)):
        for change in changes(node):
            made = deepcopy(text)
            _put(made, place, change)
            yield f"{text.name}: {_differing(text, made)}", ast.fix_missing_locations(made)


def _put(text: ast.FunctionDef, place: int, change: Callable[[Any], ast.AST]) -> None:
    """Change the node that stands at this place of a walk."""
    old = list(ast.walk(text))[place]
    for parent in ast.walk(text):
        fields: Iterator[tuple[str, Any]] = ast.iter_fields(parent)
        for name, value in fields:
            if value is old:
                setattr(parent, name, change(old))
            elif isinstance(value, list):
                items: list[Any] = value
                items[:] = [change(old) if item is old else item for item in items]


def _differing(text: ast.FunctionDef, made: ast.FunctionDef) -> str:
    lines = (ast.unparse(ast.fix_missing_locations(t)).splitlines() for t in (text, made))
    return next(f"{new.strip()}" for old, new in zip(*lines, strict=True) if old != new)
