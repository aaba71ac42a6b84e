// Lines over the steps, drawn by uPlot: several runs over each other, on a linear or a logarithmic axis.

/** An average that forgets: each step counts `keep` times as much as the one behind it. NaN and infinities are left out. */
function smoothed(values, keep) {
  const found = new Array(values.length);
  let sum = 0;
  let weight = 0;
  for (let i = 0; i < values.length; i++) {
    const x = values[i];
    if (Number.isFinite(x)) {
      sum = keep * sum + (1 - keep) * x;
      weight = keep * weight + (1 - keep);
    }
    found[i] = weight ? sum / weight : NaN;
  }
  return found;
}

/** What is drawn: null where a number cannot be. */
function drawable(values, log) {
  return Array.from(values, (x) => (Number.isFinite(x) && (!log || x > 0) ? x : null));
}

/**
 * Draw lines into an element, in the place of what was there.
 *
 * @param lines each `{label, xs, ys, run, faint}`; `xs` are steps in their order
 * @param options `log`, `height`, `from`: the step from which two runs differ, `unit`
 */
function drawLines(place, lines, options = {}) {
  const { xs, columns } = joined(lines, options.log);
  const wanted = { width: Math.max(place.clientWidth, 260), height: options.height || 280 };
  const axis = {
    stroke: colour("muted"),
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { stroke: colour("line"), width: 1 },
    font: "12px system-ui, sans-serif",
  };
  const made = new uPlot(
    {
      ...wanted,
      padding: [12, 16, 0, 0],
      scales: { x: { time: false }, y: options.log ? { distr: 3, log: 10, range: logRange } : {} },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((t) => (Number.isInteger(t) ? shown(t) : "")) },
        { ...axis, size: 72, values: (_, ticks) => ticks.map((t) => (t === null ? "" : shown(t, 3))) },
      ],
      cursor: { drag: { x: true, y: false }, points: { size: 6 } },
      legend: {
        live: true,
        markers: { width: 3, dash: (_, i) => (DASHES[lines[i - 1].run % 4].length ? "dashed" : "solid") },
      },
      series: [
        { label: "step", value: (_, x) => (x === null ? "–" : shown(x)) },
        ...lines.map((line) => ({
          label: line.label,
          stroke: runColour(line.run),
          width: line.faint ? 1 : 2,
          alpha: line.faint ? 0.35 : 1,
          dash: DASHES[line.run % 4],
          spanGaps: Boolean(line.gaps),
          points: { show: xs.length < 60 },
          value: (_, x) => shown(x, 6),
        })),
      ],
      hooks: {
        drawClear: [(u) => shade(u, options.from)],
        draw: [(u) => markStep(u), (u) => nameShade(u, options.from), (u) => markBroken(u, lines)],
        setCursor: [
          (u) => {
            if (u.cursor.left < 0) tellChosen(u);
          },
        ],
        ready: [
          (u) =>
            u.over.addEventListener("click", () => {
              if (u.cursor.idx !== null && u.cursor.idx !== undefined) goTo(xs[u.cursor.idx]);
            }),
        ],
      },
    },
    [xs, ...columns],
    undefined,
  );
  place.replaceChildren(made.root);
  made.root.setAttribute("role", "img");
  made.root.setAttribute(
    "aria-label",
    `${lines.map((line) => line.label).join(", ")} over the steps; the button Table shows the numbers`,
  );
  place.chart = made;
  tellChosen(made);
}

/** Without a pointer on the chart its legend tells the numbers of the chosen step. */
function tellChosen(u) {
  u.setLegend({ idx: Math.max(lastUpTo(u.data[0], state.step), 0) }, false);
}

/** Whole powers of ten around the numbers, so that the axis has some of them to show. */
function logRange(_, low, high) {
  if (!(low > 0) || !(high > 0)) return [0.1, 1];
  const floor = 10 ** Math.floor(Math.log10(low));
  const ceiling = 10 ** Math.ceil(Math.log10(high) + 1e-9);
  return [floor, ceiling === floor ? floor * 10 : ceiling];
}

