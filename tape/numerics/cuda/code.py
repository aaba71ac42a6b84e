"""The PTX of what a plan runs: kept on disk like machine code, written by processes of its own where it is missing."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ....base import kernel_cache
from ...errors import DgrrError
from ..engine.chain import Chain
from ..engine.compile_notice import compile_notice
from ..engine.disk_cache import stamp_of
from ..engine.kernel import Kernel
from ..engine.threads import THREADS
from ..llvm.worker import answers
from . import translate
from .entry import Operand


class TranslationError(DgrrError, RuntimeError):
    """A kernel that cannot be translated for a GPU."""


@dataclass(frozen=True)
class Wanted:
    """A kernel for an element type, or a chain of several: its links in order with the places of their operands."""

    versions: tuple[tuple[Kernel, np.dtype[Any]], ...]
    operands: tuple[tuple[Operand, ...], ...] | None = None
    locals: int = 0

    @classmethod
    def of(cls, kernel: Kernel, dtype: np.dtype[Any], chain: Chain | None) -> "Wanted":
        """What runs a kernel's call; ``chain`` is that of the kernel ``chain``."""
        if chain is None:
            return cls(((kernel, dtype),))
        operands = tuple(
            [
                tuple(map(Operand, link.operands, link.itemsizes, link.spreads or (None,) * len(link.operands)))
                for link in chain.links
            ]
        )
        return cls(tuple([(link.kernel, link.element) for link in chain.links]), operands, chain.local)

    @property
    def name(self) -> str:
        """For people."""
        return " + ".join(kernel.name for kernel, _ in self.versions)

    @cached_property
    def file(self) -> str:
        """The name of its file: a digest of all that the text depends on."""
        sources = [Path(translate.__file__), *(Path(k.body.__code__.co_filename) for k, _ in self.versions)]
        kinds = [(kernel.name, str(dtype)) for kernel, dtype in self.versions]
        text = f"{[stamp_of(source) for source in sources]} {kinds} {self.operands} {self.locals}"
        return f"{self.versions[0][0].name}-{sha256(text.encode()).hexdigest()[:32]}.ptx"

    def task(self, folder: Path) -> dict[str, Any]:
        """As the translating process is told of it."""
        versions = [(k.body.__module__, k.name, str(dtype)) for k, dtype in self.versions]
        return {"versions": versions, "operands": self.operands, "locals": self.locals, "path": str(folder / self.file)}


def ptx_of(wanted: Sequence[Wanted]) -> list[str]:
    """The PTX of each.

    Raises TranslationError for a kernel that cannot be had: it stands in a script, or its code asks for what a GPU has
    not.
    """
    for one in wanted:
        for kernel, _ in one.versions:
            if kernel.body.__module__ == "__main__":
                raise TranslationError(
                    f"kernel {kernel.name!r}: expected a function of a module that can be imported, got one of the "
                    "script that runs; move it to a file of its own"
                )
    found: dict[Wanted, str] = {}
    missing = [one for one in dict.fromkeys(wanted) if not _kept(one, found)]
    if missing:
        found |= _translated(missing)
    return [found[one] for one in wanted]


def _kept(one: Wanted, found: dict[Wanted, str]) -> bool:
    path = kernel_cache.folder() / one.file
    if path.is_file():
        found[one] = path.read_text()
    return one in found


def _translated(missing: Sequence[Wanted]) -> dict[Wanted, str]:
    """The texts of what has been translated now, and kept if the folder of kernels can be written."""
    with TemporaryDirectory() as folder, compile_notice(f"{len(missing)} kernels for the GPU", len(missing)) as told:
        workers = min(THREADS.count, len(missing))
        with ThreadPoolExecutor(workers) as pool:
            shares = [missing[i::workers] for i in range(workers)]
            for done in [pool.submit(_run, share, Path(folder), told) for share in shares]:
                done.result()
        texts = {one: (Path(folder) / one.file).read_text() for one in missing}
    for one, text in texts.items():
        kernel_cache.keep(one.file, text.encode())
    return texts


def _run(share: Sequence[Wanted], folder: Path, told: Callable[[str], None]) -> None:
    """Have one process translate a share. Raises TranslationError at the first that fails."""
    made = 0
    for _, error in answers("dgrr.tape.numerics.cuda.translator", "gpu", [one.task(folder) for one in share]):
        if error is not None:
            raise TranslationError(f"kernel {share[made].name}: expected code that a GPU can run, got {error}")
        told(share[made].name)
        made += 1
    if made < len(share):
        raise TranslationError(f"kernel {share[made].name}: the process that translates it ended: see its message")
