"""The machines that libraries are made for."""

import pytest

from dgrr.tape import DomainError
from dgrr.tape.numerics.library.targets import TARGETS, target_named
from dgrr.tape.numerics.llvm.link import machine_for


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
