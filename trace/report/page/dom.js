// Elements, what the page remembers, and sections that are drawn when they come into sight.

/** An element: properties, attributes where there is no such property, and children that are elements or texts. */
function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The line that a run is drawn by, for a legend: readable by its dashes as well as by its colour. */
function swatch({ colour, dash, points }) {
  const made = svg("svg", { class: "swatch", viewBox: "0 0 40 12", "aria-hidden": "true" });
  made.append(svg("line", { x1: 0, y1: 6, x2: 40, y2: 6, stroke: colour, "stroke-width": points ? 2 : 4, "stroke-dasharray": dash.join(" ") }));
  if (points) made.append(svg("circle", { cx: 20, cy: 6, r: 5, fill: colour }));
  return made;
}

const lookOf = (i) => report.charts.loss.lines[i];

// ------------------------------------------------------------------ what the page remembers

const MEMORY = `dgrr-report:${runs.map((run) => run.path.replace(/\.partial$/, "")).join(":")}`;
const state = {
  step: Math.max(0, firstDifference ?? mostSteps - 1),
  following: firstDifference === null,
  theme: "",
  log: false,
  smooth: 0,
  tables: false,
  scroll: 0,
  ...remembered(),
};
state.step = Math.min(state.following ? mostSteps - 1 : state.step, mostSteps - 1);

/** What the page kept before it loaded itself again; once, so that whoever opens it later begins anew. */
function remembered() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(MEMORY)) || {};
    sessionStorage.removeItem(MEMORY);
    return kept;
  } catch {
    return {};
  }
}

/** Keep the state for the page's next loading of itself. */
function remember() {
  try {
    sessionStorage.setItem(MEMORY, JSON.stringify({ ...state, scroll: window.scrollY }));
  } catch {
    /* a browser may refuse, and then the page begins anew */
  }
}

const listeners = { step: [], theme: [], tables: [], log: [] };

function on(what, run) {
  listeners[what].push(run);
}

function tell(what) {
  for (const run of listeners[what]) run();
}

let asked = false;

/** Go to a step: everything that shows one is told, once for each picture that the browser draws. */
function goTo(step) {
  state.step = Math.min(Math.max(Math.round(step) || 0, 0), Math.max(mostSteps - 1, 0));
  state.following = state.step === mostSteps - 1;
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    tell("step");
  });
}

const system = matchMedia("(prefers-color-scheme: dark)");

/** Dark or light, as was asked for, else as the system has it. */
function setTheme(theme) {
  state.theme = theme;
  document.documentElement.dataset.theme = theme || (system.matches ? "dark" : "light");
  tell("theme");
}

const isDark = () => document.documentElement.dataset.theme === "dark";

// ------------------------------------------------------------------ what is drawn when it is in sight

const seen = new WeakMap();
const sight = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      const drawn = seen.get(entry.target);
      drawn.visible = entry.isIntersecting;
      if (drawn.visible && drawn.stale) drawn.now();
    }
  },
  { rootMargin: "300px" },
);

/** Draw an element once it is near the window, and again when `redraw()` is called, at once or when it is near again. */
function inSight(element, draw) {
  const drawn = {
    visible: false,
    stale: true,
    now() {
      drawn.stale = false;
      draw();
    },
  };
  seen.set(element, drawn);
  sight.observe(element);
  return () => {
    if (drawn.visible) drawn.now();
    else drawn.stale = true;
  };
}

// ------------------------------------------------------------------ sections and figures

const main = document.getElementById("main");
const sections = [];

function section(id, title, ...children) {
  const made = el(
    "section",
    { id, tabIndex: -1, "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title),
    ...children,
  );
  sections.push({ id, title, element: made });
  main.append(made);
  return made;
}

/**
 * A chart that can be read as a table too.
 *
 * `chart` and `table` are functions that fill an element; `tools` stand before the button that changes between them,
 * `also` below.
 */
function figure({ caption, label, tools = [], chart, table, also = [] }) {
  const picture = el("div", { className: "chart" });
  if (label) {
    picture.setAttribute("role", "group");
    picture.setAttribute("aria-label", `${label}; the button Table shows the numbers`);
  }
  const rows = el("div", { className: "hidden" });
  const button = el("button", { type: "button" }, "Table");
  button.setAttribute("aria-pressed", "false");
  const made = el(
    "figure",
    {},
    el("div", { className: "tools" }, ...tools, el("span", { className: "right" }, button)),
    picture,
    rows,
    ...also,
    el("figcaption", {}, caption),
  );
  const redraw = inSight(made, () => {
    if (button.getAttribute("aria-pressed") === "true") {
      rows.replaceChildren();
      table(rows);
    } else {
      chart(picture);
    }
  });
  const show = (asTable) => {
    button.setAttribute("aria-pressed", String(asTable));
    picture.classList.toggle("hidden", asTable);
    rows.classList.toggle("hidden", !asTable);
    redraw();
  };
  button.addEventListener("click", () => show(button.getAttribute("aria-pressed") !== "true"));
  on("tables", () => show(state.tables));
  on("theme", () => repaint(picture));
  return { element: made, picture, redraw };
}

function select(label, options, change) {
  const made = el("select", {}, ...options.map(([value, text]) => el("option", { value }, text)));
  made.addEventListener("change", () => change(made.value));
  return { element: el("label", {}, label, made), input: made };
}

function callout(kind, ...children) {
  return el("div", { className: `callout ${kind}` }, ...children);
}
