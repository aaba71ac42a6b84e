"""The machines that libraries are made for: what LLVM is told of each, and what the writers of kernels must know."""

from dataclasses import dataclass

from ....base.suggest import did_you_mean
from ...errors import DomainError
from ..engine.code_for import LEVELS, elsewhere
from ..software.functions import Fused


@dataclass(frozen=True, slots=True)
class Target:
    """A machine. No bit depends on what is said of it.

    ``vector`` are bytes of a vector register, ``bundle`` those of the vectors of long loops: few where registers are
    few. ``fused`` says who fuses a product with a sum: the machine, arithmetic that has the same bits, or WebAssembly's
    relaxed instruction, which an engine may carry out by two roundings. ``rounds`` is whether the machine has
    instructions that round to whole numbers. ``environment`` names what sets rounding and subnormals, where threads
    may have set them otherwise; ``pointer`` are the bits of an address.
    """

    name: str
    triple: str
    cpu: str
    features: str
    vector: int
    bundle: int
    fused: Fused = "native"
    rounds: bool = True
    environment: str = ""
    abi: str = ""
    pointer: int = 64

    @property
    def code_for(self) -> str:
        """What the process that writes its kernels is started with."""
        return elsewhere(self.vector, self.bundle)


RISCV = "+m,+a,+f,+d,+c"

ARM = "+vfp4d16,-neon"

WASM = "+simd128,+bulk-memory,+sign-ext,+nontrapping-fptoint,+mutable-globals"

RELAXED = f"{WASM},+relaxed-simd"

TUNING = {level.name: level.tuning for level in LEVELS}

TARGETS = {
    t.name: t
    for t in (
        Target("x86-64-v4", "x86_64-unknown-linux-gnu", "x86-64-v4", TUNING["x86-64-v4"], 64, 256, environment="x86"),
        Target("x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", TUNING["x86-64-v3"], 32, 256, environment="x86"),
        Target("x86-64", "x86_64-unknown-linux-gnu", "x86-64", "", 16, 64, "software", False, "x86"),
        Target("aarch64", "aarch64-unknown-linux-gnu", "generic", "", 16, 128, environment="aarch64"),
        Target(
            "riscv64", "riscv64-unknown-linux-gnu", "generic-rv64", RISCV, 16, 64, "native", False, "riscv", "lp64d"
        ),
        Target("armv7", "armv7-unknown-linux-gnueabihf", "generic", ARM, 16, 64, "native", False, "arm", pointer=32),
        Target("wasm32", "wasm32-unknown-unknown", "generic", WASM, 16, 64, "software", pointer=32),
        Target("wasm32-relaxed", "wasm32-unknown-unknown", "generic", RELAXED, 16, 64, "relaxed", pointer=32),
    )
}
"""By name: those that the tests run, natively, under emulation or in an engine."""

REFUSED = {
    "armv7-neon": "NEON of armv7 makes subnormal numbers zero, so it cannot have the bits of training; take 'armv7', "
    "whose VFP keeps them",
}
"""What cannot have the same bits, and why."""


def target_named(name: str) -> Target:
    """The target of a name. Raises DomainError for another, with what is wrong with it."""
    if name in TARGETS:
        return TARGETS[name]
    if name in REFUSED:
        raise DomainError(f"export_library: argument 'target': got {name!r}: {REFUSED[name]}")
    advice = did_you_mean(name, list(TARGETS)) or ""
    raise DomainError(f"export_library: argument 'target': expected one of {', '.join(TARGETS)}, got {name!r}{advice}")