/** All lines over the steps of all of them. */
function joined(lines, log) {
  const longest = lines.reduce((a, b) => (b.xs.length > a.xs.length ? b : a), lines[0]);
  const covers = lines.every((line) => line.xs.every((x, i) => x === longest.xs[i]));
  const xs = covers
    ? Array.from(longest.xs)
    : [...new Set(lines.flatMap((line) => Array.from(line.xs)))].sort((a, b) => a - b);
  const columns = lines.map((line) => {
    const ys = drawable(line.ys, log);
    if (covers) {
      while (ys.length < xs.length) ys.push(null);
      return ys;
    }
    const at = new Map(Array.from(line.xs, (x, i) => [x, ys[i]]));
    return xs.map((x) => at.get(x) ?? (line.gaps ? undefined : null));
  });
  return { xs, columns };
}

function shade(u, from) {
  if (from === null || from === undefined) return;
  const { left, top, width, height } = u.bbox;
  const x = Math.max(left, Math.min(u.valToPos(from, "x", true), left + width));
  u.ctx.save();
  u.ctx.fillStyle = colour("shade");
  u.ctx.fillRect(x, top, left + width - x, height);
  u.ctx.strokeStyle = colour("bad");
  u.ctx.setLineDash([5, 4]);
  u.ctx.beginPath();
  u.ctx.moveTo(x, top);
  u.ctx.lineTo(x, top + height);
  u.ctx.stroke();
  u.ctx.restore();
}

function nameShade(u, from) {
  if (from === null || from === undefined) return;
  const { left, top, width } = u.bbox;
  const x = Math.max(left, Math.min(u.valToPos(from, "x", true), left + width));
  u.ctx.save();
  u.ctx.fillStyle = colour("bad");
  u.ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  const right = x > left + width * 0.7;
  u.ctx.textAlign = right ? "right" : "left";
  u.ctx.textBaseline = "top";
  u.ctx.lineWidth = 4 * devicePixelRatio;
  u.ctx.setLineDash([]);
  u.ctx.strokeStyle = colour("card");
  const text = `differs from step ${shown(from)} on`;
  u.ctx.strokeText(text, x + (right ? -6 : 6) * devicePixelRatio, top + 3);
  u.ctx.fillText(text, x + (right ? -6 : 6) * devicePixelRatio, top + 3);
  u.ctx.restore();
}

function markStep(u) {
  const { left, top, width, height } = u.bbox;
  const x = u.valToPos(state.step, "x", true);
  if (x < left - 1 || x > left + width + 1) return;
  u.ctx.save();
  u.ctx.strokeStyle = colour("select");
  u.ctx.setLineDash([]);
  u.ctx.lineWidth = devicePixelRatio;
  u.ctx.beginPath();
  u.ctx.moveTo(x, top);
  u.ctx.lineTo(x, top + height);
  u.ctx.stroke();
  u.ctx.restore();
}

/** A cross at the top for every number that is infinite or NaN. */
function markBroken(u, lines) {
  const { top } = u.bbox;
  u.ctx.save();
  u.ctx.fillStyle = colour("bad");
  u.ctx.font = `bold ${13 * devicePixelRatio}px system-ui, sans-serif`;
  u.ctx.textAlign = "center";
  for (const line of lines) {
    if (line.faint || line.gaps) continue;
    let before = -Infinity;
    for (let i = 0; i < line.ys.length; i++) {
      if (Number.isFinite(line.ys[i])) continue;
      const x = u.valToPos(line.xs[i], "x", true);
      if (x - before > 10) {
        u.ctx.fillText("✕", x, top + 12 * devicePixelRatio);
        before = x;
      }
    }
  }
  u.ctx.restore();
}

/** The numbers of lines as a table: a row for each step. */
function linesTable(place, caption, lines, keep) {
  const all = joined(
    lines.map((line) => ({ ...line, gaps: true })),
    false,
  );
  const raw = lines.map((line) => new Map(Array.from(line.xs, (x, i) => [x, line.ys[i]])));
  const at = (row) => all.xs[row];
  place.append(
    dataTable(
      [numbers("step", at), ...lines.map((line, j) => numbers(line.label, (row) => raw[j].get(at(row)), 8))],
      all.xs.length,
      { caption, keep, current: (row) => at(row) === state.step, pick: (row) => goTo(at(row)) },
    ),
  );
}

const stepsOf = (run) => Array.from({ length: run.steps }, (_, i) => i);
