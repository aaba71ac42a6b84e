// The heat map: params downwards, steps to the right, the decimal logarithm of a magnitude as colour, and marks.

const VIRIDIS = [[68, 1, 84], [72, 40, 120], [62, 73, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121],
  [110, 206, 88], [181, 222, 43], [253, 231, 37]];

/** The colour of a share from 0 to 1: dark for little, bright for much, so that it reads without hue. */
function viridis(share) {
  const at = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1);
  const i = Math.min(Math.floor(at), VIRIDIS.length - 2);
  return VIRIDIS[i].map((from, k) => Math.round(from + (VIRIDIS[i + 1][k] - from) * (at - i)));
}

const DEAD = 1;
const EXPLODING = 2;
const BROKEN = 4;
const DIFFERS = 8;
const MARKS = [[DEAD, "zero: dead"], [EXPLODING, "exploding: 100 times its median or more"], [BROKEN, "not finite"]];

/** What is marked of a cell; a ratio has no marks of its own. */
function marksOf(code, threshold) {
  if (code === NON_FINITE) return BROKEN;
  if (code === ABSENT) return 0;
  if (code === ZERO) return DEAD;
  return code >= threshold ? EXPLODING : 0;
}

/** From the least to the greatest code, but for the outermost of each thousand, which would take the colours away. */
function rangeOf(codes) {
  const counts = new Uint32Array(65536);
  let total = 0;
  for (let i = 0; i < codes.length; i++) if (codes[i] !== ZERO && codes[i] < ABSENT) { counts[codes[i]]++; total++; }
  if (!total) return [32501, 32502];
  const edge = total / 1000;
  const ends = [0, 0];
  for (let code = 1, sum = 0; code < ABSENT; code++) { sum += counts[code]; if (sum > edge) { ends[0] = code; break; } }
  for (let code = ABSENT - 1, sum = 0; code > 0; code--) { sum += counts[code]; if (sum > edge) { ends[1] = code; break; } }
  return ends[1] > ends[0] ? ends : [ends[0] - 325, ends[0] + 325];
}

/** A mark, drawn white in black, so that it stands out from every colour. */
function drawMark(context, kind, x, y, size) {
  const r = size / 2;
  context.beginPath();
  if (kind === DEAD) context.arc(x, y, r * 0.75, 0, 7);
  if (kind === EXPLODING) { context.moveTo(x, y - r); context.lineTo(x + r, y + r * 0.8); context.lineTo(x - r, y + r * 0.8); context.closePath(); }
  if (kind === BROKEN) { context.moveTo(x - r, y - r); context.lineTo(x + r, y + r); context.moveTo(x + r, y - r); context.lineTo(x - r, y + r); }
  if (kind === DIFFERS) { context.moveTo(x - r, y - r / 3); context.lineTo(x + r, y - r / 3); context.moveTo(x - r, y + r / 3); context.lineTo(x + r, y + r / 3); context.moveTo(x - r / 2, y + r); context.lineTo(x + r / 2, y - r); }
  context.lineJoin = "round";
  context.strokeStyle = "#000";
  context.lineWidth = 4;
  context.stroke();
  context.strokeStyle = "#fff";
  context.lineWidth = 1.8;
  context.stroke();
  if (kind === EXPLODING) { context.fillStyle = "#fff"; context.fill(); }
}

/**
 * Draw a heat map into an element.
 *
 * @param map `{columns, rows, codes, thresholds, range, describe(column, row)}`; codes are magnitudes, column after
 *   column; or `{…, marks}` where there are no magnitudes and every cell is a mark or none
 */
