"""Every formula of numbers with every one of its operations changed: each change is found, or changes no value.

A mutant has one operation in the place of another: a sum for a difference, a product for a quotient, the other side of
a selection, the opposite comparison, a number without its sign, another constant, an fma whose last term has the other
sign. It is found if a formula that reads it misses its bound, a special value, or the bits of numpy's own function.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from itertools import product
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest

from dgrr.tape.numerics.math import elementary, inverse, trigonometry
from dgrr.tape.numerics.math.reference.functions import reading
from dgrr.tape.numerics.simd import minmax, operations
from dgrr.tape.ops.elementwise.kernels import basic, clamp, functions, pow as powers
from dgrr.tape.record.pointwise_op import SPECIAL as EDGES

from .test_formula_mutants import SPECIAL, is_right
from .test_truths import FORMULAS, NUMBERS, arrays, bits, drawn, ulps
from .truths import EXACT, NEAR, Array

TYPES = (np.float32, np.float64)
MODULES = (elementary, inverse, trigonometry, minmax, basic, clamp, functions, powers)
KERNEL = {"larger": "maximum", "smaller": "minimum"}
"""The kernels of formulas that are called otherwise."""

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
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
CALLS = {"add": "sub", "sub": "add", "shl": "lshr", "lshr": "shl", "bitand": "bitor", "bitor": "bitand"}

EQUAL = {
    # A sign bit that is added or taken away gives the same bits; so do bits that are shifted out.
    "erf: return float_of(sub(bits_of(y), sign))",
    "tanh: return float_of(sub(bits_of(y), sign))",
    "turned: return float_of(sub(bits_of(y), shl(lshr(quadrant, 1), c.sign)))",
    "signed: return float_of(sub(bits_of(y), sub(bits_of(x), bits_of(abs(x)))))",
    "raised: fields = add(add(bits_of(rounded), bits_of(c.rounder)), 2 * c.bias)",
    "expm1: scale = float_of(shl(add(add(bits_of(rounded), bits_of(c.rounder)), c.bias - 1), c.mantissa))",
    "near: return (r, lost - fma(n, c.half_pi_low, middle_low), add(bits_of(rounded), bits_of(c.rounder)))",
    # From these numbers on both sides round alike.
    "acosh: large = x > constant(x, LARGE * 2.0)",
    "asinh: large = a > constant(x, LARGE * 2.0)",
    "atan: y = _angle(select(a > constant(x, FAR * 2.0), constant(x, FAR), a), one, one, zero)",
    "atan: y = _angle(select(a > constant(x, FAR), constant(x, FAR * 2.0), a), one, one, zero)",
    "expm1: x = select(x < constant(x, -60.0 * 2.0), constant(x, -60.0), x)",
    "atan2: factor = select(a + b == infinity, constant(x, 0.25 * 2.0), select(a + b < one, c.lift * c.lift, one))",
    # What is changed here is NaN in the end, or a zero that is added to another number.
    "log1p: swapped = x > one",
    "power: high, low = _log_pair(x)",
    "log: y = select(x == constant(x, np.inf), x, _log_of(f, n, zero))",
    "log_of_twice: return select(x < infinity, _log_of(f, n + one, zero), x)",
    # What is lost is made good by the next line, or is less than what the bound leaves room for.
    "_log_pair: t = c.two_thirds - q",
    "_log_pair: t_low = c.two_thirds - t + q - c.two_thirds_low",
    "_log_pair: total = y - y_low",
    "turned: sine = r + fma(z * r, polynomial(z, c.sine), fma(half_z, low, low))",
    "atan2: factor = select(a + b == infinity, constant(x, 0.25), select(a + b < one, c.lift / c.lift, one))",
}
"""Mutants that nothing finds, and why."""


def texts(module: ModuleType) -> dict[str, ast.FunctionDef]:
    """The formulas that a module defines, without their decorators."""
    tree = ast.parse(inspect.getsource(module))
    found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in found.values():
        node.decorator_list = []
    return found


TEXTS = {name: (module, text) for module in MODULES for name, text in texts(module).items()}


def changes(node: ast.AST) -> Iterator[Callable[[Any], ast.AST]]:
    """The ways in which one node is made another, each of a copy of it."""
    match node:
        case ast.BinOp(op=op) if type(op) in SWAPPED:
            yield lambda n: ast.BinOp(n.left, SWAPPED[type(n.op)](), n.right)
        case ast.Compare(ops=[op]) if type(op) in SWAPPED:
            yield lambda n: ast.Compare(n.left, [SWAPPED[type(n.ops[0])]()], n.comparators)
        case ast.UnaryOp(op=ast.USub()):
            yield lambda n: n.operand
        case ast.Call(func=ast.Name(id="select")):
            yield lambda n: ast.Call(n.func, [n.args[0], n.args[2], n.args[1]], [])
        case ast.Call(func=ast.Name(id="fma")):
            yield lambda n: ast.Call(n.func, [*n.args[:2], ast.UnaryOp(ast.USub(), n.args[2])], [])
        case ast.Call(func=ast.Name(id="abs")):
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
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, change(old))
            elif isinstance(value, list) and any(item is old for item in value):
                value[:] = [change(old) if item is old else item for item in value]


def _differing(text: ast.FunctionDef, made: ast.FunctionDef) -> str:
    lines = (ast.unparse(ast.fix_missing_locations(t)).splitlines() for t in (text, made))
    return next(f"{new.strip()}" for old, new in zip(*lines, strict=True) if old != new)


def readers(name: str) -> list[str]:
    """The formula and all that read it, those that are checked."""
    found, before = {name}, set[str]()
    while found != before:
        before = set(found)
        found |= {other for other, (_, text) in TEXTS.items() if _names(text) & found}
    return [other for other in found if other in SPECIAL or KERNEL.get(other, other) in {**EXACT, **NEAR}]


def _names(text: ast.AST) -> set[str]:
    named = {node.id for node in ast.walk(text) if isinstance(node, ast.Name)}
    return named | {node.attr for node in ast.walk(text) if isinstance(node, ast.Attribute)}


def evaluated(name: str, text: ast.FunctionDef) -> dict[str, Callable[..., Any]]:
    """The formula and all that read it, made anew with this text of it."""
    spaces = {module: {**vars(operations), **vars(module)} for module in MODULES}
    for other, (module, own) in TEXTS.items():
        tree = ast.Module([text if other == name else own], [])
        exec(compile(tree, module.__name__, "exec"), spaces[module])
    for module, space in spaces.items():
        space.update({face: _made_of(space[face], spaces) for face in space if isinstance(space[face], ModuleType)})
        space.update({other: spaces[home][other] for other, (home, _) in TEXTS.items() if _is_of(module, other, home)})
    return {other: spaces[home][other] for other, (home, _) in TEXTS.items()}


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


@cache
def exact(name: str, dtype: Any) -> tuple[list[Array], Array]:
    """Arguments of a formula that numpy has too, edges and random numbers, and what numpy makes of them."""
    count = arrays(FORMULAS[name], name)
    edges = [*(dtype(x) for x in EDGES if abs(x) < np.finfo(dtype).max or x != x or abs(x) == np.inf), 1.25, -0.5]
    rows = np.array(list(product(edges, repeat=count)), dtype).T
    given: list[Any] = list(
        np.concatenate([rows, np.random.default_rng(0).standard_normal((count, 200))], 1, dtype=dtype)
    )
    if name == "where":
        given[0] = given[0] > 0
    given += [dtype(number) for number in NUMBERS.get(name, ())]
    with np.errstate(all="ignore"):
        return given, np.asarray(EXACT[name](*given))


@cache
def near(name: str, dtype: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Arguments of a smooth formula, its true values, and the numbers whose spacing counts."""
    at = drawn(name, arrays(FORMULAS[name], name), dtype)
    numbers = [dtype(number) for number in NUMBERS.get(name, ())]
    with mpmath.workprec(140):
        given = [[mpmath.mpf(float(x)) for x in (*row, *numbers)] for row in zip(*at, strict=True)]
        trues = [NEAR[name].true(*row) for row in given]
        of = NEAR[name].of
        return [*at, *numbers], trues, trues if of is None else [of(*row) for row in given]


