// The picker of a step, and the way to a section.

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
  pictures: "Pictures",
  graph: "Graph",
  nodes: "Nodes",
  about: "Runs",
};
