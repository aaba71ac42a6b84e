"""The API reference: pages of reStructuredText for each face of the package, by what its ``__all__`` names.

A face of many functions has a page for each family of them, and a class of many members a page of its own. What public
functions give back is documented too, although nobody imports it.
"""

import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import docstrings
from sphinx.pycode import ModuleAnalyzer

from dgrr.runtime.optim import Rule, Schedule
from dgrr.tape.nn import Layer
from dgrr.tape.ops import OPS
from dgrr.tape.record.derivative import NO_GRAD

FACES = (
    "dgrr.tape",
    "dgrr.tape.ops",
    "dgrr.tape.nn",
    "dgrr.tape.record",
    "dgrr.runtime.data",
    "dgrr.runtime.optim",
    "dgrr.runtime.onnx",
    "dgrr.runtime",
    "dgrr.trace",
)
"""What users and authors import from. What several name stands in the first."""
FAMILIES = "dgrr.tape.ops"
"""The face whose functions have a page for each family, which is a room below it."""
TITLES = {
    "attention": ("Attention", "Scaled dot-product attention, with masks."),
    "conv": ("Convolution", "Convolutions along any number of axes, and their transposes."),
    "elementwise": ("Arithmetic, activations, comparisons", "Each element from the elements at its position."),
    "indices": ("Indexing, gather and scatter", "Elements taken at indices that are values, and added at them."),
    "linear": ("Matrix products and linear algebra", "Matrix products, and what is made of them."),
    "loops": ("Loops and choices", "Functions that are recorded once: one that runs step after step, one of two."),
    "losses": ("Losses", "Losses for classes, numbers, distributions and sequences."),
    "norm": ("Normalisation", "Batch, layer and group normalisation, and their general form."),
    "planar": ("Convolution and pooling of images", "Convolutions and pools with two axes in their types."),
    "pooling": ("Pooling and upsampling", "Windows that slide along any number of axes, and the way back."),
    "random": ("Random numbers and dropout", "Random draws, the same on every machine, and dropout."),
    "reduce": ("Sums, means, softmax and other reductions", "Ops along axes: sums, extremes, products, moments."),
    "sampling": ("Sampling of images at a grid", "Images read at places that a grid names, and affine grids."),
    "shape": ("Shapes: reshape, slice, join, pad", "Ops about where elements stand."),
    "sorting": ("Sorting", "The order and the positions of elements."),
}
"""Room -> the title of its family's page, which is what people look for, and a sentence of what is there."""
LARGE = 10
"""From so many members on a class has a page of its own."""
DESCRIBED = (Layer, Rule, Schedule)
"""Classes whose docstrings say what their fields are, and which do what their base says."""
INTERNAL = ("BodyExtent", "Description", "OpsLaw", "Pattern", "Plans", "Removable", "RunPoint", "Words")
"""What public methods give back to other parts of the package."""

INTRODUCTION = """Everything public, by where it is imported from. A shape such as ``(*Bs, M, K)`` names its axes: one
name has one size within a call, ``*Bs`` stands for any number of axes, ``...`` for any shape.

"""


