"""Cells as an image: squares of pixels in a PNG."""

import zlib
from base64 import b64encode
from html import escape
from struct import pack

import numpy as np

from .codes import FIRST_INK, FIRST_MARK, MARKS, PALETTE, Codes

PIXELS = (480, 320)
"""Width and height of a picture in a notebook at most, where a cell has 4 pixels or more."""


def _pixels(grid: Codes) -> Codes:
    """Cells as squares of pixels; few rows are higher, and marks are drawn where there is room."""
    rows, columns = grid.shape
    side = max(1, min(16, PIXELS[0] // columns, PIXELS[1] // rows))
    height = max(side, 12) if rows <= 2 else side
    made = grid.repeat(height, 0).repeat(side, 1)
    if side < 5:
        return made
    y, x = (2 * (np.arange(n) + 0.5) / n - 1 for n in (height, side))
    for i, mark in enumerate(MARKS):
        inked = np.tile(mark.drawn(y[:, None], x[None, :]), grid.shape) & (made == FIRST_MARK + i)
        made[inked] = FIRST_INK + i
    return made


def drawn(grid: Codes) -> bytes:
    """The file of an image of cells."""
    return png(_pixels(grid))


def png(pixels: Codes) -> bytes:
    """A file of an image whose pixels are codes of `PALETTE`."""
    height, width = pixels.shape
    upper = np.concatenate([np.zeros((1, width), np.uint8), pixels[:-1]])
    lines = np.concatenate([np.full((height, 1), 2, np.uint8), pixels - upper], axis=1)  # 2: what is above is taken off
    parts = {
        b"IHDR": pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0),
        b"PLTE": PALETTE.tobytes(),
        b"IDAT": zlib.compress(lines.tobytes(), 9),
        b"IEND": b"",
    }
    chunks = (pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data)) for kind, data in parts.items())
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def image(grid: Codes, said: str) -> str:
    """An element of HTML; `said` is for those who do not see it."""
    data = b64encode(drawn(grid)).decode()
    style = "image-rendering:pixelated;border:1px solid #888;max-width:100%;margin:0.3em 0"
    return f'<img src="data:image/png;base64,{data}" alt="{escape(said)}" style="{style}" />'
