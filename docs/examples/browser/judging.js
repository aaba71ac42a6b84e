// The judge works in a thread of its own, so that the page stays alive; a trace that is chosen meanwhile takes its place.

const WORK = `
onmessage = async ({ data: [module, trace, batches] }) => {
  try {
    postMessage(await judge(new Uint8Array(module), new Uint8Array(trace), new Uint8Array(batches)));
  } catch (error) {
    postMessage({ code: null, text: \`\${error}\` });
  }
};`;

const [module, batches, program] = await Promise.all(["judge.wasm", "batches.bin", "judge.mjs"].map(unpacked));
const source = URL.createObjectURL(new Blob([program, WORK], { type: "text/javascript" }));
let worker;

function show(code, verdict, why, steps, time) {
  document.body.className = code === 0 ? "equal" : code === undefined ? "busy" : "other";
  find("verdict").textContent = verdict;
  find("why").textContent = why;
  find("steps").textContent = steps;
  find("time").textContent = time;
}

function answered({ code, text }, began) {
  const [, verdict, why] = text.match(/^([^:]*): (.*)$/s);
  const [, first, last] = code === 0 ? why.match(/^steps (\d+) to (\d+) are proven/) : [];
  const steps = code === 0 ? `${last - first + 1}: ${first} to ${last}` : "none";
  show(code, verdict, why, steps, `${((performance.now() - began) / 1000).toFixed(2)} s`);
}

async function prove([file]) {
  if (file === undefined) return;
  worker?.terminate();
  const mine = (worker = new Worker(source, { type: "module" }));
  find("name").textContent = `${file.name}, ${file.size.toLocaleString("en")} bytes`;
  show(undefined, "…", "Computing every step again …", "–", "–");
  const trace = await file.arrayBuffer();
  const began = performance.now();
  mine.onmessage = ({ data }) => answered(data, began);
  mine.postMessage([module, trace, batches], [trace]);
}

find("trace").addEventListener("change", ({ target }) => prove(target.files));
find("trace").disabled = false;
