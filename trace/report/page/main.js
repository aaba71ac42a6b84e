// The page: its head, the picker of a step, the sections, the keys.

// ------------------------------------------------------------------ losses and what else changes by the step

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

function ratesSection() {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.hyper)))];
  const changes = names.filter(
    (name) =>
      name.startsWith("lr") ||
      !runs.every((run) => !run.hyper[name] || "constant" in run.hyper[name]) ||
      new Set(runs.filter((run) => run.hyper[name]).map((run) => run.hyper[name].constant)).size > 1,
  );
  const quantities = changes.map((name) => ({
    name: name === "lr" ? "learning rate (lr)" : name,
    lines: () =>
      runs
        .map((run, i) =>
          run.hyper[name]
            ? { label: runLabel(i), xs: stepsOf(run), ys: series(run.hyper[name], run.steps), run: i }
            : null,
        )
        .filter(Boolean),
  }));
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
    "Learning rate and other figures of each step",
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
      "A trace keeps the loss and what the optimizer was told; metrics of one's own are in result.history.",
    ),
  );
}

// ------------------------------------------------------------------ the picker of a step

/** Steps worth a look: where runs part, what is not finite, what was rebuilt, where a gradient explodes. */
function marked() {
  const found = new Set(runs.flatMap((run) => [...run.nonfinite, ...run.rebuilt.map((graph) => graph.step)]));
  if (firstDifference !== null) found.add(firstDifference);
  for (const run of runs) {
    const [norms, columns, thresholds] = [
      array(run.figures.norms),
      array(run.figures.columns),
      array(run.figures.exploding),
    ];
    if (!norms) continue;
    const width = run.figures.params.length;
    for (let cell = 0; cell < norms.length; cell++)
      if (marksOf(norms[cell], thresholds[cell % width]) & EXPLODING) found.add(columns[Math.floor(cell / width)]);
  }
  return [...found].sort((a, b) => a - b);
}

let marks = null;

function goToMark(way) {
  marks = marks || marked();
  const next = way > 0 ? marks.find((step) => step > state.step) : marks.filter((step) => step < state.step).pop();
  if (next !== undefined) goTo(next);
}

function picker() {
  const last = Math.max(mostSteps - 1, 0);
  const input = el("input", { type: "number", min: 0, max: last, value: state.step, id: "step", ariaLabel: "step" });
  const slider = el("input", { type: "range", min: 0, max: last, value: state.step, id: "slider", ariaLabel: "step" });
  const told = el("output", { className: "muted" });
  const button = (text, label, press) => {
    const made = el("button", { type: "button", title: label, ariaLabel: label }, text);
    made.addEventListener("click", press);
    return made;
  };
  input.addEventListener("change", () => goTo(+input.value));
  slider.addEventListener("input", () => goTo(+slider.value));
  const show = () => {
    input.value = slider.value = state.step;
    slider.setAttribute("aria-valuetext", `step ${state.step}`);
    told.textContent = `loss ${runs.map((run, i) => `${runs.length > 1 ? `${letter(i)} ` : ""}${state.step < run.steps ? shown(array(run.loss)[state.step], 6) : "–"}`).join(" · ")}`;
  };
  on("step", show);
  show();
  return el(
    "div",
    { className: "picker" },
    el("label", { htmlFor: "step" }, "Step"),
    button("◀", "the step before (←)", () => goTo(state.step - 1)),
    input,
    button("▶", "the next step (→)", () => goTo(state.step + 1)),
    slider,
    told,
    button("next mark", "the next step that is marked: not finite, exploding, different, rebuilt (n)", () =>
      goToMark(1),
    ),
  );
}

function navigation() {
  const links = sections.map(({ id, title }) => el("a", { href: `#${id}` }, SHORT[id] || title));
  const near = new IntersectionObserver(
    () => {
      const here = sections.filter(({ element }) => element.getBoundingClientRect().top < 200).pop();
      links.forEach((link, i) => link.classList.toggle("here", Boolean(here) && sections[i].id === here.id));
    },
    { rootMargin: "-190px 0px -40% 0px", threshold: [0, 0.1, 0.5, 1] },
  );
  sections.forEach(({ element }) => near.observe(element));
  return el("nav", { ariaLabel: "sections" }, ...links);
}

const SHORT = {
  summary: "Summary",
  differences: "Differences",
  loss: "Loss",
  rates: "Rates",
  gradients: "Gradients",
  tensors: "Tensors",
  histograms: "Histograms",
  graph: "Graph",
  nodes: "Nodes",
  about: "Runs",
};

// ------------------------------------------------------------------ keys

