"""Arrays by name, which a notebook shows as a table and not as all their elements."""

from ..base.arrays import Array
from ..base.printed import panel
from .panels import grid
from .pictures.summary import Summary
from .showing import counted, shown_rows

_COLUMNS = ("name", "shape", "dtype", "least", "greatest", "mean", "zeros", "NaN", "infinite")


class NamedArrays(dict[str, Array]):
    """A dict as any other, but for a notebook."""

    def _repr_html_(self) -> str:
        """A row for each array; of many the first and the last."""
        first, last = shown_rows(len(self))
        names = list(self)
        above, below = ([self._row(names[i]) for i in part] for part in (first, last))
        elements = sum(array.size for array in self.values())
        title = f"{counted(len(self), 'array')}, {counted(elements, 'element')}"
        return panel(title, grid(_COLUMNS, above, below, last.start - first.stop))

    def _row(self, name: str) -> list[object]:
        of = Summary.of(self[name])
        return [name, str(of.shape), of.dtype, of.min, of.max, of.mean, of.zeros, of.nan, of.infinite]
