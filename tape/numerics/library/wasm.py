"""Modules of WebAssembly from object files, without a linker.

LLVM writes an object whose data begins at address 0, with every address and number of a function already in place: a
linker is to move them, and here nothing has to move. What the object imports, memory and the place of the stack, the
module defines, and it exports the functions that are public. Formats: the WebAssembly specification, "Binary Format";
the tool conventions of WebAssembly, "Linking".
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from ....base.errors import DgrrError

HEAD = b"\0asm\1\0\0\0"
CUSTOM, TYPE, IMPORT, FUNCTION, MEMORY, GLOBAL, EXPORT, CODE, DATA, COUNT = 0, 1, 2, 3, 5, 6, 7, 10, 11, 12
KEPT = (TYPE, FUNCTION, MEMORY, GLOBAL, EXPORT, COUNT, CODE, DATA)
"""The sections of a module, in their order."""

STACK = 1 << 18
"""Bytes of the stack, which lies behind the data and grows towards it."""

PAGE = 1 << 16

DEFINED = ("__linear_memory", "__stack_pointer")
"""What an object imports that a module can define."""

SYMBOLS, OF_FUNCTION, OF_DATA, OF_SECTION, UNDEFINED, NAMED = 8, 0, 1, 3, 0x10, 0x40


class UnlinkedError(DgrrError, RuntimeError):
    """An object that is no module by itself: it asks for functions, or its data does not begin at 0."""


class Bytes:
    """Bytes that are read from their beginning."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def __bool__(self) -> bool:
        """Whether any are left."""
        return self.at < len(self.data)

    def take(self, n: int) -> bytes:
        """The next ``n``."""
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self) -> int:
        """The next number in LEB128, not signed."""
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        """The next number in LEB128, signed."""
        begin, value = self.at, self.number()
        bits = 7 * (self.at - begin)
        return value - (1 << bits) if value >> (bits - 1) else value

    def text(self) -> str:
        """The next name."""
        return self.take(self.number()).decode()

    def block(self) -> bytes:
        """The next bytes, behind how many they are."""
        return self.take(self.number())


class ObjectSection(NamedTuple):
    """A part of a file: what it is, and its content."""

    kind: int
    data: bytes


def module_of(data: bytes, public: Collection[str]) -> bytes:
    """The module of an object file, which exports its memory, ``__heap_base`` behind all that it needs, and functions.

    Raises UnlinkedError for an object that asks for more than memory.
    """
    sections = _sections(data)
    found = {section.kind: section.data for section in sections if section.kind != CUSTOM}
    _require_nothing(Bytes(found.pop(IMPORT, b"\0")))
    heap = -(-_end(Bytes(found.get(DATA, b"\0"))) // 64) * 64 + STACK
    functions = {name: i for name, i in _functions(sections) if name in public}
    found[MEMORY] = b"\1\0" + number(-(-heap // PAGE))
    found[GLOBAL] = b"\2" + b"\x7f\1\x41" + signed(heap) + b"\x0b" + b"\x7f\0\x41" + signed(heap) + b"\x0b"
    exports = [_export("memory", 2, 0), _export("__heap_base", 3, 1), *(_export(n, 0, i) for n, i in functions.items())]
    found[EXPORT] = _vector(exports)
    return _written(found)


def module_of_functions(functions: Mapping[str, tuple[int, bytes]]) -> bytes:
    """A module that exports functions of two numbers of a type, with a result of it: the type and the code of each."""
    parts = {
        TYPE: _vector([b"\x60\2" + bytes([kind, kind]) + b"\1" + bytes([kind]) for kind, _ in functions.values()]),
        FUNCTION: _vector([number(i) for i in range(len(functions))]),
        EXPORT: _vector([_export(name, 0, i) for i, name in enumerate(functions)]),
        CODE: _vector([number(len(code) + 2) + b"\0" + code + b"\x0b" for _, code in functions.values()]),
    }
    return _written(parts)


def _written(parts: Mapping[int, bytes]) -> bytes:
    return HEAD + b"".join(bytes([kind]) + number(len(parts[kind])) + parts[kind] for kind in KEPT if kind in parts)


def _vector(items: Sequence[bytes]) -> bytes:
    return number(len(items)) + b"".join(items)


def number(value: int) -> bytes:
    """LEB128 of a number that is not negative.

    >>> number(300).hex()
    'ac02'
    """
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + number(rest) if rest else bytes([low])


def signed(value: int) -> bytes:
    """LEB128 of a number that may be negative: the last byte holds the sign.

    >>> signed(64).hex(), signed(-1).hex()
    ('c000', '7f')
    """
    low, rest = value & 0x7F, value >> 7
    done = rest == (-1 if low & 0x40 else 0)
    return bytes([low]) if done else bytes([low | 0x80]) + signed(rest)


def _export(name: str, kind: int, index: int) -> bytes:
    return number(len(name)) + name.encode() + bytes([kind]) + number(index)


def _sections(data: bytes) -> list[ObjectSection]:
    rest, found = Bytes(data[len(HEAD) :]), list[ObjectSection]()
    while rest:
        (kind,) = rest.take(1)
        found.append(ObjectSection(kind, rest.block()))
    return found


def _require_nothing(imports: Bytes) -> None:
    """Raise UnlinkedError for an import that a module cannot define."""
    for _ in range(imports.number()):
        imports.text()
        name, (kind,) = imports.text(), imports.take(1)
        if name not in DEFINED:
            raise UnlinkedError(
                f"expected an object that asks for {' and '.join(DEFINED)}, got one that asks for {name}"
            )
        if kind == 2:
            imports.take(1)
            imports.number()
        else:
            imports.take(2)


def _end(segments: Bytes) -> int:
    """Where the data ends."""
    end = 0
    for _ in range(segments.number()):
        kind, code, start = segments.number(), segments.take(1), segments.signed()
        if kind != 0 or code != b"\x41" or segments.take(1) != b"\x0b" or start < end:
            raise UnlinkedError("expected segments of data one behind the other")
        end = start + len(segments.block())
    return end


def _functions(sections: list[ObjectSection]) -> Iterator[tuple[str, int]]:
    """The functions of an object that have names, each with its number."""
    for section in sections:
        custom = Bytes(section.data)
        if section.kind == CUSTOM and custom.text() == "linking":
            custom.number()  # the version
            while custom:
                kind, part = custom.number(), Bytes(custom.block())
                if kind == SYMBOLS:
                    yield from _symbols(part)


def _symbols(table: Bytes) -> Iterator[tuple[str, int]]:
    for _ in range(table.number()):
        kind, flags = table.number(), table.number()
        if kind == OF_SECTION:
            table.number()
        elif kind == OF_DATA:
            table.text()
            for _ in range(0 if flags & UNDEFINED else 3):
                table.number()
        else:
            index = table.number()
            name = "" if flags & UNDEFINED and not flags & NAMED else table.text()
            if kind == OF_FUNCTION:
                yield name, index