@dataclass
class Page:
    """One page: a title, a text, and what it documents by heading."""

    title: str
    text: str
    sections: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Heading -> the full name of each object, and the object."""
    below: dict[str, str] = field(default_factory=dict[str, str])
    """Name of each page below this one, and a sentence of what it is."""

    @property
    def sentence(self) -> str:
        """The first sentence of the text, without directives and the line that imports it."""
        paragraphs = [p for p in self.text.split("\n\n") if not p.startswith(("..", "``from "))]
        return " ".join(paragraphs[0].split()) if paragraphs else ""

    def __str__(self) -> str:
        parts = [_heading(self.title, "="), self.text, "\n\n"]
        entries = [entry for entries in self.sections.values() for entry in entries.items()]
        if len(entries) == 1 and inspect.isclass(entries[0][1]):
            parts += [_summary({f"{entries[0][0]}.{name}": x for name, x in _members(entries[0][1]).items()})]
        else:
            parts += map(_summary, self.sections.values())
        parts += [_toctree(self.below)] if self.below else []
        for heading, entries in self.sections.items():
            parts += [_heading(heading, "-")] if len(self.sections) > 1 else []
            parts += [_entry(name, x) for name, x in entries.items()]
        return "".join(parts)


def write(folder: Path) -> None:
    """Write all pages."""
    folder.mkdir(parents=True)
    for name, page in pages().items():
        (folder / f"{name}.rst").write_text(str(page))


def pages() -> dict[str, Page]:
    """Every page by its name."""
    found = {
        "index": Page(
            "API reference", INTRODUCTION, below={face: _first(import_module(face)) for face in sorted(FACES)}
        )
    }
    for face, entries in public().items():
        module = import_module(face)
        found[face] = page = Page(face, f".. module:: {face}\n\n{_first(module)}")
        apart = {name: x for name, x in entries.items() if _is_large(x)}
        parts = {name: _class_page(face, name, x) for name, x in apart.items()}
        rest = {name: x for name, x in entries.items() if name not in apart}
        if face == FAMILIES:
            parts |= _families(rest)
        else:
            parts |= {name: _module_page(name, x) for name, x in rest.items() if inspect.ismodule(x)}
            page.sections = _sections({name: x for name, x in rest.items() if not inspect.ismodule(x)})
        page.below = {name: part.sentence for name, part in parts.items()}
        found |= parts
    return found


def public() -> dict[str, dict[str, Any]]:
    """Of each face what it names first, by full names, with the classes of what its functions give back."""
    seen, found = set[int](), dict[str, dict[str, Any]]()
    for face in FACES:
        module = import_module(face)
        named = {f"{face}.{name}": getattr(module, name) for name in module.__all__}
        found[face] = {n: x for n, x in named.items() if n not in FACES and (not _keeps(x) or id(x) not in seen)}
        seen |= set(map(id, found[face].values()))
    for entries in found.values():
        given = {f"{c.__module__}.{c.__name__}": c for x in [*entries.values()] for c in _given(x)}
        entries |= {name: c for name, c in given.items() if id(c) not in seen}
        seen |= set(map(id, given.values()))
    return found


def _keeps(x: object) -> bool:
    """Whether an object is the same wherever it is named; two constants may happen to be one object."""
    return callable(x) or inspect.ismodule(x)


# ------------------------------------------------------------------ the parts of a page


def _sections(entries: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is documented by its kind."""
    found: dict[str, dict[str, Any]] = {"Classes": {}, "Functions": {}, "Errors": {}, "Constants": {}, "Results": {}}
    for name, x in entries.items():
        found[_kind(name, x)][name] = x
    return {kind: named for kind, named in found.items() if named}


def _kind(name: str, x: object) -> str:
    if not inspect.isclass(x):
        return "Functions" if inspect.isroutine(x) else "Constants"
    if issubclass(x, Exception):
        return "Errors"
    return "Classes" if name.rpartition(".")[0] in FACES else "Results"


def _families(entries: Mapping[str, Any]) -> dict[str, Page]:
    """A page for each family of functions: the room that they live in."""
    found = dict[str, Page]()
    for name, x in sorted(entries.items(), key=lambda entry: entry[1].__module__):
        family = ".".join(x.__module__.split(".")[:4])
        title, sentence = TITLES[family.rpartition(".")[2]]
        text = f"{_within(FAMILIES)}``from dgrr.tape import ops``\n\n{sentence}"
        page = found.setdefault(family, Page(title, text))
        page.sections.setdefault("", {})[name] = x
    return found


def _module_page(name: str, module: ModuleType) -> Page:
    """The functions of a module that a face names."""
    own = {n: x for n, x in vars(module).items() if inspect.isfunction(x) and x.__module__ == module.__name__}
    entries = {f"{module.__name__}.{n}": x for n, x in own.items() if not n.startswith("_") and x.__doc__}
    return Page(
        name, f".. currentmodule:: {module.__name__}\n\n{inspect.cleandoc(module.__doc__ or '')}", {"": entries}
    )


def _within(face: str) -> str:
    return f".. currentmodule:: {face}\n\n"


def _class_page(face: str, name: str, c: type) -> Page:
    """Where a class is imported from, what it is, and its members."""
    short = name.rpartition(".")[2]
    return Page(short, f"{_within(face)}``from {face} import {short}``\n\n{_first(c)}", {"": {name: c}})


def _heading(text: str, mark: str) -> str:
    return f"{text}\n{mark * len(text)}\n\n" if text else ""


def _toctree(below: Mapping[str, str]) -> str:
    """A table of the pages below, each with its sentence, and the navigation to them."""
    rows = [f"   * - :doc:`{name}`\n     - {sentence}\n" for name, sentence in below.items()]
    listed = "".join(f"   {name}\n" for name in below)
    return f"{_table(rows)}.. toctree::\n   :hidden:\n   :maxdepth: 1\n\n{listed}\n"


def _table(rows: list[str]) -> str:
    return f".. list-table::\n   :widths: 1 3\n   :class: summary\n\n{''.join(rows)}\n"


