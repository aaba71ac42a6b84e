// The sections of the loss, and of what else changes by the step.

/** Move the line of the chosen step in the charts of an element. */
function followStep(element) {
  for (const place of element.querySelectorAll(".chart")) {
    if (!place.chart) continue;
    place.chart.redraw(false, false);
    tellChosen(place.chart);
  }
}

function lossSection() {
  const keep = {};
  const log = el("button", { type: "button" }, "Logarithmic");
  const range = el("input", {
    type: "range",
    min: 0,
    max: 0.99,
    step: 0.01,
    value: state.smooth,
    ariaLabel: "how much the losses are smoothed",
  });
  const told = el("output");
  const raw = runs.map((run, i) => ({ label: runLabel(i), xs: stepsOf(run), ys: array(run.loss), run: i }));
  const lines = () =>
    state.smooth > 0
      ? [
          ...raw.map((line) => ({ ...line, faint: true, label: `${line.label}, raw` })),
          ...raw.map((line) => ({ ...line, ys: smoothed(line.ys, state.smooth) })),
        ]
      : raw;
  const made = figure({
    caption:
      "Loss of each step before its update. Drag to look closer, press twice to see all; a click goes to the step. ✕: not finite.",
    tools: [log, el("label", {}, "smoothed", range, told)],
    chart: (place) => drawLines(place, lines(), { log: state.log, height: 320, from: firstDifference }),
    table: (place) => linesTable(place, "loss", lines(), keep),
  });
  const say = () => {
    log.setAttribute("aria-pressed", String(state.log));
    told.textContent = state.smooth > 0 ? shown(state.smooth, 2) : "not at all";
    range.value = state.smooth;
  };
  log.addEventListener("click", () => {
    state.log = !state.log;
    tell("log");
  });
  range.addEventListener("input", () => {
    state.smooth = +range.value;
    tell("log");
  });
  on("log", () => {
    say();
    made.redraw();
  });
  on("step", () => followStep(made.element));
  say();
  section("loss", "Loss", made.element);
}

/** The lines of a quantity that runs have under a name. */
const linesOf = (kind, name) => () =>
  runs
    .map((run, i) =>
      run[kind][name]
        ? { label: runLabel(i), xs: stepsOf(run), ys: series(run[kind][name], run.steps), run: i }
        : null,
    )
    .filter(Boolean);

function ratesSection() {
  const metrics = [...new Set(runs.flatMap((run) => Object.keys(run.metrics)))];
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.hyper)))];
  const changes = names.filter(
    (name) =>
      name.startsWith("lr") ||
      !runs.every((run) => !run.hyper[name] || "constant" in run.hyper[name]) ||
      new Set(runs.filter((run) => run.hyper[name]).map((run) => run.hyper[name].constant)).size > 1,
  );
  const quantities = [
    ...metrics.map((name) => ({ name, lines: linesOf("metrics", name) })),
    ...changes.map((name) => ({
      name: name === "lr" ? "learning rate (lr)" : name,
      lines: linesOf("hyper", name),
    })),
  ];
  if (runs.some((run) => run.figures.norms))
    quantities.push({
      name: "norm of all gradients",
      log: true,
      lines: () =>
        runs
          .map((run, i) => ({
            label: runLabel(i),
            xs: Array.from(array(run.figures.columns)),
            ys: array(run.figures.total),
            run: i,
            gaps: array(run.figures.columns).length < run.steps,
          }))
          .filter((line) => runs[line.run].figures.norms),
    });
  const constant = names.filter((name) => !changes.includes(name));
  const figures = quantities.map(({ name, lines, log }) => {
    const keep = {};
    const made = figure({
      caption: "",
      tools: [el("h3", {}, name)],
      chart: (place) => drawLines(place, lines(), { log, height: 200, from: firstDifference }),
      table: (place) => linesTable(place, name, lines(), keep),
    });
    on("step", () => followStep(made.element));
    return made.element;
  });
  section(
    "rates",
    metrics.length ? "Metrics, learning rate and other figures of each step" : "Learning rate and other figures of each step",
    el("div", { className: "pair" }, ...figures),
    constant.length
      ? el(
          "p",
          { className: "note" },
          `The same at every step: ${constant.map((name) => `${name} ${shown(number(runs.find((run) => run.hyper[name]).hyper[name].constant), 6)}`).join(", ")}.`,
        )
      : null,
    el(
      "p",
      { className: "note" },
      "Metrics are what the loss function returned beside the loss; figures of a validation are in result.history.",
    ),
  );
}
