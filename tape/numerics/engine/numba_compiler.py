"""What numba and llvmlite do not promise to keep, by which code is compiled: for a level of machine, quickly, and kept.

Beside `numba_internals`, of which code is written, nothing else touches it.
"""

# numba's own classes and functions carry no types.
# pyright: basic, reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportCallIssue=false
import copy
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, wraps
from typing import Any, Protocol

import llvmlite
import llvmlite.binding as llvm
import numba
from numba import types
from numba.core import ir as numba_ir
from numba.core.caching import FunctionCache, dumps
from numba.core.ccallback import CFunc
from numba.core.codegen import CPUCodeLibrary, JITCPUCodegen
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

from ....base.collector import collector_paused
from ..software.fma64 import fma64
from ..software.functions import FMA64, with_software
from .code_for import CODE_FOR, MASKED, levels, target

__all__ = [
    "COMPILING",
    "VERSIONS",
    "CFunc",
    "KernelCache",
    "assembly",
    "callback",
    "compiling",
    "dumps",
    "entry_point",
    "fma64_module",
    "fuses",
    "is_kept",
    "llvm_code",
    "target",
    "use_cache",
]

VERSIONS = f"numba {numba.__version__}, llvmlite {llvmlite.__version__}, {sys.implementation.cache_tag}"
"""What compiles."""

COMPILING: AbstractContextManager[Any] = global_compiler_lock
"""The lock that a thread holds while it compiles."""

# ------------------------------------------------------------------ the machine compiled for


@cache
def _codegen() -> JITCPUCodegen:
    """What makes code for the level of this machine, beside numba's own, which makes it for this very CPU."""

    class Leveled(JITCPUCodegen):
        def _get_host_cpu_name(self) -> str:
            return target()[1]

        def _get_host_cpu_features(self) -> str:
            return target()[2]

    return Leveled("dgrr.exec")


def assembly(text: str) -> str:
    """What LLVM makes of a module in its own language, on the machine compiled for."""
    triple, cpu, features = target()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    written: str = machine.emit_assembly(llvm.parse_assembly(text))
    return written


FUSED = """
declare float @llvm.fma.f32(float, float, float)
define float @probe(float %a, float %b, float %c) {
  %fused = call float @llvm.fma.f32(float %a, float %b, float %c)
  ret float %fused
}
"""


@cache
def fuses() -> bool:
    """Whether the machine compiled for fuses a product with a sum; what code for others lacks is put in elsewhere.

    Levels say it. For another CPU LLVM is asked, which takes as long as loading some kernels.
    """
    _, cpu, features = target()
    if CODE_FOR != "cpu":
        return True
    known = {(level.name, level.tuning): level.fuses for level in levels()}
    return known[cpu, features] if (cpu, features) in known else "fmaf" not in assembly(FUSED)


def llvm_code(compiled: CFunc, kind: Any) -> tuple[str, str]:
    """What numba makes of a function before any machine is known, and the symbol by which it is called.

    ``i32 symbol(i64 *result, i8 **error, arguments…)``. It is as numba wrote it only where NUMBA_OPT is 0.
    """
    with compiling():
        made = compiled._compiler.compile(kind.args, kind.return_type)
        made.library.finalize()  # links what it calls
    return made.library.get_llvm_str(), made.fndesc.llvm_func_name


# ------------------------------------------------------------------ compiled functions


def callback(body: Callable[..., Any], kind: Any) -> CFunc:
    """A C callback of a signature, not yet compiled; divisions by zero are those of IEEE-754."""
    return CFunc(body, (kind.args, kind.return_type), {}, {"error_model": "numpy"})


class _CopyingLess:
    """Stands for the module ``copy`` where numba inlines functions."""

    copy = staticmethod(copy.copy)

    @staticmethod
    def deepcopy(value: Any, memo: dict[int, Any] | None = None) -> Any:
        """A copy of a block within the same scope; of anything else a whole one."""
        shared = {id(value.scope): value.scope} if isinstance(value, numba_ir.Block) else memo
        return copy.deepcopy(value, shared)


_finalize, _optimize = CPUCodeLibrary.finalize, CPUCodeLibrary._optimize_final_module
_set_env = JITCPUCodegen.set_env


def _finalize_what_is_entered(library: Any) -> None:
    """Optimise a library and make machine code of it if Python or C can enter it; else only link it.

    What only compiled code calls is linked into every library that calls it, and optimised there with it. LLVM
    rewrites a module when it makes machine code of it: for ``generic`` it takes loads of some lanes apart, a lane after
    the other. A CPU elsewhere that has such loads is spared that; one that has none is faster with it, as what is taken
    apart is optimised then.
    """
    if not MASKED and any(function.name.startswith(ENTRANCES) for function in library._final_module.functions):
        _finalize(library)
        return
    for called in dict.fromkeys(library._linking_libraries):
        if hasattr(library, "_reload_init"):  # not in every version
            library._reload_init.update(called._reload_init)
        library._final_module.link_in(called._get_module_for_linking(), preserve=True)
    library._finalize_dynamic_globals()
    library._finalized = True