const KEYS = [
  ["← →", "the step before, the next step; with Shift ten of them"],
  ["Home End", "the first step, the last one"],
  ["n p", "the next step that is marked, the one before"],
  ["l", "loss on a logarithmic axis, or a linear one"],
  ["t", "every chart as a table, and back"],
  ["d", "dark, or light"],
  ["1 … 9", "to a section"],
  ["↑ ↓", "in the gradients' map: the param above, the one below"],
  ["?", "these keys"],
];

const PRESSED = {
  ArrowLeft: (event) => goTo(state.step - (event.shiftKey ? 10 : 1)),
  ArrowRight: (event) => goTo(state.step + (event.shiftKey ? 10 : 1)),
  Home: () => goTo(0),
  End: () => goTo(mostSteps - 1),
  n: () => goToMark(1),
  p: () => goToMark(-1),
  l: () => {
    state.log = !state.log;
    tell("log");
  },
  t: () => {
    state.tables = !state.tables;
    tell("tables");
  },
  d: () => setTheme(isDark() ? "light" : "dark"),
  "?": () => document.getElementById("help").showModal(),
};

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open) return;
  if (event.target.matches("input, select, textarea") && event.key.length > 1) return;
  if (event.target.matches('input[type="search"], input[type="number"]')) return;
  const chosen = /^[1-9]$/.test(event.key) ? sections[+event.key - 1] : null;
  if (chosen) {
    chosen.element.scrollIntoView();
    chosen.element.focus({ preventScroll: true });
    return;
  }
  const press = PRESSED[event.key];
  if (!press) return;
  if (event.target.closest(".scroll, .graph") && /Arrow|Home|End/.test(event.key)) return; // which scroll
  event.preventDefault();
  press(event);
}

// ------------------------------------------------------------------ the page

function head() {
  const theme = el("button", { type: "button", title: "dark or light (d)" }, "Dark / light");
  theme.addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  const help = el("button", { type: "button", title: "keys (?)" }, "Keys ?");
  help.addEventListener("click", () => document.getElementById("help").showModal());
  const names = runs.map((run, i) =>
    el(
      "div",
      { className: "run" },
      swatch(i),
      el("span", {}, runs.length > 1 ? `${letter(i)}  ${run.path}` : run.path),
      verdictOf(run.proofs),
    ),
  );
  document
    .getElementById("top")
    .append(
      el("div", { className: "names" }, el("h1", {}, "dgrr report"), ...names),
      el("div", { className: "tools" }, ...watching(), theme, help),
    );
  const close = el("button", { type: "button" }, "Close");
  close.addEventListener("click", () => document.getElementById("help").close());
  document
    .getElementById("help")
    .append(
      el("h2", {}, "Keys"),
      el(
        "dl",
        { className: "keys" },
        ...KEYS.flatMap(([key, text]) => [
          el("dt", {}, ...key.split(" ").flatMap((k) => [k === "…" ? "…" : el("kbd", {}, k), " "])),
          el("dd", {}, text),
        ]),
      ),
      close,
    );
}

/** Of a run that goes on: the page loads itself again, and stands where it stood. */
function watching() {
  if (!report.refresh) return [];
  const stop = el("button", { type: "button" }, "Pause");
  stop.setAttribute("aria-pressed", "false");
  stop.addEventListener("click", () =>
    stop.setAttribute("aria-pressed", String(stop.getAttribute("aria-pressed") !== "true")),
  );
  setInterval(() => {
    if (stop.getAttribute("aria-pressed") !== "true") {
      remember();
      location.reload();
    }
  }, report.refresh * 1000);
  return [el("span", { className: "muted" }, `loads itself again every ${shown(report.refresh)} s`), stop];
}

function foot() {
  const licence = document.getElementById("licence").textContent;
  document
    .getElementById("foot")
    .append(
      el(
        "p",
        {},
        `Made by dgrr ${report.version}. This file needs no network. Figures of tensors are rounded for people to read; the digests in the trace are what is exact.`,
      ),
      el(
        "details",
        {},
        el("summary", {}, "Licence of uPlot, which draws the charts"),
        el("pre", { className: "mono" }, licence.trim()),
      ),
    );
}

setTheme(state.theme);
head();
summarySection();
differenceSection();
lossSection();
ratesSection();
heatSection();
stepSection();
histogramSection();
graphSection();
nodesSection();
aboutSection();
foot();
document.getElementById("steps").append(el("div", { className: "bar" }, navigation(), picker()));
document.addEventListener("keydown", pressed);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => tell("theme"));
if (state.scroll) window.scrollTo(0, state.scroll);
performance.mark("dgrr-ready");
document.documentElement.dataset.ready = "true";
