"""The machines that libraries are made for."""

import subprocess
import sys

import pytest

from dgrr.tape import DomainError
from dgrr.tape.numerics.library.targets import TARGETS, target_named
from dgrr.tape.numerics.llvm.link import machine_for
from dgrr.tape.numerics.llvm.worker import environment


def test_llvm_knows_each() -> None:
    for target in TARGETS.values():
        layout = str(machine_for(target.triple, target.cpu, target.features, target.abi).target_data)
        assert layout.startswith("e"), "little-endian"
        assert ("p:32:32" in layout) is (target.pointer == 32), target.name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("armv7-neon", "argument 'target': got 'armv7-neon': NEON of armv7 makes subnormal numbers zero, so it cannot"),
        ("aarch", "argument 'target': expected one of x86-64-v4, x86-64-v3, x86-64, aarch64, riscv64, armv7, wasm32, "),
        ("riscv46", "; did you mean 'riscv64'?"),
    ],
)
def test_others_are_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(DomainError) as caught:
        target_named(name)
    assert text in str(caught.value)


@pytest.mark.parametrize(("name", "masked"), [("x86-64-v3", True), ("aarch64", False)])
def test_loads_of_some_lanes_are_instructions_where_there_are_such(name: str, masked: bool) -> None:
    """LLVM takes them apart for the CPU at hand; a product then takes twice the time."""
    script = (
        "from dgrr.tape.numerics.library.objects import _kernel\n"
        "text = _kernel('dgrr.tape.ops.linear.kernels.gemm', 'gemm', 'float32')\n"
        "print(any('call' in line and '@llvm.masked.load.' in line for line in text.splitlines()))"
    )
    command, env = [sys.executable, "-c", script], environment(TARGETS[name].code_for)
    assert subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split() == [str(masked)]
