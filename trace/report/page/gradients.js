// The section of the heat map: which map is shown, its legend, its table.

/** The colours from one magnitude to another. */
function colourBar(low, high) {
  const bar = el("canvas", { width: 180, height: 12 });
  const context = bar.getContext("2d");
  for (let x = 0; x < 180; x++) {
    context.fillStyle = `rgb(${viridis(x / 179)})`;
    context.fillRect(x, 0, 1, 12);
  }
  return el("span", {}, shown(low, 2), bar, shown(high, 2));
}

/** What the marks mean, and how many cells have each. */
function heatLegend(counts) {
  const made = counts.map(([kind, text, count]) => el("span", {}, el("b", {}, SIGNS_OF[kind]), `${text} (${shown(count)})`));
  return el("div", { className: "legend" }, ...made);
}

function countMarks(map) {
  const counts = new Map();
  const rows = map.rows.length;
  const length = map.columns.length * rows;
  for (let cell = 0; cell < length; cell++) {
    const mark = map.marks
      ? map.marks[cell]
      : map.thresholds
        ? marksOf(map.codes[cell], map.thresholds[cell % rows])
        : map.codes[cell] === NON_FINITE
          ? BROKEN
          : 0;
    if (mark) counts.set(mark, (counts.get(mark) || 0) + 1);
  }
  return counts;
}

/** The maps of a run, with what is told of a cell. */
function heatMaps(i) {
  const figures = runs[i].figures;
  const about = { columns: array(figures.columns), rows: figures.params };
  const cell = (column, row) => column * about.rows.length + row;
  const said = (column, row) => `step ${shown(about.columns[column])}, ${about.rows[row]}:`;
  const says = ["the same bits as in A", "other bits than in A", "not to be compared"];
  return report.charts.maps[i].map((map) => {
    if (map.name === "differs") {
      const others = array(report.differences[i - 1].gradients);
      const describe = (column, row) => `${said(column, row)} ${says[others[cell(column, row)]]}`;
      return { ...map, ...about, marks: Uint8Array.from(others, (x) => (x === 1 ? DIFFERS : 0)), describe };
    }
    const codes = array(map.name === "gradient" ? figures.norms : figures.ratios);
    const thresholds = map.name === "gradient" ? array(figures.exploding) : null;
    const describe = (column, row) => `${said(column, row)} ${map.text} ${shown(magnitude(codes[cell(column, row)]), 3)}`;
    return { ...map, ...about, codes, thresholds, describe };
  });
}

