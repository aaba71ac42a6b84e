// The sections of the graph of a step, and of every node of the steps that were computed again.

function graphSection() {
  const graphs = runs.flatMap((run, i) => [
    ...run.rebuilt.map((graph) => ({ i, graph, text: `step ${graph.step}, rebuilt` })),
    ...(run.graph ? [{ i, graph: run.graph, text: `step ${run.graph.step}, as recorded` }] : []),
  ]);
  if (!graphs.length) {
    section(
      "graph",
      "The graph of a step",
      el(
        "p",
        { className: "muted" },
        'No step has its ops recorded. Record the run with Keep(..., ops="first"), or give the report its model: --model MODULE:FUNCTION.',
      ),
    );
    return;
  }
  let at = 0;
  const keep = {};
  const legend = el("div", { className: "legend" });
  const views = graphs.map(({ graph }) => {
    const scopes = scopesOf(graph);
    return { scopes, legend, chosen: null, open: new Set(graph.op.length > OPEN_UP_TO ? [] : scopes.flatMap(paths)) };
  });
  const details = el("div", { "aria-live": "polite" });
  const chooser = select(
    "graph",
    graphs.map(({ i, text }, k) => [k, runs.length > 1 ? `${letter(i)} · ${text}` : text]),
    (value) => {
      at = +value;
      redraw();
    },
  );
  const openAll = el("button", { type: "button" }, "Open all layers");
  const closeAll = el("button", { type: "button" }, "Close all");
  openAll.addEventListener("click", () => {
    views[at].open = new Set(views[at].scopes.flatMap(paths));
    redraw();
  });
  closeAll.addEventListener("click", () => {
    views[at].open.clear();
    redraw();
  });
  const drawn = el("div", { className: "graph" });
  const made = figure({
    caption:
      "Values flow downwards. A dashed box is a closed layer: press it, or Enter on it, to open it; Backspace on a node closes its layer. " +
      "The strip at the left is the norm of the gradient: dark is little, bright is much, grey not known.",
    tools: [chooser.element, openAll, closeAll],
    chart: (place) => {
      if (drawn.parentNode !== place) place.replaceChildren(drawn);
      drawGraph(drawn, graphs[at].i, graphs[at].graph, views[at], redraw);
      tellNode();
    },
    table: (place) => place.append(nodesTable(graphs[at], keep)),
  });
  const redraw = () => made.redraw();

  function tellNode() {
    const { i, graph } = graphs[at];
    const node = views[at].chosen && views[at].chosen.startsWith("#") ? +views[at].chosen.slice(1) : -1;
    details.replaceChildren(...(node < 0 ? [] : nodeDetails(i, graph, views[at], node, redraw)));
  }

  section("graph", "The graph of a step", made.element, legend, details);
  const follow = () => {
    const found = graphs.findIndex(({ graph }) => graph.rebuilt && graph.step === state.step);
    if (found >= 0) {
      at = found;
      chooser.input.value = at;
    }
    redraw();
  };
  on("step", follow);
  follow();
}

function nodeDetails(i, graph, view, node, redraw) {
  const rows = [
    ["op", `#${node} ${graph.op[node]}${graph.attrs[node] ? ` (${graph.attrs[node]})` : ""}`],
    ["layer", view.scopes[node] || "none"],
    [
      "value",
      `${graph.dtype[node]} (${graph.shape[node].join(", ")}), ${bytesShown(graph.bytes[node])}${graph.value ? `, norm ${shown(number(graph.value[node]), 6)}` : ""}`,
    ],
    ["gradient", `norm ${shown(gradientsOf(i, graph)[node], 6)}`],
    ["takes", graph.parents[node].map((p) => `#${p} ${graph.name[p] || graph.op[p]}`).join(", ") || "nothing"],
    ["line", graph.place[node] || "not recorded"],
  ];
  const close = el(
    "button",
    { type: "button", disabled: !paths(view.scopes[node]).some((path) => view.open.has(path)) },
    "Close its layer",
  );
  close.addEventListener("click", () => {
    closeLayer(graph, view, node);
    redraw();
  });
  return [el("h3", {}, "The chosen node"), keys(rows), close];
}

function nodesTable({ i, graph, text }, keep) {
  const gradients = gradientsOf(i, graph);
  const columns = [
    numbers("#", (k) => k),
    words("op", (k) => graph.op[k]),
    words("name", (k) => graph.name[k]),
    words("layer", (k) => graph.scope[k]),
    words("type", (k) => `${graph.dtype[k]} (${graph.shape[k].join(", ")})`),
    { ...numbers("bytes", (k) => graph.bytes[k]), text: (k) => bytesShown(graph.bytes[k]) },
    numbers("value norm", (k) => (graph.value ? number(graph.value[k]) : NaN), 6),
    numbers("gradient norm", (k) => gradients[k], 6),
    words("takes", (k) => graph.parents[k].map((p) => `#${p}`).join(" ")),
    words("line", (k) => graph.place[k]),
  ];
  return dataTable(columns, graph.op.length, {
    caption: `${runLabel(i)}: every node of ${text}`,
    keep,
    search: (k) => `${graph.op[k]} ${graph.name[k]} ${graph.scope[k]}`,
  });
}

function nodesSection() {
  const all = runs.flatMap((run, i) => run.rebuilt.map((graph) => ({ i, graph, text: `step ${graph.step}` })));
  if (!all.length) return;
  const place = el("div");
  const steps = all.map(({ graph }) => graph.step);
  const buttons = all.map(({ graph }) => {
    const button = el("button", { type: "button" }, `step ${shown(graph.step)}`);
    button.addEventListener("click", () => goTo(graph.step));
    return button;
  });
  const keep = {};
  const made = section(
    "nodes",
    "Every node of a step, rebuilt",
    el("div", { className: "tools" }, "computed again from the model:", ...buttons),
    place,
  );
  const redraw = inSight(made, () => {
    const at = steps.indexOf(state.step);
    buttons.forEach((button, k) => button.setAttribute("aria-pressed", String(k === at)));
    place.replaceChildren(
      at < 0
        ? el(
            "p",
            { className: "muted" },
            `Step ${state.step} was not computed again. dgrr report --rebuild ${state.step} does so.`,
          )
        : rebuiltStep(all[at], keep),
    );
  });
  on("step", redraw);
}

function rebuiltStep(one, keep) {
  const { graph } = one;
  const passes = graph.passes > 1 ? `, in ${graph.passes} micro-batches one after the other` : "";
  return el(
    "div",
    {},
    el(
      "p",
      {},
      `Loss ${shown(number(graph.loss), 8)}, as recorded, to the bit; from the state before step ${graph.keyframe}${passes}.`,
    ),
    nodesTable(one, keep),
  );
}
