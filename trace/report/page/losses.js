// The sections of the loss, and of what else changes by the step.

function lossSection() {
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
  const made = lineChart(report.charts.loss, {
    caption:
      "Loss of each step before its update. Drag to look closer, press twice to see all; a click goes to the step. ✕: not finite." +
      (report.charts.loss.lines.some((line) => line.points) ? " ●: validation, behind its step." : ""),
    tools: [log, el("label", {}, "smoothed", range, told)],
    look: () => ({ log: state.log, smooth: state.smooth }),
  });
  const say = () => {
    log.setAttribute("aria-pressed", String(state.log));
    told.textContent = state.smooth > 0 ? `${shown(state.smooth, 2)}, faint: raw` : "not at all";
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
  say();
  section("loss", "Loss", made.element);
}

function ratesSection() {
  const { charts, constant } = report.charts.rates;
  const log = (chart) => chart.title === "norm of all gradients";
  const validated = charts.some((chart) => chart.lines.some((line) => line.points));
  section(
    "rates",
    "Metrics, learning rate and other figures of each step",
    el(
      "div",
      { className: "pair" },
      ...charts.map((chart) => lineChart(chart, { tools: [el("h3", {}, chart.title)], look: () => ({ log: log(chart) }) }).element),
    ),
    constant.length ? el("p", { className: "note" }, `The same at every step: ${constant.join(", ")}.`) : null,
    el(
      "p",
      { className: "note" },
      "Metrics are what the loss function returned beside the loss." +
        (validated ? " ●: the same on other data, measured behind a step." : ""),
    ),
  );
}
