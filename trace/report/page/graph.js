// The graph of a step, as its boxes and the ways between them.

const MOST_BOXES = 500; // beyond which nobody sees anything

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
