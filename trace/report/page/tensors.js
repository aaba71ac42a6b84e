// The table of a step: every tensor of it.

const FIGURES = 5; // norm, least, greatest, share of zeros, number of elements that are not finite

/** All figures of a step, by the place of the tensor in the schema. */
function stepFigures(run, step) {
  const figures = run.figures;
  const params = figures.params.length;
  const tensors = run.tensors.length;
  const detail = placeOf(array(figures.details), step);
  const column = placeOf(array(figures.columns), step);
  const [grads, values] = [array(figures.gradient_figures), array(figures.value_figures)];
  const [norms, ratios, thresholds] = [array(figures.norms), array(figures.ratios), array(figures.exploding)];
  const grad = (i, k) => (i >= params || detail < 0 || !grads ? NaN : grads[(detail * params + i) * FIGURES + k]);
  const code = (codes, i) => (i >= params || column < 0 || !codes ? ABSENT : codes[column * params + i]);
  return {
    detail,
    column,
    norm: (i) => (detail < 0 ? magnitude(code(norms, i)) : grad(i, 0)),
    grad,
    value: (i, k) => (detail < 0 || !values ? NaN : values[(detail * tensors + i) * FIGURES + k]),
    ratio: (i) => magnitude(code(ratios, i)),
    marks: (i) => (norms && i < params && column >= 0 ? marksOf(code(norms, i), thresholds[i]) : 0),
  };
}

const MARK_WORDS = { [DEAD]: "○ zero", [EXPLODING]: "▲ exploding", [BROKEN]: "✕ not finite" };

function stepSection() {
  let run =
    Math.max(
      report.differences.findIndex((found) => !found.same),
      -1,
    ) + 1; // the first that differs
  const keep = {};
  const place = el("div");
  const note = el("p", { className: "muted" });
  const chooser = select(
    "run",
    runs.map((_, i) => [i, runLabel(i)]),
    (value) => {
      run = +value;
      redraw();
    },
  );
  chooser.input.value = run;
  const title = el("p", { className: "note" });
  const made = section(
    "tensors",
    "The tensors of the chosen step",
    el("div", { className: "tools" }, runs.length > 1 ? chooser.element : null, title),
    place,
    note,
  );
  const redraw = inSight(made, () => {
    title.textContent =
      state.step < runs[run].steps ? `step ${shown(state.step)} of ${shown(runs[run].steps)}, numbered from 0` : "";
    place.replaceChildren(
      state.step < runs[run].steps
        ? stepTable(run, keep)
        : el("p", { className: "muted" }, `This run ends with step ${runs[run].steps - 1}.`),
    );
    note.textContent = stepNote(runs[run]);
  });
  on("step", redraw);
}

function stepNote(run) {
  const details = array(run.figures.details);
  const here = placeOf(details, state.step) >= 0;
  const parts = [];
  if (!run.figures.gradient_figures) parts.push("Gradients are not known of this run.");
  if (!run.figures.value_figures)
    parts.push(
      "Values are not known of this run: what no step records is recomputed from recorded gradients, or with --model.",
    );
  if (!here && run.figures.gradient_figures)
    parts.push(
      `Of this step norms are kept, to three digits; all figures are kept of ${shown(details.length)} steps, such as ${shown(details[Math.max(lastUpTo(details, state.step), 0)])}.`,
    );
  return parts.join(" ");
}

function stepTable(i, keep) {
  const run = runs[i];
  const figures = stepFigures(run, state.step);
  const different = i > 0 && report.differences[i - 1].gradients ? array(report.differences[i - 1].gradients) : null;
  const params = run.figures.params.length;
  const differs = (t) => (different && t < params && figures.column >= 0 ? different[figures.column * params + t] : 2);
  const said = (t) => [MARK_WORDS[figures.marks(t)], differs(t) === 1 ? "≠ A" : ""].filter(Boolean).join(", ");
  const columns = [
    words("tensor", (t) => run.tensors[t][0]),
    words("mark", said),
    words("role", (t) => run.tensors[t][1]),
    words("type", (t) => `${run.tensors[t][2]} (${run.tensors[t][3].join(", ")})`),
    numbers("gradient norm", (t) => figures.norm(t)),
    numbers("gradient least", (t) => figures.grad(t, 1)),
    numbers("greatest", (t) => figures.grad(t, 2)),
    { ...numbers("zeros", (t) => figures.grad(t, 3)), text: (t) => percent(figures.grad(t, 3)) },
    numbers("not finite", (t) => figures.grad(t, 4)),
    numbers("update / weights", (t) => figures.ratio(t), 3),
    numbers("value norm", (t) => figures.value(t, 0)),
    numbers("value least", (t) => figures.value(t, 1)),
    numbers("greatest", (t) => figures.value(t, 2)),
  ];
  const mark = (t) => (figures.marks(t) & (EXPLODING | BROKEN)) !== 0 || differs(t) === 1;
  return dataTable(columns, run.tensors.length, {
    caption: `${runLabel(i)}, step ${state.step}: norm, least and greatest element of each gradient and, after the step, of each tensor`,
    keep,
    mark,
    search: (t) => run.tensors[t][0],
  });
}

function percent(share) {
  return Number.isNaN(share) ? "–" : `${+(share * 100).toPrecision(3)} %`;
}
