// Histograms of the weights and of the gradients of one param, at the steps that the page has them of.

const BINS = 40;

function histogramSection() {
  const of = runs.map((run, i) => i).filter((i) => runs[i].figures.histograms.length);
  if (!of.length) {
    section(
      "histograms",
      "Histograms",
      el("p", { className: "muted" }, "Neither weights nor gradients are known of any step."),
    );
    return;
  }
  let run = of[0];
  let param = 0;
  const keeps = { weights: {}, gradients: {} };
  const params = select("param", [], (value) => {
    param = +value;
    redraw();
  });
  const chooser = select(
    "run",
    of.map((i) => [i, runLabel(i)]),
    (value) => {
      run = +value;
      offer();
      redraw();
    },
  );
  const steps = el("p", { className: "note" });

  function offer() {
    params.input.replaceChildren(...runs[run].figures.params.map((name, i) => el("option", { value: i }, name)));
    param = Math.min(param, runs[run].figures.params.length - 1);
    params.input.value = param;
  }

  const figures = ["weights", "gradients"].map((what) =>
    figure({
      label: `histogram of the ${what}`,
      caption: what === "weights" ? "Weights before the step, in 40 bins." : "Gradient of the step, in 40 bins.",
      tools: [el("h3", {}, what === "weights" ? "Weights" : "Gradient")],
      chart: (place) => drawHistogram(place, histograms(run, param, what)),
      table: (place) =>
        histogramTable(
          place,
          `${what} of ${runs[run].figures.params[param]}`,
          histograms(run, param, what),
          keeps[what],
        ),
    }),
  );
  const redraw = () => {
    for (const one of figures) one.redraw();
    const known = [...new Set(runs[run].figures.histograms.map((found) => found.step))];
    steps.textContent = `Kept of the steps ${known.map((step) => shown(step)).join(", ")}. Dashed: the first of them; filled: the last one up to the chosen step; height: share of the elements by width.`;
  };
  section(
    "histograms",
    "Histograms of weights and gradients",
    el("div", { className: "tools" }, of.length > 1 ? chooser.element : null, params.element),
    el("div", { className: "pair" }, ...figures.map((one) => one.element)),
    steps,
  );
  offer();
  redraw();
  on("step", redraw);
}

/** The first histogram of a param, and that of the last step up to the chosen one. */
function histograms(i, param, what) {
  const figures = runs[i].figures;
  const counts = array(figures.counts);
  const found = [];
  figures.histograms.forEach((one, at) => {
    if (one.param === param && one.what === what)
      found.push({ ...one, counts: counts.subarray(at * BINS, (at + 1) * BINS) });
  });
  const before = found.filter((one) => one.step <= state.step);
  const chosen = before.length ? before[before.length - 1] : found[0];
  return { first: found[0], chosen };
}

const edge = (one, bin) => number(one.low) + ((number(one.high) - number(one.low)) * bin) / BINS;

/** The outline of a histogram, as shares of the elements by width, so that bins of unequal widths compare. */
function outline(one) {
  const width = edge(one, 1) - edge(one, 0) || 1;
  const total = one.counts.reduce((a, b) => a + b, 0) || 1;
  const x = [edge(one, 0)];
  const y = [0];
  one.counts.forEach((count, bin) => {
    x.push(edge(one, bin), edge(one, bin + 1));
    y.push(count / total / width, count / total / width);
  });
  return { x: [...x, edge(one, BINS)], y: [...y, 0] };
}

function drawHistogram(place, { first, chosen }) {
  return drawPlot(place, report.charts.histogram, () => {
    named(place, "chosen").data = chosen ? outline(chosen) : { x: [], y: [] };
    named(place, "first").data = chosen && first.step !== chosen.step ? outline(first) : { x: [], y: [] };
  });
}

function histogramTable(place, caption, { chosen }, keep) {
  if (!chosen) {
    place.append(el("p", { className: "muted" }, "Not known."));
    return;
  }
  place.append(
    dataTable(
      [
        numbers("from", (i) => edge(chosen, i)),
        numbers("to", (i) => edge(chosen, i + 1)),
        numbers("elements", (i) => chosen.counts[i]),
      ],
      BINS,
      { caption: `${caption}, step ${chosen.step}`, keep },
    ),
  );
}
