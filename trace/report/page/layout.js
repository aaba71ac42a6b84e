// The boxes of a graph, and where they stand: ops from the top down, layers as boxes that open and close.

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
