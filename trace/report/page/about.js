// What a run is: its verdict and what was proved, its rule, where it ran; and how two runs differ.

const PROOFS = [
  ["structure", "that the file obeys every rule of its format"],
  ["chain", "that its digests link it from the first byte to the last"],
  ["update", "that every update is what the rule makes of the gradients, to the bit"],
  ["gradient", "that model and data make every loss and gradient, to the bit"],
  ["data", "that every batch is the one that was recorded"],
];
const SIGNS = { proven: ["✓", "good"], failed: ["✕", "bad"], "not proven": ["–", "muted"] };

/** Words and what they stand for. */
function keys(rows) {
  return el("dl", { className: "keys" }, ...rows.flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]));
}

function verdictOf(proofs) {
  const kind = proofs.verdict === "ok" ? "good" : ["unproven", "unsealed"].includes(proofs.verdict) ? "warn" : "bad";
  return el(
    "span",
    { className: `verdict ${kind}` },
    `${kind === "good" ? "✓" : kind === "bad" ? "✕" : "–"} ${proofs.verdict}`,
  );
}

function summarySection() {
  const cards = el("div", { className: "cards" }, ...runs.map((run, i) => summary(run, i)));
  section("summary", "Summary", ...(runs.length > 1 ? [runsTable()] : []), cards);
}

/** The runs with their last and best figures, and what was noted of each. */
function runsTable() {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.told_notes)))];
  const lastLoss = (i) => (runs[i].steps ? array(runs[i].loss)[runs[i].steps - 1] : NaN);
  const begun = (i) => runs[i].noted.find(([steps]) => !steps)?.[1];
  const columns = [
    words("run", (i) => runLabel(i)),
    numbers("steps", (i) => runs[i].steps),
    numbers("last loss", lastLoss, 5),
    numbers("best validation loss", (i) => number(runs[i].best_validation[1]), 5),
    numbers("behind step", (i) => number(runs[i].best_validation[0])),
    ...names.map(noteColumn),
    words("begun", (i) => begun(i) ?? "–"),
  ];
  const told = columns.filter((column) => runs.some((_, i) => column.text(i) !== "–"));
  return dataTable(told, runs.length, { caption: "The runs, and what was noted of each", keep: {} });
}

/** A note of every run: a column of numbers, if all are. */
function noteColumn(name) {
  const values = runs.map((run) => run.told_notes[name] ?? null);
  if (values.every((value) => value === null || typeof value === "number"))
    return numbers(name, (i) => number(values[i]), 6);
  return words(name, (i) => values[i] ?? "–");
}

function summary(run, i) {
  const losses = array(run.loss);
  let best = -1;
  losses.forEach((loss, step) => {
    if (Number.isFinite(loss) && (best < 0 || loss < losses[best])) best = step;
  });
  const params = run.tensors
    .filter((tensor) => tensor[1] === "param")
    .reduce((sum, tensor) => sum + tensor[3].reduce((a, b) => a * b, 1), 0);
  const facts = [
    ["steps", shown(run.steps)],
    ["last loss", losses.length ? shown(losses[losses.length - 1], 5) : "–"],
    ["least loss", best < 0 ? "–" : `${shown(losses[best], 5)}`],
    ["at step", best < 0 ? "–" : shown(best)],
    ...(run.best_validation[1] === null ? [] : [["best validation loss", shown(number(run.best_validation[1]), 5)]]),
    ["parameters", shown(params)],
  ];
  const { findings, notes } = run.proofs;
  return el(
    "div",
    {},
    runs.length > 1 ? el("h3", {}, runLabel(i)) : null,
    el(
      "dl",
      { className: "facts" },
      ...facts.map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value))),
    ),
    run.sealed ? null : callout("", "This run is not finished, or its end is lost."),
    el("p", {}, "Verdict: ", verdictOf(run.proofs)),
    el("ul", { className: "proofs" }, ...PROOFS.map(([name, text]) => proof(name, run.proofs[name], text))),
    ...findings.map((found) => callout(["unproven", "unsealed"].includes(found.verdict) ? "" : "bad", finding(found))),
    ...[...notes, ...run.notes].map((text) => el("p", { className: "note" }, text)),
  );
}

function proof(name, word, text) {
  const [sign, kind] = SIGNS[word];
  return el(
    "li",
    {},
    el("span", { className: kind, ariaHidden: "true" }, sign),
    el("span", {}, name),
    el("span", { className: kind }, word),
    el("span", { className: "muted" }, text),
  );
}

function finding(found) {
  const where = [found.step === null ? null : `step ${found.step}`, found.tensor === null ? null : found.tensor]
    .filter(Boolean)
    .join(", ");
  return `${found.verdict}: ${where ? `${where}: ` : ""}${found.text}`;
}

// ------------------------------------------------------------------ how the others differ from the first

function differenceSection() {
  if (!report.differences.length) return;
  const made = section("differences", "How the runs differ");
  report.differences.forEach((found, k) => made.append(...difference(found, k + 1)));
}

