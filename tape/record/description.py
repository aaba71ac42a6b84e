"""The docstring of an op, a composed function or a class: what its author wrote, with what its record knows.

An author writes what it does, its ``Source:``, and an example. Shapes, dtypes and errors of a function follow from its
record; an author writes ``Shapes:`` or ``Dtypes:`` where annotations cannot say what attributes decide. A class has
them from its base, and errors from the kinds of its fields.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from textwrap import wrap
from typing import Any, TypeVar

from ..errors import DTypeError, ShapeError
from ..values.dtypes import DTYPES, DType
from .samples import Bad
from .signature import Signature, TensorType

FACTS = ("Source", "Shapes", "Dtypes", "Raises")
"""What stands behind the text, each by a paragraph that starts with its name, in this order."""

Facts = Mapping[str, Sequence[str]]
"""The entries of each fact, by name: a shape rule per overload, an error per entry of ``Raises``."""
FACT = re.compile(rf"^({'|'.join(FACTS)}): *(.*(?:\n +.*)*)\n*", re.MULTILINE)
ARGUMENT = re.compile(r"'(\w+)': expected ")
"""The argument that an error's text is about."""
ERROR = re.compile(r"[\w, ]+: ")
"""What an entry of ``Raises`` begins with, unless it says that there is none."""
ADVICE = re.compile(r"; .*?(?=, got |$)")
"""What to do about it."""
BREAK = re.compile(r"(?<=, as in) | (?=-> )")
"""Where a long line is broken."""

WIDTH = 116
"""Columns of a derived line; ``help`` indents by four more."""


@dataclass(frozen=True)
class Description:
    """A docstring in its parts."""

    text: str
    facts: Facts
    example: str

    def __str__(self) -> str:
        """The docstring."""
        facts = "\n".join([line for name, entries in self.facts.items() for line in _lines(name, entries)])
        return "\n\n".join([part for part in (self.text, facts, self.example) if part])


def require_docstring(kind: str, function: Callable[..., Any]) -> None:
    """Raise TypeError for a function without one, unless Python was told to drop all of them (``-OO``)."""
    if not function.__doc__ and sys.flags.optimize < 2:
        raise TypeError(f"{kind} {function.__name__}: a docstring is missing")


def described(doc: str) -> Description:
    """The parts of a docstring as its author wrote it, without indentation."""
    text, mark, example = doc.partition("\n\n>>>")
    facts = {name: _entries(body) for name, body in FACT.findall(text)}
    return Description(FACT.sub("", text).strip(), facts, (mark + example).strip())


def describe(doc: str, signature: Signature, errors: Sequence[Bad]) -> Description:
    """The same with what follows from the function's signature and from what its record says that it must refuse."""
    inputs = signature.cases[0][0]
    blamed: dict[type[Exception], Set[str]] = {ShapeError: _held_by_shape(inputs), DTypeError: _held_by_dtype(inputs)}
    raises = _raises(signature.names, errors, blamed, signature.inputs)
    return _with_facts(doc, {"Shapes": _shapes(signature), "Dtypes": [_dtypes(signature)], "Raises": raises})


def describe_fields(doc: str, names: Sequence[str], errors: Sequence[Bad], inherited: Facts) -> Description:
    """The same of a class with fields of these names: its facts or else its base's, behind what its fields refuse."""
    facts = {**inherited, **described(doc).facts}
    raises = [*_raises(names, errors), *facts.get("Raises", ())]
    return _with_facts(doc, inherited, {"Raises": raises} if raises else {})


def _with_facts(doc: str, derived: Facts, above: Facts | None = None) -> Description:
    """A docstring with facts that its author need not write, and some that stand above what is written."""
    written = described(doc)
    facts = {**derived, **written.facts, **(above or {})}
    return Description(written.text, {name: facts[name] for name in FACTS if name in facts}, written.example)


def _entries(body: str) -> list[str]:
    """One entry behind a fact's name, or the indented ones below it, each without its line breaks."""
    parts = re.split(r"\n {4}(?! )", body)[1:] if body.startswith("\n") else [body]
    return [" ".join(part.split()) for part in parts]


def _lines(name: str, entries: Sequence[str]) -> Iterator[str]:
    """A fact's lines: one entry behind its name, several below it."""
    if len(entries) == 1 and (name != "Raises" or not ERROR.match(entries[0])):
        yield from _wrapped(f"{name}: {entries[0]}", "")
    elif entries:
        yield f"{name}:"
        for entry in entries:
            yield from _wrapped(entry, "    ")


