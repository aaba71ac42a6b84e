"""The first lanes of a vector in memory: loads and stores that touch no other byte.

A CPU elsewhere that has no instructions for it moves them one after the other, each by a branch. There a function of
its own does so, which all kernels of a library share: written out wherever lanes are left over, it was most of the
code of norms. It begins by asking whether all lanes are wanted.
"""

# pyright: basic, reportAttributeAccessIssue=false
from ..engine import emit
from ..engine.code_for import APART
from ..engine.emit import I64, POINTER, VOID
from ..engine.numba_internals import ir
from .codegen import shared


def get_part(builder, pointer, left, kind, align=None):
    """Load the first ``left`` lanes of an LLVM vector, the others 0."""
    if not APART:
        return _get(builder, pointer, left, kind, align)

    def write(builder, pointer, left):
        with builder.if_then(builder.icmp_signed(">=", left, I64(kind.count))):
            builder.ret(emit.load(builder, pointer, kind, align))
        builder.ret(_get(builder, pointer, left, kind, align))

    name = f"get.{emit.name_of(kind)}.{align or emit.bytes_of(kind)}"
    return builder.call(shared(builder.module, name, kind, (POINTER, I64), write), (pointer, left))


def put_part(builder, vector, pointer, left):
    """Store the first ``left`` lanes of an LLVM vector."""
    if not APART:
        _put(builder, vector, pointer, left)
        return

    def write(builder, vector, pointer, left):
        with builder.if_then(builder.icmp_signed(">=", left, I64(vector.type.count))):
            emit.store(builder, vector, pointer)
            builder.ret_void()
        _put(builder, vector, pointer, left)
        builder.ret_void()

    kinds = (vector.type, POINTER, I64)
    name = f"put.{emit.name_of(vector.type)}"
    builder.call(shared(builder.module, name, VOID, kinds, write), (vector, pointer, left))


def get_whole_or_part(builder, pointer, left, kind):
    """`get_part` that asks first whether all lanes are wanted."""
    if APART:
        return get_part(builder, pointer, left, kind)
    with builder.if_else(builder.icmp_signed(">=", left, I64(kind.count))) as (all_of, some):
        with all_of:
            whole, whole_block = emit.load(builder, pointer, kind), builder.block
        with some:
            part, part_block = _get(builder, pointer, left, kind, None), builder.block
    found = builder.phi(kind)
    found.add_incoming(whole, whole_block)
    found.add_incoming(part, part_block)
    return found


def put_whole_or_part(builder, vector, pointer, left):
    """`put_part` that asks first whether all lanes are wanted."""
    if APART:
        put_part(builder, vector, pointer, left)
        return
    with builder.if_else(builder.icmp_signed(">=", left, I64(vector.type.count))) as (all_of, some):
        with all_of:
            emit.store(builder, vector, pointer)
        with some:
            _put(builder, vector, pointer, left)


def _get(builder, pointer, left, kind, align):
    mask = emit.first_lanes(builder, left, kind.count)
    return emit.masked_load(builder, pointer, mask, ir.Constant(kind, None), align)


def _put(builder, vector, pointer, left):
    emit.masked_store(builder, vector, pointer, emit.first_lanes(builder, left, vector.type.count))
