"""What every plot of a page has, as models of Bokeh, which draws them; their colours are those of the page's style."""

import json
from collections.abc import Sequence
from typing import Any, cast

from bokeh.embed import json_item
from bokeh.model import Model
from bokeh.models.annotations import BoxAnnotation, Label, Span
from bokeh.plotting import figure
from bokeh.resources import Resources

DASHES: tuple[list[int], ...] = ([], [7, 4], [2, 3], [10, 3, 2, 3])
COLOURS = ("#1f7fc4", "#d2601a", "#149068", "#b0559a")
"""Of the runs, one after the other; each is readable on the page's light ground as well as on its dark one."""

PARTING = "#d0493f"
CHOSEN = "#808890"


def library() -> str:
    """The script of Bokeh alone, without widgets and tables."""
    return "\n".join(Resources(mode="inline", components=["bokeh"], log_level="error").js_raw)


def plot(height: int, **options: Any) -> Any:
    """An empty plot over the steps, as wide as its place: a drag looks closer, the line is the chosen step."""
    made = figure(
        height=height,
        sizing_mode="stretch_width",
        tools="xbox_zoom,xpan,reset,save",
        active_drag="xbox_zoom",
        toolbar_location="above",
        min_border_right=16,
        **options,
    )
    made.toolbar.logo = None
    made.add_layout(Span(name="chosen", dimension="height", line_color=CHOSEN, line_width=1.5))
    return made


def shade(made: Any, parting: int | None, *, told: bool = True) -> None:
    """The steps from which runs differ, where these are not all."""
    if not parting:
        return
    fill, width = (PARTING, 1) if told else (None, 2)
    made.add_layout(
        BoxAnnotation(
            left=parting, fill_color=fill, fill_alpha=0.07, line_color=PARTING, line_width=width, line_dash=[5, 4]
        )
    )
    if not told:
        return
    text = f"differs from step {parting:,} on"
    made.add_layout(
        Label(x=parting, y=4, y_units="screen", x_offset=6, text=text, text_color=PARTING, text_font_size="12px")
    )


def item(root: Model) -> dict[str, Any]:
    """A plot as the page has it: the same plot is always the same text, whatever was drawn before it."""
    found: dict[str, Any] = json.loads(json.dumps(json_item(root)))  # lists where it has tuples
    names: dict[str, str] = {}
    _collect(found["doc"], names)
    return {"doc": _renamed(found["doc"], names), "root_id": names[found["root_id"]]}


def _collect(part: object, names: dict[str, str]) -> None:
    for value in _parts(part):
        model = _fields(value)
        if "type" in model and isinstance(model.get("id"), str):
            names.setdefault(model["id"], f"m{len(names)}")
        _collect(value, names)


def _renamed(part: Any, names: dict[str, str]) -> Any:
    if isinstance(part, dict):
        return {k: names.get(v, v) if k == "id" else _renamed(v, names) for k, v in cast(dict[str, Any], part).items()}
    return [_renamed(value, names) for value in cast(list[object], part)] if isinstance(part, list) else part


def _parts(part: object) -> Sequence[object]:
    return cast(list[object], part) if isinstance(part, list) else list(_fields(part).values())


def _fields(part: object) -> dict[str, Any]:
    """What an object of JSON holds; nothing for what is none."""
    return cast(dict[str, Any], part) if isinstance(part, dict) else {}
