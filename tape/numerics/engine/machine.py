"""The machine that runs steps: one compiled loop over a table of kernel calls, and what its helpers run.

A row of the table is ``(kernel address, pointer table address, words address, parts)``. A call of several
parts is published to the helping threads, which claim parts one by one; the thread that runs the step claims
too, so a helper that comes late, or never, delays nothing: the step waits only for parts that were begun. Helpers that
are awake and do not come, as where other programs have the cores, rest: calls then run whole, as with one thread.

Publishing is one word, the ticket: ``generation << 32 | parts << 16 | next part``. A part is claimed by
raising the ticket by one with compare-and-swap, which fails if anything changed since it was read; so a
helper that slept through the end of a call cannot claim a part of the next by mistake.
"""

# numba's functions carry no types.
# pyright: basic, reportCallIssue=false, reportGeneralTypeIssues=false, reportArgumentType=false
from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit, types

from . import atomics
from .disk_cache import keep_on_disk
from .intrinsics import (
    DATA_FIELD,
    DTYPE,
    FLAGS,
    NDIM,
    OBJECT,
    ROW_MAJOR,
    SIZES,
    address_of,
    enter_environment,
    invoke,
    leave_environment,
    move,
    put_word,
    word,
)
from .numba_compiler import entry_point, is_kept

ROW = 4
KERNEL, TABLE, WORDS, PARTS = range(ROW)

LINE = 64
"""Bytes between the words of the control block, so that no two share a cache line."""
TICKET, DONE, CURRENT, STATUS, BUSY, STOP, YIELD, MISSED, RESTS, LENGTH, PARKED = (LINE * i for i in range(11))
"""The control block: ticket; parts that helpers finished; row being run; least status other than 0; whether a
thread runs a call with the helpers; whether they should end; address of sched_yield; calls in turn to which no helper
came; for how many calls the helpers rest yet, and for how many the last time; then one word per helper, 1 while it
sleeps."""

NO_STATUS = (1 << 63) - 1

KIND = 1
"""The word of a Python object that is the address of its type."""

FEED = 5
BUFFER, NBYTES, RANK, EXTENT, ELEMENT = range(FEED)
"""What a feed says of an input: address and bytes of its buffer, rank, address of the sizes, ``id`` of the dtype."""

SOURCE = 7
TARGET, BASE, STRIDE, PLACES, ADVANCE, ROWS, ROW_BYTES = range(SOURCE)
"""What a source says of an input of several steps: address of its buffer; a row of a batch lies at ``base + stride *
place``; address of the places of the first step's rows; from those of one step to the next; rows of a batch; bytes of a
row. A batch that lies whole somewhere is one row, and its place the address."""

SPINS = 400
"""Looks at a word before a waiting thread lets others run: about 20 us."""
YIELDS = 200
"""Times that an idle helper lets others run before it sleeps: a few milliseconds."""

MISSES = 64
"""Calls in turn to which no helper that is awake comes before they rest."""
FIRST_REST, LONGEST_REST = 1 << 10, 1 << 16
"""Calls for which they rest the first time and at most: twice as many each time, less those that they shared since."""


@njit(inline="always")
def _open(ticket):
    """Whether a ticket has parts left."""
    return (ticket & 0xFFFF) < ((ticket >> 16) & 0xFFFF)


@njit(inline="always")
def _claim(control, ticket):
    """Claim the next part of a ticket that is open."""
    return atomics.swap(control + TICKET, ticket, ticket + 1)


@njit(inline="always")
def _run_part(row, part, parts):
    return invoke(word(row, KERNEL), word(row, TABLE), word(row, WORDS), part, parts)


def _help(control, parked):
    """What a helper runs: claim parts until nothing comes for a while. Returns whether it should end."""
    outer = enter_environment()
    atomics.store(parked, 0)
    spins = yields = 0
    while yields < YIELDS and atomics.load(control + STOP) == 0:
        ticket = atomics.load(control + TICKET)
        row = atomics.load(control + CURRENT)
        if _open(ticket) and _claim(control, ticket):
            status = _run_part(row, ticket & 0xFFFF, (ticket >> 16) & 0xFFFF)
            if status != 0:
                atomics.least(control + STATUS, status)
            atomics.add(control + DONE, 1)
            spins = yields = 0
            continue
        atomics.pause()
        spins += 1
        if spins == SPINS:
            atomics.call_without_arguments(atomics.load(control + YIELD))
            spins, yields = 0, yields + 1
    atomics.store(parked, 1)
    leave_environment(outer)
    return atomics.load(control + STOP)


