// Plots that Bokeh draws of the models in the data, filled with the numbers of the page.

/** Plots are drawn one after the other; Bokeh stands behind this script, so that what needs no plot is there first. */
let turn = new Promise((there) => document.addEventListener("DOMContentLoaded", there));

/** Draw a plot into an element, once; `ready(model)` is told its root, now and whenever it is to be drawn again. */
function drawPlot(place, item, ready) {
  if (place.model) return ready(place.model);
  if (place.asked) return undefined;
  place.asked = true;
  const target = el("div");
  place.append(target);
  turn = turn.then(() => Bokeh.embed.embed_item(item, target)).then((views) => {
    place.model = views.get_by_id(item.root_id).model;
    for (const plot of plotsOf(place)) {
      if (matchMedia("(pointer: coarse)").matches) plot.toolbar.active_drag = null; // a finger scrolls the page
      plot.on_event("tap", (event) => goTo(event.x));
      plot.on_event("doubletap", () => views.find_one(plot).reset());
    }
    ready(place.model);
    place.dataset.drawn = "true";
    performance.mark("dgrr-plot");
  });
  return turn;
}

const plotsOf = (place) => (place.model ? place.model.children || [place.model] : []);
const named = (place, name) => place.model.document.get_model_by_name(name);

/** Put the line of the chosen step where it belongs. */
function follow(place) {
  for (const plot of plotsOf(place)) {
    const line = plot.center.find((model) => model.name === "chosen");
    if (line) line.location = state.step;
  }
}

/** Colours are those of the style: after a change of it all is painted anew. */
function repaint(place) {
  for (const plot of plotsOf(place)) for (const model of [plot, ...plot.center, ...plot.below, ...plot.left]) model.change.emit();
}

/** An average that forgets: each step counts `keep` times as much as the one behind it. NaN and infinities are left out. */
function smoothed(values, keep) {
  let sum = 0;
  let weight = 0;
  return Float64Array.from(values, (x) => {
    if (Number.isFinite(x)) {
      sum = keep * sum + (1 - keep) * x;
      weight = keep * weight + (1 - keep);
    }
    return weight ? sum / weight : NaN;
  });
}

/** The numbers of the lines of a chart. */
function numbersOf(chart) {
  return chart.lines.map((line) => {
    const ys = series(line.ys, runs[line.run].steps);
    return { ...line, ys, xs: line.xs ? array(line.xs) : Uint32Array.from(ys, (_, i) => i) };
  });
}

/** Fill the lines of a chart; `options` are `log` and `smooth`. */
function fillLines(place, lines, { log = false, smooth = 0 }) {
  const broken = new Set();
  lines.forEach(({ xs, ys, points }, i) => {
    const shownOf = (numbers) => Float64Array.from(numbers, (y) => (Number.isFinite(y) && (!log || y > 0) ? y : NaN));
    const line = { x: Float64Array.from(xs), y: shownOf(ys), smooth: smooth > 0 && !points ? shownOf(smoothed(ys, smooth)) : new Float64Array(xs.length).fill(NaN) };
    named(place, `line${i}`).data = line;
    ys.forEach((y, k) => Number.isFinite(y) || broken.add(xs[k]));
  });
  named(place, "broken").data = { x: Float64Array.from(broken) };
  const size = Math.max(...lines.flatMap(({ ys }) => (ys.length ? [Math.abs(ys[0])] : []))) || 1;
  for (const plot of plotsOf(place)) {
    if (plot.name === "linear") plot.y_range.default_span = size; // of a line that never changes
    if (plotsOf(place).length > 1) plot.visible = (plot.name === "log") === log;
    for (const renderer of plot.renderers) if (renderer.name === "raw") renderer.glyph.line_alpha = smooth > 0 ? 0.3 : 1;
  }
}

/** A chart of lines: its legend tells the numbers of the step under the pointer, else of the chosen one. */
function lineChart(chart, { caption = "", tools = [], look = () => ({}), also = [] }) {
  const lines = numbersOf(chart);
  const values = lines.map(() => el("b"));
  const step = el("span", { className: "muted" });
  const tell = (at) => {
    step.textContent = `step ${shown(at)}`;
    lines.forEach(({ xs, ys, points }, i) => {
      const found = points ? lastUpTo(xs, at) : placeOf(xs, at); // a validation holds up to the next
      values[i].textContent = found < 0 ? "–" : shown(ys[found], 6);
    });
  };
  const legend = el(
    "div",
    { className: "legend" },
    step,
    ...lines.map((line, i) => el("span", {}, swatch(line), line.label, values[i])),
  );
  const keep = {};
  const made = figure({
    caption,
    tools,
    label: `${chart.title}: ${lines.map((line) => line.label).join(", ")} over the steps`,
    chart: (place) =>
      drawPlot(place, chart.item, () => {
        fillLines(place, lines, look());
        follow(place);
        if (place.told) return;
        place.told = true;
        for (const plot of plotsOf(place)) plot.on_event("mousemove", (event) => tell(Math.max(Math.round(event.x), 0)));
        place.addEventListener("mouseleave", () => tell(state.step));
      }),
    table: (place) => linesTable(place, chart.title, lines, keep),
    also: [legend, ...also],
  });
  tell(state.step);
  on("step", () => {
    follow(made.picture);
    tell(state.step);
  });
  return made;
}

/** The numbers of lines as a table: a row for each step. */
function linesTable(place, caption, lines, keep) {
  const steps = [...new Set(lines.flatMap((line) => Array.from(line.xs)))].sort((a, b) => a - b);
  const value = (line) => (row) => {
    const at = placeOf(line.xs, steps[row]);
    return at < 0 ? NaN : line.ys[at];
  };
  place.append(
    dataTable(
      [numbers("step", (row) => steps[row]), ...lines.map((line) => numbers(line.label, value(line), 8))],
      steps.length,
      { caption, keep, current: (row) => steps[row] === state.step, pick: (row) => goTo(steps[row]) },
    ),
  );
}
