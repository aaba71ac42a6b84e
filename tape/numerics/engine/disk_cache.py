"""The disk cache of compiled kernels: one file per (source, signature, machine), named by what it depends on.

numba's own cache falls short twice for code that promises bits. It watches only the file that defines a
function, so a change in an inlined helper leaves stale code; and it numbers its data files through a
shared index, so that two processes that compile versions of one function at the same time can each end
up loading the other's. A name that is the digest of everything the code depends on has neither fault.
"""

# numba's caching classes carry no types.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
import os
import pickle
import time
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from ....base import kernel_cache
from ..software import fma64, functions
from .code_for import CODE_FOR, target
from .numba_compiler import VERSIONS, KernelCache, dumps, fuses, use_cache
from .sources import sources_digest

UNUSED_DAYS = 30
"""After how many days without use a file is removed, when another version of its kernel is saved.

Not at once: several environments share the folder, each with its version.
"""


@cache
def stamp_of(source: Path) -> str:
    """What the code of kernels of a source file depends on besides signature and machine."""
    software = () if fuses() else (fma64, functions)
    digests = [sources_digest(path) for path in (source, *(Path(str(module.__file__)) for module in software))]
    return sha256(" ".join([VERSIONS, CODE_FOR, *digests]).encode()).hexdigest()


def compiled_by(level: str) -> dict[str, str]:
    """What compiled kernels for a level: they can be loaded where it is the same."""
    return {"level": level, "machine": target()[0], "compiler": VERSIONS}


class _DigestNamedFiles:
    """Stands in for numba's index and numbered data files."""

    def __init__(self, name: str, stamp: str) -> None:
        self._name, self._stamp = f"{target()[1]}/{name}", stamp

    def _file(self, key: object) -> str:
        """Its name in the folder of kernels, below that of the level."""
        digest = sha256(f"{self._stamp} {key!r}".encode()).hexdigest()
        return f"{self._name}-{self._stamp[:16]}-{digest[:32]}.nbc"

    def _path(self, key: object) -> Path:
        return kernel_cache.folder() / self._file(key)

    def has(self, key: object) -> bool:
        """Whether anything was saved under a key."""
        return self._path(key).exists()

    def load(self, key: object) -> Any:
        """What was saved under a key; None if nothing was, or if it cannot be read."""
        path = self._path(key)
        try:
            data = pickle.loads(path.read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        _note_use(path)
        return data

    def save(self, key: object, data: object) -> None:
        if kernel_cache.keep(self._file(key), dumps(data)):
            self._remove_unused()

    def _remove_unused(self) -> None:
        oldest = time.time() - UNUSED_DAYS * 86400
        for path in kernel_cache.folder().glob(f"{self._name}-*"):
            with suppress(OSError):  # another process was faster
                if path.stat().st_mtime < oldest:
                    path.unlink()


def _note_use(path: Path) -> None:
    with suppress(OSError):  # a folder that can only be read serves too
        os.utime(path)


def keep_on_disk(compiled: Any, function: Any) -> None:
    """Let a numba dispatcher or callback load and save its machine code.

    It is compiled in every process where the folder of kernels cannot be written, which is warned of, and where the
    function stands in no file: typed at a prompt or into a notebook.
    """
    source = Path(function.__code__.co_filename)
    if source.is_file():
        name = function.__qualname__.replace("<", "").replace(">", "")  # not allowed in names on every platform
        use_cache(compiled, KernelCache(function, _DigestNamedFiles(name, stamp_of(source))))
