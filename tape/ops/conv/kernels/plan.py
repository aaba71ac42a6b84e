"""How a convolution is computed: its axes, and the sizes of images and tiles, decided from shapes.

A convolution and its adjoint by the input are one computation. Each result adds up the products of weights and of
elements of a *source*: along each axis result ``q`` meets a tap in the element ``q * step + start`` of the source,
and outside the source stands +0. The adjoint of a stride s has s *classes* of results along an axis, those of
equal residues; each tap belongs to one class, and step is 1.

The source is copied strip by strip into an *image* that fits a cache. It has a plane for each channel and each
combination of taps of all axes but the first, with the elements that the taps meet in the results' own order. So
what one tap meets in neighbouring results lies side by side, whatever the stride, the dilation and the padding.
"""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from math import prod

from ....numerics.simd.codegen import CACHE_LINE
from ....numerics.simd.pack import PANEL_VECTORS
from ....numerics.sizes import Sizes
from .axis import ONE, PlanAxis
from .small_plan import FEWEST_GROUPS, MOST_OUTPUTS, NONE, SmallGroups, small_groups
from .tile import ROW_VECTORS, SHORT_ROWS, TALL_ROWS, tiles

IMAGE_BYTES = 1 << 18
"""What an image may take of a second-level cache."""

FEWEST_RESULTS = 64
"""Results that a strip has at least, if it costs an image of more bytes: two tiles of the widest vectors."""


@dataclass(frozen=True)
class ConvPlan:
    """A convolution of ``samples`` of ``groups``, each of so many channels of the source and of the outputs.

    A weight lies as (groups, outputs, channels, taps), or if ``swapped`` as (groups, channels, outputs, taps).
    """

    samples: int
    groups: int
    channels: int
    outputs: int
    axes: tuple[PlanAxis, ...]
    itemsize: int
    _: KW_ONLY
    swapped: bool = False
    bias: bool = False

    @property
    def flops(self) -> int:
        """Its multiplications and additions."""
        return 2 * self.samples * self.groups * self.outputs * self.results * self.depth

    @property
    def first(self) -> PlanAxis:
        """The axis along which strips are cut."""
        return self.axes[0] if len(self.axes) > 1 else ONE

    @property
    def rest(self) -> tuple[PlanAxis, ...]:
        """The axes within a strip."""
        return self.axes[-max(len(self.axes) - 1, 1) :]

    @property
    def classes(self) -> Sizes:
        """Classes along each axis."""
        return tuple(axis.classes for axis in self.axes)

    @property
    def results(self) -> int:
        """Results of each class, for one output of one sample."""
        return prod(axis.results for axis in self.axes)

    @property
    def inner(self) -> int:
        """Results in a row of a strip."""
        return prod(axis.results for axis in self.rest)

    @property
    def taps(self) -> int:
        """Taps of the kernel."""
        return prod(len(axis.taps) for axis in self.axes)

    @property
    def depth(self) -> int:
        """Terms, of all classes together: one for each channel and tap."""
        return self.channels * self.taps

    # ------------------------------------------------------------------ tiles

    @property
    def padded(self) -> int:
        """Rows that all tiles of a group have at most, whatever the machine: so plans are the same on all."""
        counts = [(height, *tiles(self.outputs, height, SHORT_ROWS)) for height in TALL_ROWS]
        most = max(height * tall + SHORT_ROWS * short for height, tall, short in counts)
        return -(-most // SHORT_ROWS) * SHORT_ROWS  # vectors of a GPU

    # ------------------------------------------------------------------ images

    @property
    def planes(self) -> int:
        """Planes of an image for each channel."""
        return prod(len(axis.taps) for axis in self.rest)

    @cached_property
    def phases(self) -> tuple[int, ...]:
        """The residues, by the step of the first axis, of the source's rows that its taps meet."""
        return tuple(sorted({start % self.first.step for _, start in self.first.taps}))

    @cached_property
    def ahead(self) -> tuple[int, int]:
        """By how many steps taps of the first axis are ahead of a result: at least, and how many more at most."""
        steps = [start // self.first.step for _, start in self.first.taps]
        return min(steps), max(steps) - min(steps)

    @cached_property
    def strip(self) -> int:
        """Rows of results that share an image."""
        rows, columns = max(self.first.results, 1), max(self.inner, 1)
        row_bytes = max(self.channels, 1) * self.planes * len(self.phases) * columns * self.itemsize
        fitting = max(IMAGE_BYTES // row_bytes - self.ahead[1], -(-FEWEST_RESULTS // columns), 1)
        strips = -(-rows // fitting)
        return -(-rows // strips)

    @property
    def plane(self) -> int:
        """Elements of a plane: rows of each phase one after the other."""
        return len(self.phases) * (self.strip + self.ahead[1]) * self.inner

    @property
    def image_bytes(self) -> int:
        """Bytes of an image, behind which the vectors of a tile may be read; whole cache lines."""
        elements = self.channels * self.planes * self.plane
        return _lines(elements * self.itemsize) + max(PANEL_VECTORS, ROW_VECTORS) * CACHE_LINE

    @property
    def panel_bytes(self) -> int:
        """Bytes of the cotangents of a strip for two vectors of outputs, in whole squares of vectors."""
        return (self.strip * self.inner + CACHE_LINE // self.itemsize) * PANEL_VECTORS * CACHE_LINE

    @cached_property
    def small(self) -> SmallGroups:
        """How weight gradients are computed where groups have few outputs."""
        few = (
            self.outputs <= MOST_OUTPUTS and self.groups >= FEWEST_GROUPS and len(self.axes) <= 2 and self.channels > 0
        )
        return small_groups(self.first, self.rest[-1], IMAGE_BYTES) if few else NONE

    @property
    def gradient_bytes(self) -> int:
        """Bytes in which a part computes weight gradients: an image, a panel, the chains of a group.

        For small groups chains and totals of a vector of outputs.
        """
        if self.small.image:
            return self.small.image + self.small.panel + 2 * self.depth * CACHE_LINE
        return self.image_bytes + self.panel_bytes + _lines(self.depth * self.outputs * self.itemsize)


def _lines(nbytes: int) -> int:
    """Bytes of whole cache lines."""
    return -(-nbytes // CACHE_LINE) * CACHE_LINE
