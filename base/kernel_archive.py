"""The folder of kernels as one file, which carries it to other machines: a tar archive in gzip.

Its first member is a JSON object: who compiled the kernels, and the SHA-256 of every file. The others are files of the
folder, by their names in it. They are machine code: whoever unpacks an archive runs what its writer wrote.
"""

import gzip
import io
import json
import re
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from . import kernel_cache
from .atomic_file import replacing
from .errors import DgrrError

CONTENTS = "dgrr-kernels.json"

PLAIN = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
NAME = re.compile(rf"({PLAIN}/)?{PLAIN}\.(nbc|ptx|cubin)")
"""What files of the folder are called, those apart that numba names itself; no such name leads anywhere else."""


class KernelArchiveError(DgrrError):
    """A file that is no archive of kernels, or none that may be unpacked."""


class KernelArchive(NamedTuple):
    """What an archive holds: who compiled it, and its files by their names in the folder."""

    made_by: Mapping[str, str]
    files: Mapping[str, bytes]


def pack(path: str, made_by: Mapping[str, str], names: Sequence[str]) -> None:
    """Write files of the folder, by their names in it, to an archive that is whole or not there. Raises OSError."""
    files = {name: (kernel_cache.folder() / name).read_bytes() for name in names}
    digests = {name: sha256(data).hexdigest() for name, data in files.items()}
    contents = json.dumps({"made_by": made_by, "files": digests}).encode()
    with replacing(path) as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, data in {CONTENTS: contents, **files}.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def read(path: str) -> KernelArchive:
    """What an archive holds, every byte of it checked.

    Raises KernelArchiveError for one that is cut, damaged, of something else or reaches out of the folder; OSError.
    """
    packed = Path(path).read_bytes()
    try:
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed)), mode="r:") as archive:
            data = {member.name: _data(path, archive, member) for member in archive}
        contents = json.loads(data.pop(CONTENTS))
        made_by, digests = ({**contents[key]} for key in ("made_by", "files"))
        if not all(isinstance(value, str) for value in made_by.values()):
            raise TypeError(f"{made_by} as what compiled it")
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, KeyError, TypeError, ValueError) as error:
        raise KernelArchiveError(f"{path}: expected what `dgrr cache export` wrote, whole, got {error!r}") from None
    wrong = sorted(name for name in data.keys() | digests.keys() if _digest(data.get(name)) != digests.get(name))
    if wrong:
        raise KernelArchiveError(f"{path}: {wrong[0]} is not as `dgrr cache export` wrote it; export it anew")
    return KernelArchive(made_by, data)


def _digest(data: bytes | None) -> str:
    return "" if data is None else sha256(data).hexdigest()


def _data(path: str, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """The bytes of a member that is a file of the folder, or says what is there."""
    if member.name != CONTENTS and not NAME.fullmatch(member.name):
        raise KernelArchiveError(
            f"{path}: expected names of compiled kernels, such as x86-64-v3/add-….nbc, got {member.name!r}; "
            "nothing was unpacked"
        )
    file = archive.extractfile(member) if member.isreg() else None
    if file is None:
        raise KernelArchiveError(f"{path}: expected files, got {member.name!r}, which is none; nothing was unpacked")
    return file.read()


def unpack(archive: KernelArchive) -> list[str]:
    """Keep the files in the folder; the names of those that were not there, and now are."""
    missing = [name for name in archive.files if not (kernel_cache.folder() / name).exists()]
    return [name for name in missing if kernel_cache.keep(name, archive.files[name])]