function heatSection() {
  let run = report.charts.maps.findIndex((maps) => maps.length);
  if (run < 0) {
    section(
      "gradients",
      "Gradients",
      el(
        "p",
        { className: "muted" },
        'No gradients are recorded. Record the run with record="grads", or give the report its model: --model MODULE:FUNCTION.',
      ),
    );
    return;
  }
  let which = "gradient";
  let map = null;
  let row = 0;
  const keep = {};
  const heat = el("div", { className: "heat", tabIndex: 0, role: "group" });
  const tip = el("div", { className: "tip hidden" });
  const legend = el("div");
  const said = el("p", { className: "note mono", "aria-live": "polite" });
  const kinds = select("show", [], (value) => {
    which = value;
    change();
  });
  const chooser = select(
    "run",
    runs.map((_, i) => [i, runLabel(i)]),
    (value) => {
      run = +value;
      offer();
      change();
    },
  );
  chooser.input.value = run;
  const tools = runs.length > 1 ? [chooser.element, kinds.element] : [kinds.element];

  function offer() {
    const maps = report.charts.maps[run];
    kinds.input.replaceChildren(...maps.map((found) => el("option", { value: found.name }, found.text)));
    if (!maps.some((found) => found.name === which)) which = maps.length ? maps[0].name : "";
    kinds.input.value = which;
  }

  function change() {
    const found = heatMaps(run).find((one) => one.name === which);
    map = found || null;
    heat.replaceChildren();
    heat.model = heat.asked = undefined;
    if (!map) {
      heat.replaceChildren(el("p", { className: "muted" }, "Nothing is known of the gradients of this run."));
      legend.replaceChildren();
      return;
    }
    heat.setAttribute(
      "aria-label",
      `${found.text} of every param at every step; arrows up and down choose a param, left and right a step`,
    );
    const counts = countMarks(map);
    const kindsOf = map.marks
      ? [[DIFFERS, "other bits than in A", counts.get(DIFFERS) || 0]]
      : MARKS.filter(([kind]) => map.thresholds || kind === BROKEN).map(([kind, text]) => [
          kind,
          text,
          counts.get(kind) || 0,
        ]);
    legend.replaceChildren(heatLegend(kindsOf));
    made.redraw();
  }

  function speak() {
    const column = map ? lastUpTo(map.columns, state.step) : -1;
    said.textContent = column < 0 ? "" : map.describe(column, row);
  }

  /** The cell at a place of the plot. */
  function cellAt({ x, y }) {
    const cell = { column: lastUpTo(map.columns, Math.floor(x)), row: Math.floor(y) };
    return cell.column >= 0 && x < mostSteps && cell.row >= 0 && cell.row < map.rows.length ? cell : null;
  }

  function point(event) {
    const cell = cellAt(event);
    tip.classList.toggle("hidden", !cell);
    if (!cell) return;
    tip.textContent = map.describe(cell.column, cell.row);
    const left = event.sx > heat.clientWidth * 0.6;
    tip.style.left = left ? "" : `${event.sx + 14}px`;
    tip.style.right = left ? `${heat.clientWidth - event.sx + 14}px` : "";
    tip.style.top = `${event.sy + 50}px`;
  }

  function choose(event) {
    const cell = cellAt(event);
    if (!cell) return;
    row = cell.row;
    point(event);
    speak();
  }

  heat.addEventListener("mouseleave", () => tip.classList.add("hidden"));
  heat.addEventListener("keydown", (event) => {
    if (!map || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
    row = Math.min(Math.max(row + (event.key === "ArrowDown" ? 1 : -1), 0), map.rows.length - 1);
    event.preventDefault();
    speak();
  });

  const made = figure({
    caption:
      "A row for each param, a column for each step (or for several, of which the greatest counts); a click goes to the step. " +
      "Colours are decimal logarithms, from the 2nd to the 98th percentile: dark is little, bright is much, grey zero, red not finite. " +
      "Empty: no gradient, or not known." +
      (!firstDifference ? "" : " Dashed: the steps from which the runs differ."),
    tools,
    chart: (place) => {
      if (heat.parentNode !== place) place.replaceChildren(heat);
      if (!map) return;
      drawPlot(heat, map.item, (plot) => {
        follow(heat);
        speak();
        if (tip.parentNode === heat) return;
        heat.append(tip);
        plot.on_event("mousemove", point);
        plot.on_event("tap", choose);
      });
    },
    table: (place) => {
      if (map) place.append(heatTable(run, map, keep));
    },
  });
  section("gradients", "Gradients and updates, param by param", made.element, legend, said);
  offer();
  change();
  on("step", () => {
    follow(heat);
    speak();
  });
  on("theme", () => repaint(heat));
}

/** A row for each param: the first, the median, the greatest and the last magnitude, and how many of each mark. */
function heatTable(run, map, keep) {
  const rows = map.rows.length;
  const of = map.rows.map((_, row) => {
    const all = [];
    const counts = { [DEAD]: 0, [EXPLODING]: 0, [BROKEN]: 0, [DIFFERS]: 0 };
    for (let column = 0; column < map.columns.length; column++) {
      const cell = column * rows + row;
      if (map.marks) {
        if (map.marks[cell]) counts[DIFFERS]++;
        continue;
      }
      const mark = marksOf(map.codes[cell], map.thresholds ? map.thresholds[row] : ABSENT);
      if (mark) counts[mark]++;
      if (map.codes[cell] < ABSENT) all.push(map.codes[cell]);
    }
    const sorted = Uint16Array.from(all).sort();
    const value = (code) => (code === undefined ? NaN : magnitude(code));
    return {
      first: value(all[0]),
      median: value(sorted[sorted.length >> 1]),
      greatest: value(sorted[sorted.length - 1]),
      last: value(all[all.length - 1]),
      counts,
    };
  });
  const name = words("param", (i) => map.rows[i]);
  name.value = undefined;
  const columns = map.marks
    ? [name, numbers("steps with other bits than A", (i) => of[i].counts[DIFFERS])]
    : [
        name,
        numbers("first", (i) => of[i].first, 3),
        numbers("median", (i) => of[i].median, 3),
        numbers("greatest", (i) => of[i].greatest, 3),
        numbers("last", (i) => of[i].last, 3),
        numbers("steps at zero", (i) => of[i].counts[DEAD]),
        ...(map.thresholds ? [numbers("exploding", (i) => of[i].counts[EXPLODING])] : []),
        numbers("not finite", (i) => of[i].counts[BROKEN]),
      ];
  return dataTable(columns, rows, {
    caption: `${runLabel(run)}: all steps of each param`,
    keep,
    search: (i) => map.rows[i],
    mark: (i) => of[i].counts[EXPLODING] + of[i].counts[BROKEN] + of[i].counts[DIFFERS] > 0,
  });
}
