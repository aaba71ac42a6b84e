// The data of the page: one JSON, and arrays that are decoded when they are first drawn.

const report = JSON.parse(document.getElementById("data").textContent);
const runs = report.runs;
const KINDS = { f64: Float64Array, f32: Float32Array, u32: Uint32Array, u16: Uint16Array, u8: Uint8Array };
const decoded = new Map();

/** The array that a reference names; null stays null. */
function array(reference) {
  if (!reference) return null;
  if (!decoded.has(reference.at)) {
    const bytes = fromBase64(document.getElementById(`array${reference.at}`).textContent);
    decoded.set(reference.at, new KINDS[reference.kind](bytes.buffer));
  }
  return decoded.get(reference.at);
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** One number per step, also where it never changes. */
function series(reference, steps) {
  return "constant" in reference ? new Float64Array(steps).fill(number(reference.constant)) : array(reference);
}

/** A number as the data has it: what JSON has no number for is a text. */
function number(value) {
  if (value === null || value === undefined) return NaN;
  if (typeof value === "number") return value;
  return { nan: NaN, inf: Infinity, "-inf": -Infinity }[value];
}

// Magnitudes in 16 bits: decimal logarithms in steps of 1/650 from 1e-50 on.
const ZERO = 0;
const ABSENT = 65534;
const NON_FINITE = 65535;

function logarithm(code) {
  return (code - 1) / 650 - 50;
}

function magnitude(code) {
  if (code === ZERO) return 0;
  if (code === ABSENT) return NaN;
  return code === NON_FINITE ? Infinity : 10 ** logarithm(code);
}

/** A number for people: so many digits, and no more zeros than help. */
function shown(value, digits = 4) {
  if (value === Infinity || value === -Infinity) return value > 0 ? "inf" : "-inf";
  if (Number.isNaN(value) || value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return value.toLocaleString("en-US");
  const rounded = +value.toPrecision(digits);
  return size < 1e-3 || size >= 1e6 ? rounded.toExponential() : String(rounded);
}

function bytesShown(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  while (count >= 1000 && i < units.length - 1) {
    count /= 1000;
    i++;
  }
  return `${i ? count.toPrecision(3) : count} ${units[i]}`;
}

const letter = (i) => String.fromCharCode(65 + i);
const baseName = (path) => path.split(/[\\/]/).pop();
const runLabel = (i) => (runs.length > 1 ? `${letter(i)} · ${baseName(runs[i].path)}` : baseName(runs[i].path));
const mostSteps = Math.max(...runs.map((run) => run.steps));

/** The first step at which any run differs from the first; null where none does. */
const firstDifference = (() => {
  const steps = report.differences.map((found) => found.step).filter((step) => step !== null);
  return steps.length ? Math.min(...steps) : null;
})();

/** The place of a number in a sorted list; -1 where it is not in it. */
function placeOf(sorted, wanted) {
  const at = lastUpTo(sorted, wanted);
  return at >= 0 && sorted[at] === wanted ? at : -1;
}

/** The place of the last number that is not above the wanted one; -1 where all are. */
function lastUpTo(sorted, wanted) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
