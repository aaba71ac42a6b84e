// The heat map: params downwards, steps to the right, the decimal logarithm of a magnitude as colour, and marks.

/**
 * Draw a heat map into an element.
 *
 * @param map `{columns, rows, codes, thresholds, range, describe(column, row)}`; codes are magnitudes, column after
 *   column; or `{…, marks}` where there are no magnitudes and every cell is a mark or none
 */
function drawHeat(place, map) {
  const labels = Math.min(190, Math.round(place.clientWidth * 0.28));
  const width = Math.max(place.clientWidth - labels, 80);
  const tall = Math.min(
    Math.max(Math.floor(560 / map.rows.length), 4),
    22,
    Math.max(Math.floor(12000 / map.rows.length), 1),
  );
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
        if (map.marks) {
          marks[cell] |= map.marks[from];
          if (codes[cell] === ABSENT) codes[cell] = map.known(from) ? 1 : ABSENT;
          continue;
        }
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