def is_as_said(name: str, text: Callable[..., Any], dtype: Any) -> bool:
    """Whether a formula is what its truth says."""
    if name in SPECIAL and not is_right(text, name, dtype):
        return False
    name = KERNEL.get(name, name)
    if name in EXACT:
        given, expected = exact(name, dtype)
        return bool((bits(reading(text)(*given)) == bits(expected)).all())
    if name in NEAR and name in FORMULAS:
        given, trues, spaced = near(name, dtype)
        found = reading(text)(*given)
        return bool(np.isfinite(found).all()) and max(map(ulps, found, trues, spaced)) <= NEAR[name].ulp
    return True


def is_found(name: str, text: ast.FunctionDef) -> bool:
    """Whether a formula with this text, or one that reads it, is not what it should be."""
    made = evaluated(name, text)
    try:
        return not all(is_as_said(other, made[other], dtype) for other in readers(name) for dtype in TYPES)
    except (ArithmeticError, TypeError, ValueError, OverflowError):
        return True


@pytest.mark.long
@pytest.mark.parametrize("name", TEXTS)
def test_every_change_is_found(name: str) -> None:
    assert not is_found(name, TEXTS[name][1])
    missed = [what for what, text in mutants(TEXTS[name][1]) if not is_found(name, text)]
    assert sorted(missed) == sorted(what for what in EQUAL if what.startswith(f"{name}: "))
