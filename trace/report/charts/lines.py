"""Lines over the steps, of several runs over each other, on one axis or two; the page fills in the numbers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bokeh.layouts import column
from bokeh.models import ColumnDataSource, CrosshairTool, Range1d

from .plots import COLOURS, DASHES, PARTING, item, plot, shade


class Drawn(NamedTuple):
    """A quantity of a run: `ys` as the page has its numbers, at the steps `xs`, or at each where there are none.

    `points`: it was measured at few steps, which have a point each, and is not smoothed. `look`: the place of its
    colour and dashes, if not those of the run.
    """

    run: int
    label: str
    ys: dict[str, Any]
    xs: dict[str, Any] | None = None
    points: bool = False
    look: int | None = None

    @property
    def colour(self) -> str:
        """Of the line."""
        return COLOURS[(self.run if self.look is None else self.look) % len(COLOURS)]

    @property
    def dash(self) -> list[int]:
        """Of the line: how long it is drawn and how long not."""
        return DASHES[(self.run if self.look is None else self.look) % len(DASHES)]


def lines(
    title: str, drawn: Sequence[Drawn], *, parting: int | None, height: int = 200, axes: Sequence[str] = ("linear",)
) -> dict[str, Any]:
    """A chart as the page has it: for each axis a plot of the same numbers, of which the first is shown."""
    empty: dict[str, Any] = {"x": [], "y": [], "smooth": []}
    sources = [ColumnDataSource(empty, name=f"line{i}") for i in range(len(drawn))]
    broken = ColumnDataSource({"x": []}, name="broken")
    plots = [_plot(axis, drawn, sources, broken, height, parting) for axis in axes]
    for made in plots[1:]:
        made.visible = False
        made.x_range = plots[0].x_range
    return {
        "title": title,
        "lines": [{**line._asdict(), "colour": line.colour, "dash": line.dash} for line in drawn],
        "item": item(column(*plots, sizing_mode="stretch_width")),
    }


def _plot(
    axis: str,
    drawn: Sequence[Drawn],
    sources: Sequence[ColumnDataSource],
    broken: ColumnDataSource,
    height: int,
    parting: int | None,
) -> Any:
    made = plot(height, name=axis, y_axis_type=axis)
    made.add_tools(CrosshairTool(dimensions="height", line_alpha=0.4))
    shade(made, parting)
    for line, source in zip(drawn, sources, strict=True):
        look = {"line_color": line.colour, "line_dash": line.dash, "source": source}
        if line.points:
            made.line("x", "y", line_width=1, **look)
            made.scatter("x", "y", marker="circle", size=6, color=line.colour, source=source)
            continue
        made.line("x", "y", name="raw", line_width=2, **look)
        made.line("x", "smooth", line_width=2, **look)
    made.extra_y_ranges = {"top": Range1d(start=0, end=1)}
    made.scatter("x", 0.95, source=broken, y_range_name="top", marker="x", size=9, line_width=2, line_color=PARTING)
    return made
