// The graph of a step: ops from the top down, layers as boxes that open and close.

const MOST_BOXES = 500; // beyond which nobody sees anything
const OPEN_UP_TO = 40; // nodes that are all shown at first
const BOX = { width: 176, height: 54, across: 18, down: 34 };

/** The layer of every node: a named leaf, such as a param, is of the layer that takes it first. */
function scopesOf(graph) {
  const scopes = graph.scope.slice();
  graph.parents.forEach((parents, i) => {
    for (const parent of parents)
      if (graph.op[parent] === "leaf" && graph.name[parent] && !scopes[parent]) scopes[parent] = graph.scope[i];
  });
  return scopes;
}

/** `"a.b.c"` → `["a", "a.b", "a.b.c"]`. */
function paths(scope) {
  const parts = scope ? scope.split(".") : [];
  return parts.map((_, i) => parts.slice(0, i + 1).join("."));
}

/** The boxes of a graph in which some layers are open: nodes, and closed layers with all that is in them. */
function boxesOf(graph, scopes, open) {
  const boxes = new Map();
  const boxOf = graph.op.map((_, i) => {
    const closed = paths(scopes[i]).find((path) => !open.has(path));
    const key = closed === undefined ? `#${i}` : closed;
    if (!boxes.has(key))
      boxes.set(key, { key, layer: closed, nodes: [], before: new Set(), after: new Set(), order: boxes.size });
    boxes.get(key).nodes.push(i);
    return boxes.get(key);
  });
  graph.parents.forEach((parents, i) => {
    for (const parent of parents)
      if (boxOf[parent] !== boxOf[i]) {
        boxOf[i].before.add(boxOf[parent]);
        boxOf[parent].after.add(boxOf[i]);
      }
  });
  return [...boxes.values()];
}

/** Ranks by the longest way from above; what nothing leads to stands right above what takes it. */
function rank(boxes) {
  for (const box of boxes)
    box.rank =
      1 + Math.max(-1, ...[...box.before].filter((other) => other.order < box.order).map((other) => other.rank));
  for (const box of boxes)
    if (!box.before.size && box.after.size)
      box.rank = Math.max(0, Math.min(...[...box.after].map((other) => other.rank)) - 1);
  const ranks = [];
  for (const box of boxes) (ranks[box.rank] = ranks[box.rank] || []).push(box);
  return ranks.filter(Boolean);
}

/** Below the ops that it takes - what has none, such as a param, stands where it is needed -, or above those that take it. */
function wantedPlace(box, up) {
  const ops = [...box.before].filter((other) => other.before.size);
  const near = up || !box.before.size ? [...box.after] : ops.length ? ops : [...box.before];
  return near.length ? near.reduce((sum, other) => sum + other.x, 0) / near.length : box.x;
}

/** Places: each box as near to those it is joined with as the others of its rank let it. */
function lay(boxes) {
  const ranks = rank(boxes);
  const step = BOX.width + BOX.across;
  ranks.forEach((row, y) =>
    row.forEach((box, i) => {
      box.y = y * (BOX.height + BOX.down);
      box.x = (i - (row.length - 1) / 2) * step;
    }),
  );
  for (let sweep = 0; sweep < 5; sweep++) {
    const up = sweep % 2 === 1;
    for (const row of up ? ranks.slice().reverse() : ranks) {
      for (const box of row) box.wanted = wantedPlace(box, up);
      row.sort((a, b) => a.wanted - b.wanted || a.order - b.order);
      row.forEach((box, i) => {
        box.x = i ? Math.max(box.wanted, row[i - 1].x + step) : box.wanted;
      });
      const main = row.some((box) => box.before.size) ? row.filter((box) => box.before.size) : row;
      const off = main.reduce((sum, box) => sum + box.x - box.wanted, 0) / main.length;
      for (const box of row) box.x -= off;
    }
  }
  const left = Math.min(...boxes.map((box) => box.x));
  for (const box of boxes) box.x += 20 - left;
  return {
    width: Math.max(...boxes.map((box) => box.x)) + BOX.width + 20,
    height: ranks.length * (BOX.height + BOX.down) + 20,
  };
}

/** The norm of the gradient of every node: rebuilt, or of params as it was recorded at the chosen step. */
function gradientsOf(i, graph) {
  if (graph.gradient) return graph.gradient.map(number);
  const figures = stepFigures(runs[i], state.step);
  const place = new Map(runs[i].figures.params.map((name, k) => [name, k]));
  return graph.op.map((op, k) =>
    op === "leaf" && place.has(graph.name[k]) && runs[i].figures.norms ? figures.norm(place.get(graph.name[k])) : NaN,
  );
}

