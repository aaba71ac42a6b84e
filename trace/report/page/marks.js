// What is marked of a magnitude, and the colours that magnitudes have in the graph.

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

const SIGNS_OF = { [DEAD]: "○", [EXPLODING]: "▲", [BROKEN]: "✕", [DIFFERS]: "≠" };
