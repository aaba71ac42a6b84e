"""A library loaded into this process: linked by gcc, called by ctypes."""

# llvmlite carries no types.
# mypy: disable-error-code="import-untyped"
import ctypes
import platform
import subprocess
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite.binding import get_host_cpu_features

from dgrr.runtime import Library

Array = npt.NDArray[Any]

LINE = 64


def room(nbytes: int, fill: int = 0xFF) -> Array:
    """Bytes that begin at a cache line, and hold junk: as floats no numbers."""
    memory = np.full(nbytes + LINE, fill, np.uint8)
    return memory[-memory.ctypes.data % LINE :][:nbytes]


class Loaded:
    """A library of this machine. ``state`` is as it was made, if it has one."""

    def __init__(self, library: Library) -> None:
        self.facts = library.facts
        self.name: str = library.facts["name"]
        path = library.object.with_suffix(".so")
        command = ["gcc", "-shared", "-nostdlib", "-Wl,-z,defs", str(library.object), "-lc", "-o", str(path)]
        subprocess.run(command, check=True)
        self._dll: Any = ctypes.CDLL(str(path))
        self._run = self._dll[f"{self.name}_run"]
        self.arena = room(self.facts["arena"])
        self.state = room(self.facts["state"])
        if self.facts["state"]:
            assert self.start(self.state) == 0

    def start(self, state: Array) -> int:
        """Write the first state."""
        return int(self._dll[f"{self.name}_start"](_pointer(state), ctypes.c_size_t(state.nbytes)))

    def call(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> int:
        """Run it; the code."""
        given = [*([self.state] if self.facts["state"] else []), *inputs, *outputs, self.arena]
        return int(self._run(*map(_pointer, given), ctypes.c_size_t(self.arena.nbytes)))

    def __call__(self, *arrays: Any) -> list[Array]:
        """What it makes of arrays."""
        outs = [np.empty(o["shape"], o["dtype"]) for o in self.facts["outputs"]]
        inputs = [np.ascontiguousarray(a, i["dtype"]) for a, i in zip(arrays, self.facts["inputs"], strict=True)]
        code = self.call(inputs, outs)
        assert code == 0, self.message(code)
        return outs

    def message(self, code: int) -> str:
        """What a code stands for, as C finds it."""
        table = (ctypes.c_char_p * code).in_dll(self._dll, f"{self.name}_messages")
        return (table[code - 1] or b"").decode()

    @property
    def position(self) -> int:
        """Of what was wrong in the last call."""
        return int(self.arena[:8].view(np.int64)[0])

    def held(self) -> dict[str, Array]:
        """What lies in the state, by name."""
        return {
            h["name"]: self.state[h["at"] : h["at"] + h["bytes"]].view(h["dtype"]).reshape(h["shape"])
            for h in self.facts["held"]
        }


def _pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def host() -> str:
    """The target that this machine runs."""
    if platform.machine() in ("aarch64", "arm64"):
        return "aarch64"
    return "x86-64-v3" if get_host_cpu_features().get("avx2") else "x86-64"
