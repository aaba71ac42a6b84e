"""CUDA C++ to machine code by NVRTC, which needs no device; kept on disk as the CPU's kernels are.

A file's name is the digest of all that its code depends on: the text of source and headers, options, architecture,
and the version of NVRTC.
"""

# cuda.bindings carries no types.
# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false
import importlib
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from ....base import kernel_cache
from ....base.errors import DgrrError
from ..engine.disk_cache import UNUSED_DAYS

PACKAGE = Path(__file__).parents[3]
HEADERS = Path(__file__).parent

OPTIONS = (
    "-std=c++17",
    "-fmad=false",  # a product and a sum stay two operations
    "-ftz=false",  # subnormals stay
    "-prec-div=true",
    "-prec-sqrt=true",
    "-default-device",
)
"""What keeps the bits: said whatever NVRTC's own defaults are."""

INCLUDE = re.compile(r'^#include "(\w+\.cuh)"', re.MULTILINE)


class CudaCompileError(DgrrError, RuntimeError):
    """A source that NVRTC refuses, with what it says."""


def compiled(source: str, defines: Sequence[tuple[str, int | str]], architecture: str) -> bytes:
    """The code of a source of the package: a cubin for ``sm_90``, PTX for ``compute_90``.

    Raises ImportError without NVRTC, CudaCompileError with its log.
    """
    text = (PACKAGE / source).read_text()
    return compiled_text(source, text, defines, architecture)


def compiled_text(name: str, text: str, defines: Sequence[tuple[str, int | str]], architecture: str) -> bytes:
    """The same for a text, of which errors speak by the name."""
    options = (f"--gpu-architecture={architecture}", *OPTIONS, *(f"-D{key}={value}" for key, value in defines))
    headers = _headers(text)
    stamp = repr((version(), options, text, sorted(headers.items())))
    path = _path(name, stamp, ".cubin" if architecture.startswith("sm_") else ".ptx")
    with suppress(OSError):
        code = path.read_bytes()
        with suppress(OSError):  # a folder that can only be read serves too
            os.utime(path)
        return code
    code = _compile(name, text, headers, options)
    _keep(path, code)
    return code


@cache
def version() -> tuple[int, int]:
    """The version of NVRTC. Raises ImportError that says how to install it."""
    major, minor = _checked(_nvrtc().nvrtcVersion())
    return int(major), int(minor)


@cache
def _nvrtc() -> Any:
    try:
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            "dgrr: CUDA kernels are compiled by NVRTC, which was not found: expected the packages cuda-bindings and "
            f'nvidia-cuda-nvrtc, got {type(error).__name__} ({error}); install them with: pip install "dgrr[cuda]"'
        ) from error
    return nvrtc


def _headers(text: str) -> dict[str, str]:
    """The headers that a text includes, and those that they include."""
    found: dict[str, str] = {}
    pending = INCLUDE.findall(text)
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = (HEADERS / name).read_text()
            pending += INCLUDE.findall(found[name])
    return found


def _checked(result: Any) -> Any:
    error, *values = result
    if int(error):
        raise RuntimeError(f"dgrr: NVRTC failed: {error!r}")
    return values[0] if len(values) == 1 else values


def _compile(name: str, text: str, headers: dict[str, str], options: Sequence[str]) -> bytes:
    nvrtc, names = _nvrtc(), list(headers)
    program = _checked(
        nvrtc.nvrtcCreateProgram(
            text.encode(), name.encode(), len(names), [headers[n].encode() for n in names], [n.encode() for n in names]
        )
    )
    try:
        (failed,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        if int(failed):
            log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program))
            _checked(nvrtc.nvrtcGetProgramLog(program, log))
            said = log.decode(errors="replace").rstrip("\0 \n")
            raise CudaCompileError(f"dgrr: NVRTC {version()} refuses {name} with {' '.join(options)}:\n{said}")
        what = "CUBIN" if "=sm_" in options[0] else "PTX"
        code = b" " * _checked(getattr(nvrtc, f"nvrtcGet{what}Size")(program))
        _checked(getattr(nvrtc, f"nvrtcGet{what}")(program, code))
        return code
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _path(name: str, stamp: str, suffix: str) -> Path:
    return kernel_cache.folder() / f"{Path(name).stem}-{sha256(stamp.encode()).hexdigest()[:32]}{suffix}"


def _keep(path: Path, code: bytes) -> None:
    if not kernel_cache.keep(path.name, code):
        return
    oldest = time.time() - UNUSED_DAYS * 86400
    for other in path.parent.glob(f"{path.stem.split('-')[0]}-*{path.suffix}"):
        with suppress(OSError):  # another process was faster
            if other.stat().st_mtime < oldest:
                other.unlink()