def _optimize_with_software(library: Any) -> None:
    """Optimise what is linked; software stands in it for what the machine lacks, where LLVM would call C's library."""
    if not fuses():
        text, needed = with_software(str(library._final_module), "software", rounds=True)  # kernels round by arithmetic
        library._final_module = llvm.parse_assembly(text)
        if needed:
            library._final_module.link_in(fma64_module(), preserve=True)
    _optimize(library)


@cache
def fma64_module() -> Any:
    """The module of `fma64`, whose name others find; all else is private to what it is linked into."""
    kind = types.float64(types.float64, types.float64, types.float64)
    text, symbol = llvm_code(callback(fma64, kind), kind)
    module = llvm.parse_assembly(text.replace(symbol, FMA64))
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration:
            each.linkage = "internal" if each.name != FMA64 else "linkonce_odr"
    return module


ENTRANCES = ("cfunc.", "_ZN7cpython")
"""How the names of functions begin through which C and Python enter compiled code."""


def _set_env_of_what_is_entered(codegen: Any, name: str, env: Any) -> None:
    """Tell machine code of its globals and constants in Python, where there is machine code."""
    if codegen._engine.get_global_value_address(name):
        _set_env(codegen, name, env)


@cache
def replacements() -> tuple[tuple[Any, str, Any], ...]:
    """What of numba is replaced while it compiles for us: the owner, the name, and what stands there."""
    from numba.core import inline_closurecall  # 0.05 s, where all that is needed may be kept

    return (
        (inline_closurecall, "copy", _CopyingLess),
        (CPUCodeLibrary, "finalize", _finalize_what_is_entered),
        (JITCPUCodegen, "set_env", _set_env_of_what_is_entered),
    )


_compiled_inside = dict[Any, Any]()
"""What numba compiles of its own while it does: it says that code generators cannot share it."""


@contextmanager
def replaced(replacements: Sequence[tuple[Any, str, Any]]) -> Generator[None]:
    """A block in which attributes are others: of the owner, by the name."""
    theirs = [getattr(owner, name) for owner, name, _ in replacements]
    try:
        for owner, name, ours in replacements:
            setattr(owner, name, ours)
        yield
    finally:
        for (owner, name, _), their in zip(replacements, theirs, strict=True):
            setattr(owner, name, their)


@contextmanager
def for_the_level() -> Generator[None]:
    """A block in which numba compiles and loads for the level of this machine."""
    context = cpu_target.target_context
    ours = [
        (context, "_internal_codegen", _codegen()),
        (context, "cached_internal_func", _compiled_inside),
        (CPUCodeLibrary, "_optimize_final_module", _optimize_with_software),
    ]
    with COMPILING:
        rtsys.initialize(context)  # numba's runtime is made ready as ever: others enter it
        with replaced(ours):
            yield


@contextmanager
def compiling() -> Generator[None]:
    """A block in which numba compiles for the level of this machine, in half of the time, to the same bits.

    Whenever it inlines a function it copies every block of it twice, and with each block the scope, which knows all
    variables of the function: for a kernel of many blocks a third of the time. The function is made anew for each
    place it is inlined at, so nobody else sees the scope. It makes so many objects that live until it ends that
    collecting garbage among them takes a twelfth of the time. And every function that a kernel calls is optimised and
    made machine code of as if it were called by itself: a third of what is left.
    """
    with for_the_level(), replaced(replacements()), collector_paused():
        yield


def entry_point(dispatcher: Any, arguments: tuple[Any, ...]) -> Any:
    """What runs a dispatcher's code for some types without looking at what it is given."""
    dispatcher.compile(arguments)
    return dispatcher.overloads[arguments].entry_point


class Files(Protocol):
    """Where a `KernelCache` keeps what it is given under a key."""

    def has(self, key: object) -> bool: ...

    def load(self, key: object) -> Any: ...

    def save(self, key: object, data: object) -> None: ...


class KernelCache(FunctionCache):
    """numba's cache of a function, over files of our own."""

    def __init__(self, function: Any, files: Files) -> None:
        # Without numba's own initialisation, which looks for a folder beside the source.
        self._name, self._py_func, self._enabled, self._files = repr(function), function, True, files

    def has(self, sig: Any) -> bool:
        """Whether there is machine code for a signature."""
        return self._files.has(self._index_key(sig, _codegen()))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept for a signature, or None. numba's own loads all that it knows first, scipy too: 0.3 s."""
        return self._load_overload(sig, target_context)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        data = self._files.load(self._index_key(sig, _codegen()))
        return None if data is None else CompileResult._rebuild(target_context, *data)

    def _save_overload(self, sig: Any, data: Any) -> None:
        self._files.save(self._index_key(sig, _codegen()), data._reduce())


def use_cache(compiled: Any, cache: KernelCache) -> None:
    """Let a dispatcher or callback load and save its machine code, which is made for the level of this machine."""
    compile_it = compiled.compile

    @wraps(compile_it)
    def compile_for_the_level(*arguments: Any) -> Any:
        sig = arguments[0] if arguments else compiled._sig
        with for_the_level() if cache.has(sig) else compiling():
            return compile_it(*arguments)

    compiled._cache, compiled.compile = cache, compile_for_the_level


def is_kept(compiled: Any, sig: Any) -> bool:
    """Whether the machine code of a dispatcher or callback for a signature only has to be loaded."""
    return isinstance(compiled._cache, KernelCache) and compiled._cache.has(sig)
