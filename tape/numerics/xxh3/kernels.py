"""The kernels that digest a list of arrays: what `Digests` writes its words for.

Each array is an item of `ITEM` words. Long arrays are shared among threads by their blocks; the others go whole.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
from ..engine.intrinsics import move, put_word, word
from ..engine.kernel import kernel, share
from ..simd.lanes import inlined
from .constants import DIGEST, STRIPE
from .message import digest, digest_of_sums, sum_blocks

ITEM = 11
HEAD, HEAD_BYTES, DATA, NBYTES, FIELD, ONE, OUT, AGAIN, SUMS, BLOCKS, BROKEN = range(ITEM)
"""Address and bytes of the head; where the address of the elements stands, and their bytes; which bits of a word are
exponents, and the lowest of them; where the digest goes, and where else (or 0); where what the blocks add goes, if that
is made beforehand (or 0), and how many blocks that are; whether `xxh3_sums` has met a number that is not finite."""

COUNT, ITEMS, TOTAL = range(3)
"""The words of a call: how many items there are, their address, how many blocks are made beforehand."""


@inlined
def _elements(item):
    """The address of an array's elements."""
    return word(word(item, DATA), 0)


@kernel
def xxh3_sums(table, ints, part, parts):
    """What the blocks of long arrays add to their accumulators, the blocks of all arrays shared among the parts."""
    first, n = share(word(ints, TOTAL), part, parts)
    for i in range(word(ints, COUNT)):
        item = word(ints, ITEMS) + 8 * ITEM * i
        blocks, sums = word(item, BLOCKS), word(item, SUMS)
        begin, stop = max(first, 0), min(first + n, blocks)
        if begin < stop and sum_blocks(
            sums + STRIPE * begin,
            begin,
            stop,
            word(item, HEAD),
            word(item, HEAD_BYTES),
            _elements(item),
            word(item, FIELD),
            word(item, ONE),
        ):
            put_word(item, BROKEN, 1)
        first -= blocks
    return 0


@kernel
def xxh3_digests(table, ints, part, parts):
    """The digests of the items, which the parts share; the status is 1 + the first item with an infinity or NaN."""
    first, n = share(word(ints, COUNT), part, parts)
    status = 0
    for i in range(first, first + n):
        item = word(ints, ITEMS) + 8 * ITEM * i
        out, sums, broken = word(item, OUT), word(item, SUMS), word(item, BROKEN) != 0
        head, head_bytes, data, nbytes = word(item, HEAD), word(item, HEAD_BYTES), _elements(item), word(item, NBYTES)
        field, one = word(item, FIELD), word(item, ONE)
        if sums:
            broken |= digest_of_sums(out, sums, head, head_bytes, data, nbytes, field, one)
            put_word(item, BROKEN, 0)
        else:
            broken = digest(out, head, head_bytes, data, nbytes, field, one)
        if word(item, AGAIN):
            move(word(item, AGAIN), out, DIGEST)
        if broken and status == 0:
            status = i + 1
    return status