@njit(inline="always")
def _rests(control):
    """Whether the helpers rest during this call, of which their rest is then one less."""
    left = atomics.load(control + RESTS)
    if left == 0:
        return False
    atomics.store(control + RESTS, left - 1)
    return True


@njit
def _note(control, came):
    """Note whether a helper came to a call. Those that are awake and miss too many in turn are sent to rest."""
    length, missed = atomics.load(control + LENGTH), atomics.load(control + MISSED) + 1
    if came:
        missed, length = 0, max(length - 1, 0)
    elif atomics.load(control + PARKED) != 0:
        return
    elif missed == MISSES:
        missed, length = 0, min(max(2 * length, FIRST_REST), LONGEST_REST)
        atomics.store(control + RESTS, length)
    atomics.store(control + MISSED, missed)
    atomics.store(control + LENGTH, length)


@njit
def _run_shared(row, parts, control):
    """One call of several parts, with the helpers if no other thread has them; the least status other than 0, or 0.

    They are taken and given back here and not in Python, which an interrupt may leave between any two words.
    """
    if control == 0 or not atomics.swap(control + BUSY, 0, 1):
        return _run_part(row, 0, 1)
    if _rests(control):
        atomics.store(control + BUSY, 0)
        return _run_part(row, 0, 1)
    atomics.store(control + CURRENT, row)
    atomics.store(control + STATUS, NO_STATUS)
    done = atomics.load(control + DONE)
    generation = (atomics.load(control + TICKET) >> 32) + 1
    ticket = generation << 32 | parts << 16 | 1
    atomics.store(control + TICKET, ticket)
    part, mine = 0, 0
    while part < parts:
        status = _run_part(row, part, parts)
        mine += 1
        if status != 0:
            atomics.least(control + STATUS, status)
        ticket = atomics.load(control + TICKET)
        while _open(ticket) and not _claim(control, ticket):
            ticket = atomics.load(control + TICKET)
        part = ticket & 0xFFFF
    spins = 0
    while atomics.load(control + DONE) - done < parts - mine:
        atomics.pause()
        spins += 1
        if spins == SPINS:
            atomics.call_without_arguments(atomics.load(control + YIELD))
            spins = 0
    _note(control, mine < parts)
    status = atomics.load(control + STATUS)
    atomics.store(control + BUSY, 0)
    return 0 if status == NO_STATUS else status


@njit(inline="always")
def run_rows(rows, count, control, fault):
    """Every row in order, up to the first that fails: 0, or 1 with its status and index at the address ``fault``.

    A row of no parts runs others, and is given the control block for them in the place of its part.
    """
    for i in range(count):
        row = rows + 8 * ROW * i
        parts = word(row, PARTS)
        if parts == 1:
            status = _run_part(row, 0, 1)
        elif parts == 0:
            status = _run_part(row, control, 0)
        else:
            status = _run_shared(row, parts, control)
        if status != 0:
            put_word(fault, 0, status)
            put_word(fault, 1, i)
            return 1
    return 0


def _run(rows, count, control, fault):
    outer = enter_environment()
    failed = run_rows(rows, count, control, fault.ctypes.data)
    leave_environment(outer)
    return failed


@njit(inline="always")
def fits(array, kind, feed):
    """Whether the object at an address has the type ``kind``, of arrays, and is in row-major order with the rank, sizes
    and element type of a feed."""
    if word(array, KIND) != kind:
        return False
    head, rank = array + DATA_FIELD, word(feed, RANK)
    if word(head, NDIM) & 0xFFFFFFFF != rank or word(head, DTYPE) != word(feed, ELEMENT):
        return False
    if word(head, FLAGS) & ROW_MAJOR != ROW_MAJOR:
        return False
    same = True
    for axis in range(rank):
        same = same and word(word(head, SIZES), axis) == word(word(feed, EXTENT), axis)
    return same