function drawHeat(place, map) {
  const labels = Math.min(190, Math.round(place.clientWidth * 0.28));
  const width = Math.max(place.clientWidth - labels, 80);
  const tall = Math.min(Math.max(Math.floor(560 / map.rows.length), 4), 22, Math.max(Math.floor(12000 / map.rows.length), 1));
  const height = tall * map.rows.length;
  const foot = 22;
  const ratio = devicePixelRatio || 1;
  const canvas = el("canvas", { width: (labels + width) * ratio, height: (height + foot) * ratio });
  canvas.style.height = `${height + foot}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const count = map.columns.length;
  const bins = Math.min(count, Math.floor(width));
  const pooled = pool(map, bins);
  context.imageSmoothingEnabled = false;
  context.drawImage(picture(map, pooled, bins), 0, 0, bins, map.rows.length, labels, 0, width, height);
  drawMarks(context, pooled, bins, map.rows.length, labels, width, tall);
  drawNames(context, map, labels, tall);
  drawSteps(context, map, labels, width, height);
  if (firstDifference !== null) drawParting(context, map, labels, width, height);
  const line = el("div", { className: "line" });
  line.style.height = `${height}px`;
  const chosen = el("div", { className: "tip hidden" });
  place.replaceChildren(canvas, line, chosen);
  const heat = { labels, width, height, tall, count };
  place.follow = () => {
    const at = lastUpTo(map.columns, state.step);
    line.classList.toggle("hidden", at < 0);
    line.style.left = `${labels + ((at + 0.5) / count) * width - 1}px`;
  };
  place.follow();
  place.cellAt = (event) => cellAt(place, heat, map, event);
  place.show = (cell, x, y) => {
    chosen.classList.toggle("hidden", !cell);
    if (!cell) return;
    chosen.textContent = map.describe(cell.column, cell.row);
    const left = x > place.clientWidth * 0.6;
    chosen.style.left = left ? "" : `${x + 14}px`;
    chosen.style.right = left ? `${place.clientWidth - x + 14}px` : "";
    chosen.style.top = `${Math.min(y + 10, height)}px`;
  };
}

/** The greatest magnitude and all marks of the steps that share a pixel. */
function pool(map, bins) {
  const rows = map.rows.length;
  const count = map.columns.length;
  const codes = new Uint16Array(bins * rows).fill(ABSENT);
  const marks = new Uint8Array(bins * rows);
  for (let bin = 0; bin < bins; bin++) {
    const end = Math.max(Math.floor(((bin + 1) * count) / bins), Math.floor((bin * count) / bins) + 1);
    for (let column = Math.floor((bin * count) / bins); column < end; column++) {
      for (let row = 0; row < rows; row++) {
        const cell = bin * rows + row;
        const from = column * rows + row;
        if (map.marks) { marks[cell] |= map.marks[from]; if (codes[cell] === ABSENT) codes[cell] = map.known(from) ? 1 : ABSENT; continue; }
        const code = map.codes[from];
        marks[cell] |= map.thresholds ? marksOf(code, map.thresholds[row]) : code === NON_FINITE ? BROKEN : 0;
        if (code < ABSENT && (codes[cell] === ABSENT || code > codes[cell])) codes[cell] = code;
      }
    }
  }
  return { codes, marks };
}

function picture(map, { codes, marks }, bins) {
  const rows = map.rows.length;
  const made = el("canvas", { width: bins, height: rows });
  const context = made.getContext("2d");
  const image = context.createImageData(bins, rows);
  const [low, high] = map.range || [0, 1];
  const table = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i++) table.set(viridis(i / 255), i * 3);
  for (let bin = 0; bin < bins; bin++) {
    for (let row = 0; row < rows; row++) {
      const cell = bin * rows + row;
      const out = (row * bins + bin) * 4;
      const code = codes[cell];
      if (code === ABSENT && !marks[cell]) continue;
      if (map.marks) image.data.set(marks[cell] ? [230, 159, 0] : [49, 104, 142], out);
      else if (marks[cell] & BROKEN) image.data.set([158, 27, 50], out);
      else if (code === ZERO) image.data.set([70, 70, 74], out);
      else {
        const i = Math.round(Math.min(Math.max((code - low) / (high - low), 0), 1) * 255) * 3;
        image.data.set(table.subarray(i, i + 3), out);
      }
      image.data[out + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return made;
}

function drawMarks(context, { marks }, bins, rows, labels, width, tall) {
  const size = Math.min(Math.max(tall - 4, 5), 9);
  for (let row = 0; row < rows; row++) {
    for (const kind of [DEAD, EXPLODING, DIFFERS, BROKEN]) {
      let before = -Infinity;
      for (let bin = 0; bin < bins; bin++) {
        const x = labels + ((bin + 0.5) / bins) * width;
        if (!(marks[bin * rows + row] & kind) || x - before < (kind === DIFFERS ? 34 : 13)) continue;
        before = x;
        drawMark(context, kind, x, (row + 0.5) * tall, size);
      }
    }
  }
}

function drawNames(context, map, labels, tall) {
  const every = Math.ceil(12 / tall);
  context.fillStyle = colour("ink");
  context.font = `${Math.min(12, Math.max(tall - 1, 10))}px system-ui, sans-serif`;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (let row = 0; row < map.rows.length; row += every) {
    let text = map.rows[row];
    while (text.length > 4 && context.measureText(text).width > labels - 10) text = `…${text.slice(2)}`;
    context.fillText(text, labels - 7, (row + 0.5) * tall + (every > 1 ? tall : 0));
  }
}

function drawSteps(context, map, labels, width, height) {
  context.fillStyle = colour("muted");
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "top";
  const most = Math.max(2, Math.min(8, Math.floor(width / 90), map.columns.length));
  for (let i = 0; i < most; i++) {
    const at = Math.round((i / (most - 1)) * (map.columns.length - 1)) || 0;
    context.textAlign = i === 0 ? "left" : i === most - 1 ? "right" : "center";
    const x = labels + (i === 0 ? 0 : i === most - 1 ? width : ((at + 0.5) / map.columns.length) * width);
    context.fillText(shown(map.columns[at]), x, height + 6);
  }
}

/** From here on two runs differ. */
function drawParting(context, map, labels, width, height) {
  const at = lastUpTo(map.columns, firstDifference);
  const x = labels + (Math.max(at, 0) / map.columns.length) * width;
  context.setLineDash([5, 4]);
  context.lineWidth = 2;
  context.strokeStyle = colour("bad");
  context.strokeRect(x + 1, 1, labels + width - x - 2, height - 2);
  context.setLineDash([]);
}

function cellAt(place, heat, map, event) {
  const box = place.getBoundingClientRect();
  const column = Math.floor(((event.clientX - box.left - heat.labels) / heat.width) * heat.count);
  const row = Math.floor((event.clientY - box.top) / heat.tall);
  return column >= 0 && column < heat.count && row >= 0 && row < map.rows.length ? { column, row } : null;
}

/** The colours from one magnitude to another. */
function colourBar(low, high) {
  const bar = el("canvas", { width: 180, height: 12 });
  const context = bar.getContext("2d");
  for (let x = 0; x < 180; x++) { context.fillStyle = `rgb(${viridis(x / 179)})`; context.fillRect(x, 0, 1, 12); }
  return el("span", {}, shown(low, 2), bar, shown(high, 2));
}

/** What the colours and the marks mean, and how many cells have each. */
function heatLegend(map, counts) {
  const made = el("div", { className: "legend" });
  if (map.range) made.append(colourBar(...map.range.map(magnitude)));
  for (const [kind, text, count] of counts) {
    const mark = el("canvas", { width: 20, height: 18 });
    const context = mark.getContext("2d");
    context.fillStyle = { [DEAD]: "#46464a", [DIFFERS]: "#e69f00", [BROKEN]: "#9e1b32", [EXPLODING]: "#b5de2b" }[kind];
    context.fillRect(0, 0, 20, 18);
    drawMark(context, kind, 10, 9, 9);
    made.append(el("span", {}, mark, `${text} (${shown(count)})`));
  }
  return made;
}

// ------------------------------------------------------------------ the section

function countMarks(map) {
  const counts = new Map();
  const rows = map.rows.length;
  const length = map.columns.length * rows;
  for (let cell = 0; cell < length; cell++) {
    const mark = map.marks ? map.marks[cell] : map.thresholds ? marksOf(map.codes[cell], map.thresholds[cell % rows]) : map.codes[cell] === NON_FINITE ? BROKEN : 0;
    if (mark) counts.set(mark, (counts.get(mark) || 0) + 1);
  }
  return counts;
}

/** The maps that there are of a run, by their names. */
function heatMaps(i) {
  const figures = runs[i].figures;
  const about = { columns: array(figures.columns), rows: figures.params };
  const cell = (column, row) => column * about.rows.length + row;
  const found = [];
  const add = (name, text, reference, more) => {
    if (!reference) return;
    const codes = array(reference);
    found.push({ name, text, make: () => ({ ...about, codes, range: rangeOf(codes), ...more,
      describe: (column, row) => `step ${shown(about.columns[column])}, ${about.rows[row]}: ${text} ${shown(magnitude(codes[cell(column, row)]), 3)}` }) });
  };
  add("gradient", "norm of the gradient", figures.norms, { thresholds: array(figures.exploding) });
  add("ratio", "norm of the update by that of the weights", figures.ratios, {});
  const different = i > 0 ? report.differences[i - 1].gradients : null;
  if (different) {
    const others = array(different);
    const marks = Uint8Array.from(others, (x) => (x === 1 ? DIFFERS : 0));
    const says = ["the same bits as in A", "other bits than in A", "not to be compared"];
    found.push({ name: "differs", text: "gradients that differ from those of A", make: () => ({ ...about, marks, known: (at) => others[at] !== 2,
      describe: (column, row) => `step ${shown(about.columns[column])}, ${about.rows[row]}: ${says[others[cell(column, row)]]}` }) });
  }
  return found;
}

function heatSection() {
  let run = runs.findIndex((_, i) => heatMaps(i).length);
  if (run < 0) {
    section("gradients", "Gradients", el("p", { className: "muted" },
      "No gradients are recorded. Record the run with record=\"grads\", or give the report its model: --model MODULE:FUNCTION."));
    return;
  }
  let which = "gradient";
  let map = null;
  let row = 0;
  const keep = {};
  const heat = el("div", { className: "heat", tabIndex: 0, role: "img" });
  const legend = el("div");
  const said = el("p", { className: "note mono", "aria-live": "polite" });
  const kinds = select("show", [], (value) => { which = value; change(); });
  const chooser = select("run", runs.map((_, i) => [i, runLabel(i)]), (value) => { run = +value; offer(); change(); });
  chooser.input.value = run;
  const tools = runs.length > 1 ? [chooser.element, kinds.element] : [kinds.element];

  function offer() {
    const maps = heatMaps(run);
    kinds.input.replaceChildren(...maps.map((found) => el("option", { value: found.name }, found.text)));
    if (!maps.some((found) => found.name === which)) which = maps.length ? maps[0].name : "";
    kinds.input.value = which;
  }

  function change() {
    const found = heatMaps(run).find((one) => one.name === which);
    map = found ? found.make() : null;
    if (!map) { heat.replaceChildren(el("p", { className: "muted" }, "Nothing is known of the gradients of this run.")); legend.replaceChildren(); return; }
    heat.setAttribute("aria-label", `${found.text} of every param at every step; arrows up and down choose a param, left and right a step`);
    const counts = countMarks(map);
    const kindsOf = map.marks ? [[DIFFERS, "other bits than in A", counts.get(DIFFERS) || 0]]
      : MARKS.filter(([kind]) => map.thresholds || kind === BROKEN).map(([kind, text]) => [kind, text, counts.get(kind) || 0]);
    legend.replaceChildren(heatLegend(map, kindsOf));
    made.redraw();
  }

  function speak() {
    const column = map ? lastUpTo(map.columns, state.step) : -1;
    said.textContent = column < 0 ? "" : map.describe(column, row);
  }

  heat.addEventListener("mousemove", (event) => { const cell = map && heat.cellAt(event); heat.show(cell, event.clientX - heat.getBoundingClientRect().left, event.clientY - heat.getBoundingClientRect().top); });
  heat.addEventListener("mouseleave", () => heat.show && heat.show(null));
  heat.addEventListener("click", (event) => { const cell = map && heat.cellAt(event); if (cell) { row = cell.row; goTo(map.columns[cell.column]); speak(); } });
  heat.addEventListener("keydown", (event) => {
    if (!map || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
    row = Math.min(Math.max(row + (event.key === "ArrowDown" ? 1 : -1), 0), map.rows.length - 1);
    event.preventDefault();
    speak();
  });

  const made = figure({
    caption: "A row for each param, a column for each step (or for several, of which the greatest counts); a click goes to the step. "
      + "Colours are decimal logarithms: dark is little, bright is much. Empty: no gradient, or not known."
      + (firstDifference === null ? "" : " Dashed: the steps from which the runs differ."),
    tools,
    chart: (place) => { if (heat.parentNode !== place) place.replaceChildren(heat); if (map) { drawHeat(heat, map); speak(); } },
    table: (place) => { if (map) place.append(heatTable(run, map, keep)); },
  });
  section("gradients", "Gradients and updates, param by param", made.element, legend, said);
  offer();
  change();
  on("step", () => { if (heat.follow) heat.follow(); speak(); });
  on("theme", change);
}

/** A row for each param: the first, the median, the greatest and the last magnitude, and how many of each mark. */
function heatTable(run, map, keep) {
  const rows = map.rows.length;
  const of = map.rows.map((_, row) => {
    const all = [];
    const counts = { [DEAD]: 0, [EXPLODING]: 0, [BROKEN]: 0, [DIFFERS]: 0 };
    for (let column = 0; column < map.columns.length; column++) {
      const cell = column * rows + row;
      if (map.marks) { if (map.marks[cell]) counts[DIFFERS]++; continue; }
      const mark = marksOf(map.codes[cell], map.thresholds ? map.thresholds[row] : ABSENT);
      if (mark) counts[mark]++;
      if (map.codes[cell] < ABSENT) all.push(map.codes[cell]);
    }
    const sorted = Uint16Array.from(all).sort();
    const value = (code) => (code === undefined ? NaN : magnitude(code));
    return { first: value(all[0]), median: value(sorted[sorted.length >> 1]), greatest: value(sorted[sorted.length - 1]), last: value(all[all.length - 1]), counts };
  });
  const name = words("param", (i) => map.rows[i]);
  name.value = undefined;
  const columns = map.marks ? [name, numbers("steps with other bits than A", (i) => of[i].counts[DIFFERS])]
    : [name, numbers("first", (i) => of[i].first, 3), numbers("median", (i) => of[i].median, 3), numbers("greatest", (i) => of[i].greatest, 3),
      numbers("last", (i) => of[i].last, 3), numbers("steps at zero", (i) => of[i].counts[DEAD]),
      ...(map.thresholds ? [numbers("exploding", (i) => of[i].counts[EXPLODING])] : []), numbers("not finite", (i) => of[i].counts[BROKEN])];
  return dataTable(columns, rows, { caption: `${runLabel(run)}: all steps of each param`, keep, search: (i) => map.rows[i],
    mark: (i) => of[i].counts[EXPLODING] + of[i].counts[BROKEN] + of[i].counts[DIFFERS] > 0 });
}
