"""The numbers of the tiled contractions of ``tiles.cuh``: which tiles there are, and what each asks of a device."""

from dataclasses import dataclass

from .written import REALS

PROCESSORS = 132
"""Multiprocessors for which tiles are chosen: a constant, so that a launch follows from its words alone."""

BLOCK = 256
"""Terms of a block of the contract."""

K_FAST, X_FAST, X_VECTOR = range(3)
"""How threads share the copies of an operand: neighbours along k, along x, 16 bytes along x."""

VECTOR_BYTES = 16


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of ``bm`` x ``bn`` outputs; the other numbers are those of ``tiles.cuh``.

    ``slices`` groups of threads of one thread block each have a block of terms of their own; 0 for one group that has
    all of them in turn.
    """

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int
    lm: int
    wn: int
    stages: int
    blocks: int
    slices: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return (self.bm // self.tm) * (self.bn // self.tn) * max(self.slices, 1)

    def shared(self, itemsize: int, *, totals: bool) -> int:
        """Bytes of shared memory: stages, and what is kept between blocks of terms."""
        stage = self.bk * (self.bm + self.bn + 2 * VECTOR_BYTES // itemsize)
        kept = self.bm * self.bn * (max(self.slices, 1) if totals else 0)
        return (max(self.slices, 1) * self.stages * stage + kept) * itemsize

    def defines(self, itemsize: int) -> tuple[tuple[str, int | str], ...]:
        """The macros."""
        numbers = {
            "BM": self.bm, "BN": self.bn, "BK": self.bk, "TM": self.tm, "TN": self.tn, "LM": self.lm, "WN": self.wn,
            "STAGES": self.stages, "BLOCKS": self.blocks,
        }  # fmt: skip
        kind = ("SLICES", self.slices) if self.slices else ("TILES", 1)
        return (("REAL", REALS[itemsize]), *numbers.items(), kind)


TILES = {
    4: {
        "wide": Tile(128, 256, 16, 8, 16, 4, 2, 3, 1),
        "tall": Tile(128, 128, 8, 16, 8, 4, 2, 4, 2),
        "flat": Tile(64, 128, 16, 8, 8, 4, 2, 3, 3),
        "thin": Tile(128, 64, 8, 8, 8, 4, 1, 4, 4),
        "split": Tile(128, 128, 16, 8, 8, 4, 2, 2, 2),
        "half": Tile(64, 64, 16, 8, 4, 4, 2, 3, 4),
        "low": Tile(32, 64, 16, 4, 4, 4, 2, 4, 4),
        "small": Tile(32, 32, 32, 4, 4, 4, 1, 3, 4),
        "slices": Tile(32, 64, 16, 4, 4, 4, 2, 4, 1, 4),
        "slices16": Tile(16, 32, 32, 4, 4, 4, 1, 4, 1, 4),
        "slices8": Tile(16, 32, 32, 2, 4, 4, 1, 4, 1, 4),
        "few": Tile(16, 16, 64, 2, 2, 4, 1, 4, 1, 1),
        "few4": Tile(16, 16, 32, 2, 2, 4, 1, 4, 1, 4),
    },
    8: {
        "flat": Tile(64, 128, 8, 8, 8, 4, 2, 3, 2),
        "split": Tile(64, 64, 16, 4, 8, 4, 1, 3, 2),
        "small": Tile(32, 32, 16, 4, 4, 4, 1, 3, 4),
        "slices": Tile(32, 64, 8, 4, 4, 4, 2, 3, 1, 4),
        "slices8": Tile(16, 32, 16, 2, 4, 4, 1, 4, 1, 4),
    },
}
"""The tiles by bytes of an element. They split outputs only, so they cannot be seen in the bits; found on an H200."""
