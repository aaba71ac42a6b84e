// Pictures of each param: its value, its gradient and its update, at the steps that the page has them of.

const PICTURED = ["Value before the step", "Gradient", "Update: what the step added"];

function pictureSection() {
  const of = runs.map((_, i) => i).filter((i) => runs[i].pictures.steps.length);
  if (!of.length) {
    section(
      "pictures",
      "Pictures",
      el("p", { className: "muted" }, "Neither weights nor gradients are known of any step."),
    );
    return;
  }
  let run = of[0];
  const made = new Map(); // run → its params
  const chooser = select(
    "run",
    of.map((i) => [i, runLabel(i)]),
    (value) => {
      run = +value;
      offer();
    },
  );
  const steps = el("div", { className: "tools" });
  const params = el("div");

  function offer() {
    const { pictures } = runs[run];
    steps.replaceChildren("step", ...pictures.steps.map((step) => stepButton(step)));
    if (!made.has(run)) {
      made.set(
        run,
        pictures.params.map((_, param) => paramPictures(run, param)),
      );
      made.get(run)[0].element.open = true;
    }
    params.replaceChildren(...made.get(run).map((one) => one.element));
    redraw();
  }

  function redraw() {
    const chosen = runs[run].pictures.steps[pictureRow(runs[run])];
    for (const button of steps.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(+button.value === chosen));
    for (const one of made.get(run)) one.redraw();
  }

  const known = runs[of[0]].pictures;
  const more = runs[of[0]].figures.params.length - known.params.length;
  section(
    "pictures",
    "Pictures of the params",
    el("div", { className: "tools" }, of.length > 1 ? chooser.element : null, steps),
    el(
      "p",
      { className: "note" },
      `A cell for each element: white is zero, red above it, blue below it. The last axes are rows and columns; those before them lay facets side by side. Shown is the last of these steps up to the chosen one.${more > 0 ? ` Pictures are kept of the first ${shown(known.params.length)} params.` : ""}`,
    ),
    params,
  );
  offer();
  on("step", redraw);
}

function stepButton(step) {
  const made = el("button", { type: "button", value: step }, shown(step));
  made.addEventListener("click", () => goTo(step));
  return made;
}

/** The place of the last pictured step up to the chosen one, else the first. */
const pictureRow = (run) => Math.max(lastUpTo(run.pictures.steps, state.step), 0);

/** What opens to the pictures of a param, or their numbers at all steps. */
function paramPictures(i, param) {
  const run = runs[i];
  const name = run.pictures.params[param];
  const keep = {};
  const at = el("span", { className: "note" });
  const made = figure({
    label: `pictures of ${name}`,
    caption: "",
    tools: [at],
    chart: (place) => {
      const row = pictureRow(run);
      const found = run.pictures.rows[row][param];
      at.textContent = `step ${shown(run.pictures.steps[row])}`;
      place.replaceChildren(
        el("div", { className: "pictures" }, ...PICTURED.map((title, k) => pictureOf(run, title, found[k]))),
      );
    },
    table: (place) => place.append(pictureTable(run, param, keep)),
  });
  const type = run.tensors[param];
  const element = el(
    "details",
    { className: "param" },
    el("summary", {}, el("b", {}, name), ` ${type[2]} (${type[3].join(", ")})`),
    made.element,
  );
  return { element, redraw: made.redraw };
}

function pictureOf(run, title, found) {
  if (!found) return el("div", {}, el("h3", {}, title), el("p", { className: "muted" }, "Not known."));
  const [file, said, legend] = found;
  const data = file === null ? null : document.getElementById(`array${run.pictures.files[file]}`).textContent;
  return el(
    "div",
    {},
    el("h3", {}, title),
    data === null ? null : el("img", { src: `data:image/png;base64,${data}`, alt: said }),
    ...[said, ...legend].map((text) => el("p", { className: "note" }, text)),
  );
}

/** A row for each picture of a param. */
function pictureTable(run, param, keep) {
  const { steps, rows } = run.pictures;
  const at = steps.flatMap((step, row) =>
    PICTURED.map((title, k) => ({ step, title, found: rows[row][param][k] })).filter((one) => one.found),
  );
  const figures = ["least", "greatest", "mean", "zero", "NaN", "infinite"];
  const columns = [
    numbers("step", (i) => at[i].step),
    words("of", (i) => at[i].title),
    ...figures.map((label, k) => numbers(label, (i) => number(at[i].found[3 + k]))),
  ];
  return dataTable(columns, at.length, { caption: `${run.pictures.params[param]} at the steps of its pictures`, keep });
}