def _run_fed(rows, count, control, fault, feeds, kind, batch):
    """One step on a batch; -1, and nothing done, if one of its objects is no array, or does not fit its feed.

    ``kind`` is the ``id`` of the type of arrays, ``feeds`` the address of a row for each input. It and ``fault`` are
    addresses and no arrays because handing over an array costs as much as a small kernel.
    """
    for k in range(len(batch)):
        if not fits(address_of(batch[k]), kind, feeds + 8 * FEED * k):
            return -1
    for k in range(len(batch)):
        feed = feeds + 8 * FEED * k
        move(word(feed, BUFFER), word(address_of(batch[k]) + DATA_FIELD, 0), word(feed, NBYTES))
    outer = enter_environment()
    failed = run_rows(rows, count, control, fault)
    leave_environment(outer)
    return failed


@njit(inline="always")
def _gather(source, step):
    """The rows of a step's batch into the buffer of the input, one behind the other."""
    target, nbytes, places = source[TARGET], source[ROW_BYTES], source[PLACES] + 8 * step * source[ADVANCE]
    for i in range(source[ROWS]):
        move(target + i * nbytes, source[BASE] + source[STRIDE] * word(places, i), nbytes)


def _run_steps(rows, count, control, fault, sources, kept, steps):
    """Several steps: before each, its batch is gathered into the input buffers; after it, what is kept of it is moved.

    ``sources`` has a row for each input, and ``kept`` a row for each value: its address, that of its copies, which lie
    one behind the other, its bytes. Returns how many steps ran whole.
    """
    outer = enter_environment()
    done = 0
    while done < steps:
        for source in sources:
            _gather(source, done)
        if run_rows(rows, count, control, fault.ctypes.data) != 0:
            break
        for value in kept:
            move(value[1] + done * value[2], value[0], value[2])
        done += 1
    leave_environment(outer)
    return done


def _find_arrays(objects, batches, inputs, kind, feeds, places):
    """How many batches in turn fit their feeds, as for `_run_fed`; where the elements of their arrays lie is written to
    ``places``. ``objects`` is the address of the objects of all batches, batch by batch.
    """
    for i in range(batches):
        for k in range(inputs):
            array = word(objects, inputs * i + k)
            if not fits(array, kind, feeds + 8 * FEED * k):
                return i
            put_word(places, inputs * i + k, word(array + DATA_FIELD, 0))
    return batches


help_out: Any = njit(nogil=True)(_help)
"""``help_out(control, parked)``: claim parts until idle for a while; whether to end."""

run: Any = njit(nogil=True)(_run)
"""``run(rows, count, control, fault)``: every row in order; control 0 runs without helpers."""

_run_fed_dispatcher: Any = njit(nogil=True)(_run_fed)

run_steps: Any = njit(nogil=True)(_run_steps)
"""``run_steps(rows, count, control, fault, sources, kept, steps)``: several steps in one call."""


def behind(sources: Any, kept: Any, steps: int) -> tuple[Any, Any]:
    """What `run_steps` takes for the steps behind so many."""
    sources, kept = sources.copy(), kept.copy()
    sources[:, PLACES] += 8 * steps * sources[:, ADVANCE]
    kept[:, 1] += steps * kept[:, 2]
    return sources, kept


find_arrays: Any = njit(_find_arrays)
"""``find_arrays(objects, batches, inputs, kind, feeds, places)``: where the batches lie, of as many as fit."""

for _dispatcher in (help_out, run, _run_fed_dispatcher, run_steps, find_arrays):
    keep_on_disk(_dispatcher, _dispatcher.py_func)


def _fed(inputs: int) -> tuple[Any, ...]:
    """The signature of `_run_fed` for a batch of so many objects."""
    return (*[types.int64] * 6, types.UniTuple(OBJECT, inputs))


def run_fed_is_ready(inputs: int) -> bool:
    """Whether the machine code of `run_fed` for so many objects only has to be loaded."""
    return is_kept(_run_fed_dispatcher, _fed(inputs))


@cache
def run_fed(inputs: int) -> Callable[[int, int, int, int, int, int, tuple[Any, ...]], int]:
    """``run_fed(inputs)(rows, count, control, fault, feeds, kind, batch)``: a batch into its buffers, then every row.

    ``batch`` is a tuple of so many objects. It is entered without numba's dispatcher, which looks at every argument.
    """
    entry: Callable[[int, int, int, int, int, int, tuple[Any, ...]], int]
    entry = entry_point(_run_fed_dispatcher, _fed(inputs))
    return entry
