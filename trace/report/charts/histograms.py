"""The plot of a histogram; the page fills in that of the chosen param and step."""

from typing import Any

from bokeh.models import ColumnDataSource
from bokeh.plotting import figure

from .plots import CHOSEN, COLOURS, item


def outlines() -> dict[str, Any]:
    """Two outlines, of which the first is filled, the second dashed, as the page has them."""
    made: Any = figure(height=220, sizing_mode="stretch_width", toolbar_location=None, tools="", min_border_right=16)
    made.y_range.start = 0
    empty: dict[str, Any] = {"x": [], "y": []}
    for name, look in (
        ("chosen", {"fill_color": COLOURS[0], "fill_alpha": 0.35, "line_color": COLOURS[0], "line_width": 1.6}),
        ("first", {"fill_color": None, "line_color": CHOSEN, "line_dash": [5, 4], "line_width": 1.6}),
    ):
        made.patch("x", "y", source=ColumnDataSource(empty, name=name), **look)
    return item(made)