function difference(found, i) {
  const parts = [
    el("h3", {}, swatch(lookOf(0)), ` ${runLabel(0)}  and  `, swatch(lookOf(i)), ` ${runLabel(i)}`),
    callout(
      found.same ? "good" : "bad",
      el(
        "p",
        {},
        el(
          "span",
          { className: `verdict ${found.same ? "good" : "bad"}` },
          `${found.same ? "✓ the same" : `✕ ${found.verdict}`}${found.cause ? ` (${found.cause})` : ""}`,
        ),
      ),
      el("p", {}, found.sentence),
    ),
  ];
  if (found.step !== null) {
    const go = el("button", { type: "button" }, `Go to step ${shown(found.step)}, the first that differs`);
    go.addEventListener("click", () => goTo(found.step));
    parts.push(go);
  }
  const told = [...Object.entries(found.settings), ...Object.entries(found.environment)];
  if (told.length)
    parts.push(
      dataTable(
        [
          words("key", (k) => told[k][0]),
          words(letter(0), (k) => plainText(told[k][1][0])),
          words(letter(i), (k) => plainText(told[k][1][1])),
        ].map((column) => ({ ...column, value: undefined })),
        told.length,
        { caption: "What they were told, and where they ran, as far as it differs" },
      ),
    );
  if (found.op)
    parts.push(
      el(
        "p",
        {},
        `First op that differs: #${found.op.index} ${found.op.node.op}${found.op.node.scope ? ` in layer ${found.op.node.scope}` : ""}; ${found.op.node.place || "its line is not recorded"}`,
      ),
    );
  if (found.tensors.length) parts.push(tensorDifferences(found, i));
  if (!found.same) parts.push(gap(i));
  parts.push(
    ...found.notes.map((text) => el("p", { className: "note" }, text)),
    el("details", {}, el("summary", {}, "As dgrr diff says it"), el("pre", { className: "mono scroll" }, found.text)),
  );
  return parts;
}

const plainText = (value) => (value === null ? "none" : typeof value === "string" ? value : JSON.stringify(value));

function tensorDifferences(found, i) {
  const of = found.tensors;
  const what = { loss: "loss", grad: "gradient", before: "before the step", after: "after the step" };
  return dataTable(
    [
      words("tensor", (k) => of[k].name),
      words("what", (k) => what[of[k].what] || of[k].what),
      words("type", (k) => `${of[k].dtype} (${of[k].shape.join(", ")})`),
      numbers("elements that differ", (k) => number(of[k].differing)),
      numbers("by at most", (k) => number(of[k].max_abs)),
      numbers("relatively", (k) => number(of[k].max_rel)),
      words("worst: A", (k) => (of[k].worst.length ? of[k].worst[0].a : of[k].recorded ? "–" : "not recorded")),
      words(`worst: ${letter(i)}`, (k) => (of[k].worst.length ? of[k].worst[0].b : "–")),
    ],
    of.length,
    {
      caption: `Tensors that differ at step ${found.step === null ? "0, before it" : found.step}, in the order of execution`,
      keep: {},
      search: (k) => of[k].name,
    },
  );
}

/** How far the losses are apart. */
function gap(i) {
  return lineChart(report.charts.gaps[i - 1], {
    caption: "Distance of the losses, on a logarithmic axis; steps with equal losses have no point.",
    tools: [el("h3", {}, "Distance of the losses")],
    look: () => ({ log: true }),
  }).element;
}

// ------------------------------------------------------------------ the rule, the environment, the tensors

function aboutSection() {
  section("about", "The runs", el("div", { className: "pair" }, ...runs.map((run, i) => about(run, i))));
}

function about(run, i) {
  const created =
    run.created > 0 ? new Date(run.created / 1e6).toISOString().replace("T", " ").slice(0, 19) : "not recorded";
  const environment = Object.entries(run.environment);
  return el(
    "div",
    {},
    el("h3", {}, "File"),
    keys([
      ["path", run.path],
      ["begun (UTC)", created],
      ...Object.entries(run.header).map(([key, value]) => [key, String(value)]),
    ]),
    ...notes(run),
    el("h3", {}, "Rule"),
    ...run.rules.map((group) => rule(run, group)),
    el("h3", {}, "Environment"),
    environment.length ? keys(environment) : el("p", { className: "muted" }, "not recorded"),
    el("h3", {}, "Events"),
    events(run),
    el(
      "details",
      {},
      el("summary", {}, `${shown(run.tensors.length)} tensors`),
      dataTable(
        [
          words("tensor", (k) => run.tensors[k][0]),
          words("role", (k) => run.tensors[k][1]),
          words("type", (k) => `${run.tensors[k][2]} (${run.tensors[k][3].join(", ")})`),
          { ...numbers("bytes", (k) => run.tensors[k][4]), text: (k) => bytesShown(run.tensors[k][4]) },
        ],
        run.tensors.length,
        { caption: `${runLabel(i)}: tensors`, keep: {}, search: (k) => run.tensors[k][0] },
      ),
    ),
  );
}

/** What the user noted, and where and when the run was begun and resumed; nothing of a run without notes. */
function notes(run) {
  if (!run.noted.length) return [];
  const noted = Object.entries(run.told_notes).map(([name, value]) => [name, value === null ? "null" : String(value)]);
  const when = run.noted.map(([steps, time, host]) => [steps ? `resumed at ${shown(steps)}` : "begun", `${time} on ${host}`]);
  return [el("h3", {}, "Notes"), keys([...noted, ...when])];
}

function rule(run, group) {
  const values = Object.entries(group.hyper).map(([name, key]) => {
    const reference = run.hyper[key];
    return reference && "constant" in reference
      ? `${name} ${shown(number(reference.constant), 6)}`
      : `${name} (changes)`;
  });
  return el(
    "p",
    {},
    el("code", {}, group.rule),
    ` of ${group.params ? `${group.params}, ` : ""}${shown(group.count)} params`,
    values.length ? `: ${values.join(", ")}` : "",
  );
}

function events(run) {
  const told = run.events.filter(([, kind]) => kind !== "environment");
  if (!told.length) return el("p", { className: "muted" }, "none");
  return dataTable(
    [
      numbers("after steps", (k) => told[k][0]),
      words("kind", (k) => told[k][1]),
      words("text", (k) => told[k][2], "long"),
    ],
    told.length,
    { caption: "Events of the run", keep: {} },
  );
}
