"""Archives of numpy arrays, read without trust: nothing is inflated, and no array takes more memory than its bytes."""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from math import prod
from struct import error as StructError
from typing import IO, Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np

from ....base.arrays import Array
from ....base.errors import DgrrError

_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_NONSENSE = (ValueError, TypeError, LookupError, ArithmeticError, EOFError, RuntimeError, MemoryError, StructError)
"""What zipfile, numpy and json raise for bytes that make no sense; RuntimeError is also too deep a nest."""


class NonsenseError(DgrrError, ValueError):
    """What was read is not what anybody writes."""


@contextmanager
def as_nonsense() -> Generator[None]:
    """Turn what the reading of nonsense raises into a NonsenseError."""
    try:
        yield
    except NonsenseError:
        raise
    except (*_NONSENSE, BadZipFile) as error:
        raise NonsenseError(f"{type(error).__name__}: {str(error)[:200]}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a place before the beginning of the file
            raise
        raise NonsenseError(f"{error.strerror}") from error


class Archive:
    """The arrays in a file, by name. Raises NonsenseError for a file that is no such archive, or a packed one."""

    def __init__(self, file: IO[bytes]) -> None:
        with as_nonsense():
            self._zip = ZipFile(file)
            packed = [info.filename for info in self._zip.infolist() if info.compress_type != ZIP_STORED]
            if packed:
                raise NonsenseError(f"{packed[0]!r} is packed, and arrays are stored as they are")
            if sum(info.file_size for info in self._zip.infolist()) > os.fstat(file.fileno()).st_size:
                raise NonsenseError("its arrays have more bytes than the file")

    def __getitem__(self, name: str) -> Array:
        with as_nonsense(), self._zip.open(f"{name}.npy") as member:
            version = np.lib.format.read_magic(member)
            shape, fortran, dtype = _READERS[version](member)
            left = self._zip.getinfo(f"{name}.npy").file_size - member.tell()
            if dtype.hasobject or min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != left:
                raise NonsenseError(f"{name!r}: {left} bytes for an array of {dtype} {shape}")
            return _array(member.read(), dtype, shape, fortran)


def _array(data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], fortran: bool) -> Array:
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
