"""A picture of a tensor, in a notebook and on a console."""

from html import escape

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from ...base.arrays import Array
from ...base.printed import panel
from ..showing import characters
from .cell_grid import CellGrid
from .image import PIXELS, image
from .in_characters import in_blocks, in_letters
from .summary import Summary


class Picture:
    """A picture of a tensor with a line that says what is in it, for notebooks and for rich consoles."""

    def __init__(self, array: Array) -> None:
        self._array, self.summary = array, Summary.of(array)

    def to_html(self, title: str = "") -> str:
        """HTML without scripts, of at most 60 kB."""
        lines = [str(self.summary)]
        shown = ""
        if self._array.size > 1:
            cells = CellGrid.of(self._array, PIXELS[0] // 4, PIXELS[1] // 4)
            shown = f"<div>{image(cells.grid, lines[0])}</div>"
            lines += cells.legend
        return panel(title, shown, *(f"<div>{escape(line)}</div>" for line in lines))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(str(self.summary))
        if self._array.size > 1:
            coloured = console.color_system is not None and not console.no_color and characters("▀", "")
            yield from (in_blocks if coloured else in_letters)(self._array, options.max_width)
