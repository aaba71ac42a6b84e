// The judge works in a thread of its own, so that the page stays alive; a trace that is chosen meanwhile takes its place.
// In a page from the disk such a thread can load no module, so the text of judge.mjs is its script.

const WORK = `
onmessage = async ({ data }) => {
  try {
    postMessage(await judge(...data.map((bytes) => new Uint8Array(bytes))));
  } catch (error) {
    postMessage({ code: null, text: \`\${error}\` });
  }
};`;

const [batches, program, loader] = await Promise.all(["batches.bin", "judge.mjs", "wasm32/step_0.mjs"].map(unpacked));
const { fuses } = await import(URL.createObjectURL(new Blob([loader], { type: "text/javascript" })));
const relaxed = "wasm32-relaxed/judge.wasm" in packed && (await fuses());
const module = await unpacked(`${relaxed ? "wasm32-relaxed" : "wasm32"}/judge.wasm`);
find("engine").textContent = relaxed ? "by the processor" : "by software, exact";
const exported = new TextDecoder().decode(program);
const script = URL.createObjectURL(new Blob([exported.replace(/^export /gm, ""), WORK], { type: "text/javascript" }));
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
  const mine = (worker = new Worker(script));
  find("name").textContent = `${file.name}, ${file.size.toLocaleString("en")} bytes`;
  show(undefined, "…", "Computing every step again …", "–", "–");
  const trace = await file.arrayBuffer();
  const began = performance.now();
  mine.onmessage = ({ data }) => answered(data, began);
  mine.postMessage([module, trace, batches], [trace]);
}

find("trace").addEventListener("change", ({ target }) => prove(target.files));
find("trace").disabled = false;
