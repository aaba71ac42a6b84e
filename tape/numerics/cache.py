"""The disk cache of compiled kernels: one file per (source, signature, CPU), named by what it depends on.

numba's own cache falls short twice for code that promises bits. It watches only the file that defines a
function, so a change in an inlined helper leaves stale code; and it numbers its data files through a
shared index, so that two processes that compile versions of one function at the same time can each end
up loading the other's. A name that is the digest of everything the code depends on has neither fault.
"""

# numba's caching classes carry no types.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
import pickle
import warnings
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import llvmlite
import numba
from numba.core.caching import FunctionCache, dumps

NUMERICS = Path(__file__).parent


@cache
def source_digest(folder: Path) -> str:
    """SHA-256 over every source file of a folder and of the numerics folder, and the compiler's versions.

    What a kernel inlines stands in one of the two.
    """
    digest = sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    for path in sorted({*NUMERICS.glob("*.py"), *folder.glob("*.py")}):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _DigestNamedFiles:
    """Stands in for numba's index and numbered data files."""

    def __init__(self, folder: Path, name: str, stamp: str) -> None:
        self._folder, self._name, self._stamp = folder, name, stamp

    def _path(self, key: object) -> Path:
        digest = sha256(f"{self._stamp} {key!r}".encode()).hexdigest()
        return self._folder / f"{self._current}{digest[:32]}.nbc"

    @property
    def _current(self) -> str:
        """How the names of files made from the present sources begin."""
        return f"{self._name}-{self._stamp[:16]}-"

    def load(self, key: object) -> Any:
        try:
            return pickle.loads(self._path(key).read_bytes())
        except FileNotFoundError:
            return None

    def save(self, key: object, data: object) -> None:
        path = self._path(key)
        partial = path.with_name(f"{path.name}.{uuid4().hex}")
        partial.write_bytes(dumps(data))
        partial.replace(path)
        for stale in self._folder.glob(f"{self._name}-*.nbc"):
            if not stale.name.startswith(self._current):
                stale.unlink(missing_ok=True)


class KernelCache(FunctionCache):
    """numba's function cache over files named by digest."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        source = Path(function.__code__.co_filename)
        stamp = source_digest(source.parent)
        self._cache_file: Any = _DigestNamedFiles(Path(self.cache_path), function.__qualname__, stamp)


def keep_on_disk(compiled: Any, function: Any) -> None:
    """Let a numba dispatcher or callback load and save its machine code.

    Warns, and leaves it to be compiled in every process, where no folder for the cache can be written.
    """
    try:
        compiled._cache = KernelCache(function)
    except RuntimeError:
        _warn_of_no_folder()


@cache
def _warn_of_no_folder() -> None:
    warnings.warn(
        "dgrr: kernels are compiled anew in every process, because neither the package's folder nor a user cache "
        "folder can be written; set NUMBA_CACHE_DIR to a folder that can",
        RuntimeWarning,
        stacklevel=1,
    )
