// What is marked of a magnitude, and the colours that magnitudes have.

const VIRIDIS = [
  [68, 1, 84],
  [72, 40, 120],
  [62, 73, 137],
  [49, 104, 142],
  [38, 130, 142],
  [31, 158, 137],
  [53, 183, 121],
  [110, 206, 88],
  [181, 222, 43],
  [253, 231, 37],
];

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
const MARKS = [
  [DEAD, "zero: dead"],
  [EXPLODING, "exploding: 100 times its median or more"],
  [BROKEN, "not finite"],
];

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
  for (let i = 0; i < codes.length; i++)
    if (codes[i] !== ZERO && codes[i] < ABSENT) {
      counts[codes[i]]++;
      total++;
    }
  if (!total) return [32501, 32502];
  const edge = total / 1000;
  const ends = [0, 0];
  for (let code = 1, sum = 0; code < ABSENT; code++) {
    sum += counts[code];
    if (sum > edge) {
      ends[0] = code;
      break;
    }
  }
  for (let code = ABSENT - 1, sum = 0; code > 0; code--) {
    sum += counts[code];
    if (sum > edge) {
      ends[1] = code;
      break;
    }
  }
  return ends[1] > ends[0] ? ends : [ends[0] - 325, ends[0] + 325];
}

/** A mark, drawn white in black, so that it stands out from every colour. */
function drawMark(context, kind, x, y, size) {
  const r = size / 2;
  context.beginPath();
  if (kind === DEAD) context.arc(x, y, r * 0.75, 0, 7);
  if (kind === EXPLODING) {
    context.moveTo(x, y - r);
    context.lineTo(x + r, y + r * 0.8);
    context.lineTo(x - r, y + r * 0.8);
    context.closePath();
  }
  if (kind === BROKEN) {
    context.moveTo(x - r, y - r);
    context.lineTo(x + r, y + r);
    context.moveTo(x + r, y - r);
    context.lineTo(x - r, y + r);
  }
  if (kind === DIFFERS) {
    context.moveTo(x - r, y - r / 3);
    context.lineTo(x + r, y - r / 3);
    context.moveTo(x - r, y + r / 3);
    context.lineTo(x + r, y + r / 3);
    context.moveTo(x - r / 2, y + r);
    context.lineTo(x + r / 2, y - r);
  }
  context.lineJoin = "round";
  context.strokeStyle = "#000";
  context.lineWidth = 4;
  context.stroke();
  context.strokeStyle = "#fff";
  context.lineWidth = 1.8;
  context.stroke();
  if (kind === EXPLODING) {
    context.fillStyle = "#fff";
    context.fill();
  }
}
