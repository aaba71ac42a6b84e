// Training: batches in the order of the demo, a step of WebAssembly for each, and what the page shows of it.

const told = JSON.parse(find("told").textContent);
const SHOWN = 24;
const STEPS_A_FRAME = 4;
const MOST_MILLISECONDS = 12;

async function library(name) {
  const source = new Blob([await unpacked(`${name}.mjs`)], { type: "text/javascript" });
  const { load, facts } = await import(URL.createObjectURL(source));
  const loaded = await load(unpacked(`wasm32/${name}.wasm`), unpacked(`wasm32-relaxed/${name}.wasm`));
  return { loaded, facts };
}

async function digits(part) {
  const [images, labels] = await Promise.all([unpacked(`${part}/images`), unpacked(`${part}/labels`)]);
  return { images: new Uint8Array(images), labels: new Uint8Array(labels) };
}

const frame = () => new Promise((done) => (document.hidden ? setTimeout(done) : requestAnimationFrame(done)));

function copied(from, to) {
  for (const [name, array] of Object.entries(to)) array.set(from[name]);
}

function batch({ images, labels }, rows) {
  const x = new Float32Array(64 * rows.length);
  const y = new BigInt64Array(rows.length);
  rows.forEach((row, i) => {
    y[i] = BigInt(labels[row]);
    for (let k = 0; k < 64; k++) x[64 * i + k] = images[64 * row + k] / 16;
  });
  return { in0: x, in1: y };
}

function classesOf(scores) {
  return Array.from({ length: scores.length / 10 }, (_, i) => {
    const row = scores.subarray(10 * i, 10 * i + 10);
    return row.indexOf(Math.max(...row));
  });
}

const [step, rest, predict, train, test, order, weights] = await Promise.all([
  library("step"),
  library("rest"),
  library("predict"),
  digits("train"),
  digits("test"),
  unpacked("order").then((bytes) => new Uint16Array(bytes)),
  unpacked("weights").then((bytes) => new Float32Array(bytes)),
]);
const samples = train.labels.length;
const epochSteps = Math.ceil(samples / told.batch);
const steps = told.epochs * epochSteps;
const everyTest = batch(test, [...test.labels.keys()]).in0;
const shown = Array.from({ length: SHOWN }, (_, i) => new Digit(test.images, test.labels, i));
find("digits").replaceChildren(...shown.map((digit) => digit.figure));
find("engine").textContent = step.loaded.relaxed ? "by the processor" : "by software, exact";
find("expected").textContent = told.digest;

function begin() {
  step.loaded.start();
  let at = 0;
  for (const name of told.parts[0]) {
    const array = step.loaded.state[name];
    array.set(weights.subarray(at, at + array.length));
    at += array.length;
  }
}

// The step of an epoch's last, smaller batch is a library of its own: the state goes there and back.
function trained(n) {
  const epoch = Math.floor(n / epochSteps);
  const first = epoch * samples + (n % epochSteps) * told.batch;
  const last = Math.min(first + told.batch, (epoch + 1) * samples);
  const given = batch(train, order.subarray(first, last));
  if (last - first === told.batch) return step.loaded.run(given).loss[0];
  copied(step.loaded.state, rest.loaded.state);
  const { loss } = rest.loaded.run(given);
  copied(rest.loaded.state, step.loaded.state);
  return loss[0];
}

function tested() {
  for (const [name, array] of Object.entries(predict.loaded.state)) array.set(step.loaded.state[name]);
  const classes = classesOf(predict.loaded.run({ in0: everyTest }).out);
  for (const digit of shown) digit.show(classes);
  const right = classes.filter((found, i) => found === test.labels[i]).length;
  find("accuracy").textContent = `${((100 * right) / classes.length).toFixed(1)} %`;
}

async function show(losses, spent) {
  find("step").textContent = `${losses.length} of ${steps}`;
  find("loss").textContent = losses.length ? losses.at(-1).toFixed(6) : "–";
  find("time").textContent = losses.length ? `${(spent / losses.length).toFixed(2)} ms` : "–";
  find("digest").textContent = await stateDigest(told.parts, step.facts.held, step.loaded.state);
}

function ended() {
  const same = find("digest").textContent === told.digest;
  find("verdict").textContent = same ? "Equal: all 256 bits." : "Not equal: this engine computes otherwise.";
  document.body.className = same ? "equal" : "other";
}

async function run() {
  document.body.className = "busy";
  find("again").disabled = true;
  find("verdict").textContent = "Training …";
  const losses = [];
  const curve = new Curve(find("curve"), steps, epochSteps);
  let spent = 0;
  begin();
  tested();
  await show(losses, spent);
  while (losses.length < steps) {
    await frame();
    const began = performance.now();
    for (let k = 0; k < STEPS_A_FRAME && losses.length < steps; k++) {
      losses.push(trained(losses.length));
      if (performance.now() - began > MOST_MILLISECONDS) break;
    }
    spent += performance.now() - began;
    if (losses.length % epochSteps < STEPS_A_FRAME || losses.length === steps) tested();
    curve.show(losses);
    await show(losses, spent);
  }
  ended();
  find("again").disabled = false;
}

find("again").addEventListener("click", run);
run();