def _summary(entries: Mapping[str, Any]) -> str:
    """A table: each name, which leads to its entry, and the first sentence of its docstring."""
    rows = [f"   * - :py:obj:`~{name}`\n     - {_first(x, name)}\n" for name, x in entries.items()]
    return _table(rows)


def _first(x: object, name: str = "") -> str:
    """The first sentence of a docstring."""
    doc = inspect.cleandoc(x.__doc__ or "") if _says(x) else constant_doc(name)
    return re.sub("::$", ":", " ".join(docstrings.escaped(doc.split("\n\n")[0]).split()))


def _says(x: object) -> bool:
    """Whether an object has a docstring of its own; a constant has that of its class."""
    return bool(x.__doc__) and (
        _keeps(x) or inspect.isdatadescriptor(x) or isinstance(x, classmethod | cached_property)
    )


def _entry(name: str, x: Any) -> str:
    """The directive that documents an object."""
    if inspect.isclass(x):
        return f".. autoclass:: {name}\n{_options(x)}\n"
    if inspect.isroutine(x):
        by = ", ".join(_differentiable(x))
        return f".. autofunction:: {name}\n\n{f'   :Derivative by: {by}' if by else ''}\n\n"
    return f".. py:data:: {name}\n\n   {docstrings.escaped(constant_doc(name))}\n\n"


def _options(c: type) -> str:
    """Which members are documented: what neither a base in the reference nor Python itself says of it."""
    stops = [base.__name__ for base in c.__mro__[1:] if id(base) in _documented() or not _is_ours(base)]
    said = {name for base in c.__mro__[1:] if id(base) in _documented() for name in vars(base)}
    lines = [
        ":members:",
        f":inherited-members: {', '.join(stops)}",
        f":exclude-members: {', '.join(['instead', *said])}",
    ]
    lines += [] if issubclass(c, (*DESCRIBED, Exception)) else [":undoc-members:"]
    lines += [":special-members: __call__"] if "__call__" in vars(c) and "__call__" not in said else []
    return "".join(f"   {line}\n" for line in lines)


def _is_ours(c: type) -> bool:
    return c.__module__.startswith("dgrr.")


@cache
def _documented() -> frozenset[int]:
    return frozenset(id(getattr(import_module(face), name)) for face in FACES for name in import_module(face).__all__)


def _differentiable(function: Callable[..., Any]) -> list[str]:
    """The inputs of an op that have a gradient."""
    op = OPS.get(function.__name__)
    if op is None or op.private or not function.__module__.startswith(f"{FAMILIES}."):
        return []
    return [name for name, rule in zip(op.signature.inputs, op.vjp, strict=True) if rule is not NO_GRAD]


# ------------------------------------------------------------------ what is looked up


def _is_large(x: Any) -> bool:
    """Whether it is a class with many methods and properties."""
    return inspect.isclass(x) and not issubclass(x, (*DESCRIBED, Enum)) and len(_members(x)) >= LARGE


def _members(c: type) -> dict[str, Any]:
    """The methods and properties of a class that no base in the reference has: its own first, and methods first."""
    bases = [base for base in c.__mro__ if base is c or (_is_ours(base) and id(base) not in _documented())]
    latest = {name: x for base in reversed(bases) for name, x in vars(base).items()}
    found = {name: latest[name] for base in bases for name in vars(base)}
    said = {name: x for name, x in found.items() if not name.startswith("_") and _says(x)}
    return dict(sorted(said.items(), key=lambda entry: inspect.isdatadescriptor(entry[1])))


def constant_doc(name: str) -> str:
    """The docstring below an assignment, from whichever module has it; else what the value is."""
    face, _, short = name.rpartition(".")
    value = getattr(import_module(face), short)
    for module in [m for n, m in sys.modules.items() if n.startswith("dgrr.") and vars(m).get(short) is value]:
        if found := ModuleAnalyzer.for_module(module.__name__).find_attr_docs().get(("", short)):
            return " ".join(found).strip()
    return f"``{value}``"


def _given(x: object) -> Iterator[type]:
    """The classes of this package in what functions, methods and properties give back."""
    members = [m for name, m in inspect.getmembers_static(x) if not name.startswith("_")] if inspect.isclass(x) else [x]
    for function in members:
        plain = getattr(function, "fget", None) or getattr(function, "__func__", function)
        if inspect.isfunction(plain):
            yield from _classes(plain.__annotations__.get("return"))


def _classes(annotation: Any) -> Iterator[type]:
    for part in (typing.get_origin(annotation) or annotation, *typing.get_args(annotation)):
        if part is not annotation and typing.get_args(part):
            yield from _classes(part)
        elif inspect.isclass(part) and _is_ours(part) and part.__name__ not in INTERNAL:
            yield part
