"""The words of the kernels of convolutions: a plan's sizes, then tables of where the terms of results lie."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from ....numerics.engine.launch import Words
from ....numerics.simd.codegen import CACHE_LINE
from ....numerics.sizes import Sizes
from .plan import ConvPlan

# Positions of the words of `convolve` and `convolve_weights`.
(
    SAMPLES, GROUPS, CHANNELS, OUTPUTS, CLASSES, DEPTH, RESULTS, PADDED, BIAS,
    STRIPS, STRIP, ROWS, INNER, PHASES, LOWEST, SPAN, PLANE, IMAGE, PANEL, GRADIENT,
    STEP, SOURCE, SOURCE_PLANE, SOURCE_ROW, MIDDLE_TAPS, MIDDLE, LAST_TAPS, LAST, LAST_STEP, LAST_SOURCE,
    PHASE_TABLE, MIDDLE_TABLE, LAST_TABLE, CLASS_TABLE, OFFSET_TABLE, SMALL_TABLE,
    SMALL_IMAGE, SMALL_PANEL, SMALL_WIDTH, SMALL_STRIP, SMALL_TOP, SMALL_LEFT, SMALL_SPAN, TABLES,
) = range(44)  # fmt: skip

# Positions of the words of `pack_weights`.
(
    WEIGHT_GROUPS, WEIGHT_OUTPUTS, WEIGHT_CLASSES, WEIGHT_DEPTH, WEIGHT_PADDED,
    OUTPUT_STRIDE, GROUP_STRIDE, WEIGHT_TABLES,
) = range(8)  # fmt: skip

# Positions of the words of `interleave`: elements of a line of the source and of the output, elements between two
# neighbours of a class, then for each row where it begins in both and how many elements it has.
LINES, SOURCE_LINE, LINE, APART, INTERLEAVED_ROWS, ROW_TABLE = range(6)


def words(plan: ConvPlan) -> Words:
    """The words of the kernels that compute results and weight gradients."""
    first, middle, last = plan.first, plan.rest[:-1], plan.rest[-1]
    row = prod(axis.source for axis in plan.rest)
    offsets = [at * plan.itemsize for terms in _terms(plan) for at, _ in terms]
    tables = [list(plan.phases), _middle_rows(plan), [start for _, start in last.taps], _classes(plan), offsets]
    tables.append(plan.small.taps(first, last))
    starts = [TABLES + sum(map(len, tables[:i])) for i in range(len(tables))]
    return Words(
        plan.samples, plan.groups, plan.channels, plan.outputs, prod(plan.classes), plan.depth, plan.results,
        plan.padded, int(plan.bias),
        -(-first.results // plan.strip), plan.strip, first.results, plan.inner, len(plan.phases), *plan.ahead,
        plan.plane, plan.image_bytes, plan.panel_bytes, plan.gradient_bytes,
        first.step, first.source, first.source * row, row, prod(len(axis.taps) for axis in middle),
        prod(axis.results for axis in middle), len(last.taps), last.results, last.step, last.source,
        *starts, *plan.small, *(number for table in tables for number in table),
    )  # fmt: skip


def weight_words(plan: ConvPlan) -> Sequence[int]:
    """The words of the kernel that packs weights."""
    pitch = plan.taps if plan.swapped else plan.depth
    sizes = (plan.groups, plan.outputs, prod(plan.classes), plan.depth, plan.padded)
    offsets = [at for terms in _terms(plan) for _, at in terms]
    return (*sizes, pitch, plan.outputs * plan.depth, *_classes(plan), *offsets)


def interleave_words(plan: ConvPlan, size: Sizes) -> Sequence[int]:
    """The words of the kernel that puts the classes of results between each other, as elements of ``size``."""
    *outer, last = plan.axes
    rows, most = list[int](), [range(n) for n in size[:-1]]
    for outer_class, results in product(
        product(*map(range, plan.classes[:-1])), product(*(range(axis.results) for axis in outer))
    ):
        at = [i * axis.classes + r for i, axis, r in zip(results, outer, outer_class, strict=True)]
        if not all(i in inside for i, inside in zip(at, most, strict=True)):
            continue
        q, target = _flat(results, [axis.results for axis in outer]), _flat(at, size[:-1]) * size[-1]
        for r in range(last.classes):  # neighbours in the table are neighbours in the output
            source = (_flat((*outer_class, r), plan.classes) * plan.results) + q * last.results
            rows += [source, target + r, -(-(size[-1] - r) // last.classes)]
    lines = plan.samples * plan.groups * plan.outputs
    return (lines, prod(plan.classes) * plan.results, prod(size), last.classes, len(rows) // 3, *rows)


def _flat(place: Sequence[int], sizes: Sequence[int]) -> int:
    """The position of a place in row-major order."""
    position = 0
    for i, n in zip(place, sizes, strict=True):
        position = position * n + i
    return position


def _terms(plan: ConvPlan) -> Iterator[list[tuple[int, int]]]:
    """For each class where its terms lie, in the order of the contract: in the image, and in the weight."""
    axes, (lowest, span) = (plan.first, *plan.rest), plan.ahead
    taps = list(product(*(axis.taps for axis in axes)))
    pitch = (plan.outputs if plan.swapped else 1) * plan.taps
    for own in product(*(range(axis.classes) for axis in axes)):
        places: list[tuple[int, int]] = []
        for t, tap in enumerate(taps):
            if tuple(c for c, _ in tap) == own:
                steps, residue = divmod(tap[0][1], plan.first.step)
                row = plan.phases.index(residue) * (plan.strip + span) + steps - lowest
                places.append((t % plan.planes * plan.plane + row * plan.inner, t))
        yield [(c * plan.planes * plan.plane + at, c * pitch + t) for c in range(plan.channels) for at, t in places]


def _classes(plan: ConvPlan) -> list[int]:
    """For each class its terms, and those of the classes before it."""
    numbers, before = list[int](), 0
    for terms in _terms(plan):
        numbers += [len(terms), before]
        before += len(terms)
    return numbers


def _middle_rows(plan: ConvPlan) -> list[int]:
    """For the axes between first and last, for each combination of taps and each result: the source's row, or -1.

    A row begins so many elements behind the first one.
    """
    axes, found = plan.rest[:-1], list[int]()
    for taps in product(*(axis.taps for axis in axes)):
        for results in product(*(range(axis.results) for axis in axes)):
            row, inside = 0, True
            for axis, (_, start), q in zip(axes, taps, results, strict=True):
                at = q * axis.step + start
                row, inside = row * axis.source + at, inside and 0 <= at < axis.source
            found.append(row * plan.rest[-1].source if inside else -1)
    return found


@dataclass(frozen=True, slots=True)
class Workspace:
    """What a kernel of a plan needs besides addresses: its words, and memory for each part; and its operations."""

    fixed: Words
    part_bytes: int
    flops: int

    def words(self, strides: tuple[Sizes, ...]) -> Words:
        """The words: no operand is read by its strides."""
        return self.fixed

    def scratch(self, strides: tuple[Sizes, ...], parts: int) -> int:
        """Bytes for all parts, which begin at a cache line."""
        return self.part_bytes * parts + CACHE_LINE
