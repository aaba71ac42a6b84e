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
    steps.textContent = `Kept of the steps ${known.map((step) => shown(step)).join(", ")}. Dashed: the first of them; filled: the last one up to the chosen step.`;
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

/** Both on one axis, as shares of the elements by width, so that bins of unequal widths compare. */
function drawHistogram(place, { first, chosen }) {
  if (!chosen) {
    place.replaceChildren(el("p", { className: "muted" }, "Not known."));
    return;
  }
  const outline = (one) => {
    const width = edge(one, 1) - edge(one, 0) || 1;
    const total = one.counts.reduce((a, b) => a + b, 0) || 1;
    const points = [[edge(one, 0), 0]];
    for (let bin = 0; bin < BINS; bin++) {
      points.push(
        [edge(one, bin), one.counts[bin] / total / width],
        [edge(one, bin + 1), one.counts[bin] / total / width],
      );
    }
    points.push([edge(one, BINS), 0]);
    return points;
  };
  const axis = {
    stroke: colour("muted"),
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { stroke: colour("line"), width: 1 },
    font: "12px system-ui, sans-serif",
  };
  const lines = first.step === chosen.step ? [chosen] : [chosen, first];
  const data = lines.map((one) => {
    const points = outline(one);
    return [points.map((p) => p[0]), points.map((p) => p[1])];
  });
  const ends = (k) => [
    Math.min(...data.map((one) => Math.min(...one[k]))),
    Math.max(...data.map((one) => Math.max(...one[k]))),
  ];
  const [xs, ys] = [ends(0), ends(1)];
  const slack = (xs[1] - xs[0] || 1) * 0.03;
  const made = new uPlot(
    {
      mode: 2,
      width: Math.max(place.clientWidth, 240),
      height: 220,
      padding: [8, 12, 0, 0],
      scales: {
        x: { time: false, auto: false, range: [xs[0] - slack, xs[1] + slack] },
        y: { auto: false, range: [0, ys[1] * 1.05 || 1] },
      },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((t) => shown(t, 3)) },
        { ...axis, size: 60, values: (_, ticks) => ticks.map((t) => shown(t, 3)) },
      ],
      cursor: { show: false },
      legend: { show: false },
      series: [
        {},
        ...lines.map((one, i) => ({
          label: `step ${one.step}`,
          stroke: colour(i ? "muted" : "run0"),
          fill: i ? undefined : `${colour("run0")}55`,
          width: 1.6,
          dash: i ? [5, 4] : [],
          facets: [
            { scale: "x", auto: false },
            { scale: "y", auto: false },
          ],
          paths: (u, s) => outlinePath(u, s),
        })),
      ],
    },
    [null, ...data],
    undefined,
  );
  made.root.setAttribute("role", "img");
  made.root.setAttribute("aria-label", "histogram; the button Table shows the numbers");
  const legend = el(
    "p",
    { className: "note" },
    `filled: step ${shown(chosen.step)}${lines.length > 1 ? `; dashed: step ${shown(first.step)}` : ""}; height: share of the elements by width`,
  );
  place.replaceChildren(made.root, legend);
  place.chart = made;
}

function outlinePath(u, s) {
  const [xs, ys] = u.data[s];
  const stroke = new Path2D();
  xs.forEach((x, i) => {
    const at = [u.valToPos(x, "x", true), u.valToPos(ys[i], "y", true)];
    if (i) stroke.lineTo(...at);
    else stroke.moveTo(...at);
  });
  const fill = new Path2D(stroke);
  fill.closePath();
  return { stroke, fill: u.series[s].fill ? fill : null, clip: null, flags: 3 };
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