function boxText(graph, box) {
  const bytes = box.nodes.reduce((sum, i) => sum + graph.bytes[i], 0);
  if (box.layer !== undefined)
    return { head: `▸ ${box.layer}`, line: `${box.nodes.length} nodes, ${bytesShown(bytes)}` };
  const i = box.nodes[0];
  const what = graph.op[i] === "leaf" ? graph.name[i] || "input" : graph.op[i];
  return { head: what, line: `${graph.dtype[i]} (${graph.shape[i].join(", ")}), ${bytesShown(bytes)}` };
}

const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

function drawGraph(place, i, graph, view, refresh) {
  const boxes = boxesOf(graph, view.scopes, view.open);
  if (boxes.length > MOST_BOXES) {
    place.replaceChildren(
      el(
        "p",
        { className: "muted" },
        `${shown(boxes.length)} boxes are too many to draw. Close layers, or read the table.`,
      ),
    );
    return;
  }
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const size = lay(boxes);
  const gradients = gradientsOf(i, graph);
  const known = gradients.filter((x) => x > 0 && Number.isFinite(x)).map(Math.log10);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const drawing = svg("svg", {
    width: size.width,
    height: size.height,
    viewBox: `0 -10 ${size.width} ${size.height}`,
    role: "group",
    "aria-label": "graph of the step",
  });
  for (const box of boxes) for (const other of box.after) drawing.append(edgePath(box, other));
  for (const box of boxes) {
    const greatest = box.nodes
      .map((k) => gradients[k])
      .filter((x) => !Number.isNaN(x))
      .reduce((a, b) => Math.max(a, b), -1);
    drawing.append(drawBox(graph, box, greatest < 0 ? NaN : greatest, [low, high], view, refresh));
  }
  place.replaceChildren(drawing);
  view.legend.replaceChildren(...(known.length ? ["norm of the gradient", colourBar(10 ** low, 10 ** high)] : []));
  const again = focused && [...drawing.querySelectorAll("g.node")].find((node) => node.dataset.key === focused);
  if (again) again.focus();
}

function edgePath(from, to) {
  const [x1, y1] = [from.x + BOX.width / 2, from.y + BOX.height];
  const [x2, y2] = [to.x + BOX.width / 2, to.y];
  const back = from.order > to.order;
  const bend = Math.max(Math.abs(y2 - y1) / 2, 14);
  return svg("path", {
    class: "edge",
    d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`,
    "stroke-dasharray": back ? "3 3" : "none",
  });
}

function drawBox(graph, box, gradient, [low, high], view, refresh) {
  const { head, line } = boxText(graph, box);
  const told = Number.isNaN(gradient)
    ? ""
    : `‖gradient‖ ${shown(gradient, 3)}${gradient === 0 ? " ○" : gradient === Infinity ? " ✕" : ""}`;
  const chosen = view.chosen === box.key;
  const made = svg("g", {
    class: `node${box.layer === undefined ? "" : " group"}`,
    tabindex: 0,
    role: "button",
    transform: `translate(${box.x} ${box.y})`,
    "aria-pressed": chosen,
    "aria-label": `${box.layer === undefined ? "" : "layer, closed: "}${head.replace("▸ ", "")}, ${line}${told ? `, ${told}` : ""}`,
  });
  made.dataset.key = box.key;
  const back = svg("rect", { width: BOX.width, height: BOX.height, rx: 6 });
  back.style.fill = "var(--card)";
  const strip = svg("rect", { width: 12, height: BOX.height, rx: 4 });
  const share = high > low ? (Math.log10(gradient) - low) / (high - low) : 0.5;
  strip.style.fill = Number.isNaN(gradient)
    ? "var(--grid)"
    : gradient === 0
      ? "#46464a"
      : gradient === Infinity
        ? "var(--bad)"
        : `rgb(${viridis(share)})`;
  made.append(
    back,
    strip,
    svg("text", { x: 20, y: 16, class: "on" }, cut(head, 23)),
    svg("text", { x: 20, y: 32, class: "small" }, cut(line, 27)),
    svg("text", { x: 20, y: 47, class: "small" }, told),
  );
  const press = () => {
    view.chosen = box.key;
    if (box.layer !== undefined) view.open.add(box.layer);
    refresh();
  };
  made.addEventListener("click", press);
  made.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      press();
    }
    if (event.key === "Backspace" && box.layer === undefined) {
      event.preventDefault();
      closeLayer(graph, view, box.nodes[0]);
      refresh();
    }
  });
  return made;
}

function closeLayer(graph, view, node) {
  const inner = paths(view.scopes[node])
    .reverse()
    .find((path) => view.open.has(path));
  if (!inner) return;
  for (const path of [...view.open]) if (path === inner || path.startsWith(`${inner}.`)) view.open.delete(path);
  view.chosen = inner;
}

// ------------------------------------------------------------------ the section

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
        'No step has its ops recorded. Record the run with record_ops="first", or give the report its model: --model MODULE:FUNCTION.',
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

// ------------------------------------------------------------------ every node of the steps that were computed again

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
