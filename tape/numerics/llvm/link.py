"""LLVM's modules linked to one, and optimised for a machine.

Nothing in them may be contracted or approximated that is not written so: LLVM's defaults, which hold here too.
"""

# llvmlite carries no types.
# mypy: disable-error-code="import-untyped"
# pyright: basic
import re
from collections.abc import Collection, Sequence
from typing import Any

import llvmlite.binding as llvm

from ..simd.codegen import SHARED


def machine_for(triple: str, cpu: str, features: str = "", abi: str = "") -> Any:
    """What writes code for a machine, which can be loaded at any address; but WebAssembly's, which begins at 0."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target, reloc = llvm.Target.from_triple(triple), "static" if triple.startswith("wasm") else "pic"
    return target.create_target_machine(
        cpu=cpu, features=features, opt=3, reloc=reloc, codemodel="default", abiname=abi
    )


def linked(texts: Sequence[str], machine: Any, public: Collection[str]) -> Any:
    """One module of several. What is not public is private to it, and that of each text to this text.

    So equal names that numba gave in several processes do not meet. What all texts share, `SHARED` says, stands once.
    """
    modules = [_parsed(text, machine) for text in texts]
    functions = [f for module in modules for f in module.functions]
    met = {f.name for f in functions if f.is_declaration or f.name.startswith(SHARED)}
    for module in modules:
        _hide(module, {*public, *met})
    first, *others = modules
    for other in others:
        first.link_in(other)
    _hide(first, public)
    return first


def optimised(module: Any, machine: Any, *, vectorised: bool) -> Any:
    """The module as LLVM makes it fast; ``vectorised`` are loops that it may make vectors of."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = vectorised
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def _parsed(text: str, machine: Any) -> Any:
    text = re.sub(r"^(target (datalayout|triple)|source_filename) = .*$", "", text, flags=re.M)
    head = f'target datalayout = "{machine.target_data}"\ntarget triple = "{machine.triple}"\n'
    return llvm.parse_assembly(head + text)


def _hide(module: Any, public: Collection[str]) -> None:
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration and each.name not in public:
            each.linkage = "internal"