def _wrapped(line: str, indent: str) -> list[str]:
    """A line, if it is too long in two: before a result or an error's text, else broken between words."""
    if len(indent + line) <= WIDTH:
        return [indent + line]
    rest = f"{indent}    "
    head, *tail = BREAK.split(line, maxsplit=1)
    halves = [indent + head, *(rest + half for half in tail)]
    if max(map(len, halves)) <= WIDTH:
        return halves
    return wrap(line, WIDTH, initial_indent=indent, subsequent_indent=rest, break_on_hyphens=False)


# ------------------------------------------------------------------ shapes and dtypes


def _shapes(signature: Signature) -> list[str]:
    """``a (*Bs, M, K), b (K, N) -> (*Bs, M, N)`` for each overload."""
    return [f"{', '.join(_inputs(types))} -> {result.pattern.render({})}" for types, result in signature.cases]


def _inputs(types: Mapping[str, TensorType]) -> Iterator[str]:
    for name, t in types.items():
        if name != "return":
            yield f"{name} {t.pattern.render({})}{' or None' if t.optional else ''}"


def _dtypes(signature: Signature) -> str:
    """``logits and the result float32 or float64, alike; labels int64.``"""
    groups: dict[Any, list[str]] = {}
    for name, t in signature.cases[0][0].items():
        groups.setdefault(t.dtype, []).append("the result" if name == "return" else name)
    return "; ".join([_of_one_dtype(dtype, names) for dtype, names in groups.items()]) + "."


def _of_one_dtype(dtype: Any, names: Sequence[str]) -> str:
    """What inputs with one dtype in their annotations may be; with a variable they are all alike."""
    alike = f", {'all ' * (len(names) > 2)}alike" if len(names) > 1 and isinstance(dtype, TypeVar) else ""
    return f"{_joined(names, 'and')} {_held(_bound(dtype))}{alike}"


def _bound(dtype: Any) -> Any:
    """What a variable stands for; Any stands for all element types."""
    bound = getattr(dtype, "__bound__", dtype)
    return DType if bound is Any else bound


@lru_cache
def _held(bound: type[DType]) -> str:
    return _joined([str(d) for d, marker in DTYPES.items() if issubclass(marker, bound)], "or")


def _joined(names: Sequence[str], word: str) -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}" if len(names) > 1 else names[0]


# ------------------------------------------------------------------ errors


def _raises(
    names: Sequence[str],
    errors: Sequence[Bad],
    held: Mapping[type[Exception], Set[str]] | None = None,
    inputs: Sequence[str] = (),
) -> list[str]:
    """For each kind of error the arguments it may be about, and the first full text among the record's errors.

    ``held`` are the arguments that annotations hold, ``inputs`` those with a dtype; ``names`` all in their order.
    """
    blamed = {kind: set(of) for kind, of in (held or {}).items()}
    texts, said = dict[type[Exception], str](), {sample.error for sample in errors}
    for sample in errors:
        found = ARGUMENT.search(sample.text)
        blamed.setdefault(sample.error, set()).update(found.groups() if found else ())
        if found and sample.error not in texts and ", got " in sample.text:
            texts[sample.error] = f"argument {ADVICE.sub('', sample.text[found.start() :])}"
    known = {kind: [name for name in names if name in of] for kind, of in blamed.items()}
    return [_entry(kind, of, texts.get(kind), inputs) for kind, of in known.items() if of or kind in said]


def _entry(kind: type[Exception], about: Sequence[str], text: str | None, inputs: Sequence[str]) -> str:
    what = "has another dtype" if kind is DTypeError and {*about} <= {*inputs} else "does not fit"
    shown = f', as in "{text}".' if text else "."
    return f"{kind.__name__}: {_joined(about or ['an argument'], 'or')} {what}{shown}"


def _held_by_shape(types: Mapping[str, TensorType]) -> set[str]:
    """The inputs whose shape the annotations may refuse: those with axes by name, or with the axes of another."""
    held, packs = set[str](), set[object]()
    for name, t in types.items():
        if name != "return" and (t.pattern.before or t.pattern.after or t.pattern.pack in (None, *packs)):
            held.add(name)
        packs |= {t.pattern.pack} - {Any, None}
    return held


def _held_by_dtype(types: Mapping[str, TensorType]) -> set[str]:
    """The inputs whose dtype the annotations may refuse: those not of any dtype, or with the dtype of another."""
    held, seen = set[str](), set[object]()
    for name, t in types.items():
        if name != "return" and (t.dtype in seen or _bound(t.dtype) is not DType):
            held.add(name)
        seen |= {t.dtype} - {Any}
    return held
