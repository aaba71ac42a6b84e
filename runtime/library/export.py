"""Exports: a captured function or training step as an object file with a header for C."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, get_args

from ... import __version__
from ...base.atomic_file import replacing
from ...tape import NUMERICS, DomainError
from ...tape.numerics.engine.compile_notice import compile_notice
from ...tape.numerics.library.targets import Target, target_named
from ...tape.numerics.library.wasm import module_of
from ...tape.numerics.llvm.worker import answers
from .entry import entry_text
from .header import facts_of, header
from .image import Image, image_of
from .loader import loader, types
from .source import LibraryError, LibrarySource, Weights

WORKER = "dgrr.tape.numerics.library.objects"

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Captured(Protocol):
    """What `capture_function` and `capture` give."""

    def library_source(self, weights: Weights) -> LibrarySource:
        """What a library is made of."""
        ...


@dataclass(frozen=True)
class Library:
    """A library for one target: its files, and what is said in the header."""

    target: str
    object: Path
    header: Path
    facts: dict[str, Any]

    @property
    def module(self) -> Path | None:
        """The module of WebAssembly, for such a target; beside it lie ``NAME.mjs``, which loads it, and its types."""
        return self.object.with_suffix(".wasm") if self.target.startswith("wasm") else None

    @property
    def nbytes(self) -> int:
        """Of the object file."""
        return self.object.stat().st_size


def export_library(
    captured: Captured,
    path: str | Path,
    *,
    target: str | Sequence[str] = "x86-64-v3",
    name: str | None = None,
    weights: Weights = "const",
) -> dict[str, Library]:
    """Write what was captured as a library of C, for the signature that is bound: it gives the bits of the call here.

    The object file asks for ``memcpy`` and ``memset`` alone, and on armv7 for whole-number divisions of the compiler's
    own library: no Python, no allocator, no library of mathematics. It runs in one thread, and any number of threads
    may run it, each with an arena of its own. Equal programs give equal files.

    Args:
        captured: what `capture_function` or `capture` gives; of a step the whole step with its update, from the
            parameters and the state that it has now.
        path: a folder, made if it is missing. For each target it gets a folder with ``NAME.o``, ``NAME.h`` and
            ``NAME.json``; those of WebAssembly also ``NAME.wasm``, a module that asks for nothing, ``NAME.mjs``, which
            loads it, and ``NAME.d.mts``.
        target: a name, or several: "x86-64-v4", "x86-64-v3", "x86-64", "aarch64", "riscv64", "armv7", "wasm32",
            "wasm32-relaxed".
        name: how its functions begin in C; default: that of the function.
        weights: of a function, whether the arrays that it closes over are constants, or lie in a state that the caller
            may fill otherwise. Those of a step always do.

    Returns the library for each target. Raises DomainError for another target, name or word; LibraryError for a
    kernel of a script.

    >>> import numpy as np
    >>> from tempfile import mkdtemp
    >>> from dgrr.runtime import capture_function, export_library
    >>> from dgrr.tape import ops
    >>> double = capture_function(lambda x: ops.add(x, x), np.zeros((2, 3), np.float32))
    >>> library = export_library(double, mkdtemp(), target="aarch64", name="twice")["aarch64"]
    >>> library.facts["inputs"]
    [{'name': 'in0', 'dtype': 'float32', 'shape': [2, 3], 'bytes': 24}]
    """
    targets = [target_named(each) for each in ([target] if isinstance(target, str) else target)]
    if weights not in get_args(Weights):
        raise DomainError(f"export_library: argument 'weights': expected 'const' or 'state', got {weights!r}")
    source = captured.library_source(weights)
    name = _name(source.name if name is None else name)
    graph = replace(source.graph, outputs={given: source.graph.outputs[given] for given in source.outputs.values()})
    image = image_of(source.lower(graph, source.constants), source)
    _require_modules(image)
    return {each.target: each for each in _written(Path(path), name, image, targets)}


def _name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise DomainError(
            f"export_library: argument 'name': expected letters, digits and _, as a name in C has them, got {name!r}; "
            "give one: name='model'"
        )
    return name


def _require_modules(image: Image) -> None:
    """Raise LibraryError for a kernel that another process cannot import."""
    for module, kernel, _ in image.versions:
        if module == "__main__":
            raise LibraryError(
                f"kernel {kernel!r}: expected a function of a module that can be imported, got one of the script that "
                "runs; move it to a file of its own"
            )


def _written(folder: Path, name: str, image: Image, targets: Sequence[Target]) -> list[Library]:
    """The files for each target; targets for which kernels are written alike share a process."""
    found = list[Library]()
    kinds = dict.fromkeys(target.code_for for target in targets)
    with compile_notice(f"{len(targets)} libraries", len(targets)) as told:
        for kind in kinds:
            alike = [target for target in targets if target.code_for == kind]
            made = [_begun(folder / target.name, name, image, target) for target in alike]
            given = list(answers(WORKER, kind, [task for task, _ in made]))
            for target, (task, library), (_, error) in zip(alike, made, given, strict=False):
                if error is not None:
                    raise LibraryError(f"{name} for {target.name}: expected code that it can run, got {error}")
                _write_beside(library)
                told(Path(task["path"]).name)
                found.append(library)
            if len(given) < len(alike):
                ended = alike[len(given)].name
                raise LibraryError(f"{name} for {ended}: the process that makes it ended: see its message")
    return found


def _write_beside(library: Library) -> None:
    """What goes with an object file: facts and a header; for WebAssembly also the module, and what loads it."""
    facts = library.facts
    texts = {".h": header(facts), ".json": json.dumps(facts, indent=1) + "\n"}
    if library.module:
        functions = [f"{facts['name']}_{part}" for part in ("run", "start")]
        _write(library.module, module_of(library.object.read_bytes(), functions))
        texts |= {".mjs": loader(facts), ".d.mts": types(facts)}
    for ending, text in texts.items():
        _write(library.object.with_suffix(ending), text.encode())


def _write(path: Path, data: bytes) -> None:
    with replacing(path) as file:
        file.write(data)


def _begun(folder: Path, name: str, image: Image, target: Target) -> tuple[dict[str, Any], Library]:
    """What the process that makes a library is told, and the library."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"target": target.name, "dgrr": __version__, "numerics": NUMERICS}
    entry, messages = entry_text(name, image, target, f"{name}: {about}, {image.digest}")
    public = [f"{name}_{part}" for part in ("run", "messages", "about", *(["start"] if image.state else []))]
    path = folder / f"{name}.o"
    task = {
        "target": target.name,
        "name": name,
        "entries": [entry],
        "public": public,
        "versions": image.versions,
        "path": str(path),
    }
    return task, Library(target.name, path, path.with_suffix(".h"), facts_of(name, image, messages, about))
