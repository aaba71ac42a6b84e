// Runs a library of WebAssembly: node library.mjs LIBRARY.wasm FACTS CALLS < inputs > outputs
import { readFileSync, writeSync } from "node:fs";
const [wasm, told, calls] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(wasm));
const { memory, __heap_base } = instance.exports, data = readFileSync(0), made = [];
let top = __heap_base.value, bytes = new Uint8Array(memory.buffer), at = 0;
const room = (n) => {
  const start = (top + 63) & ~63;
  top = start + n;
  const missing = top - memory.buffer.byteLength;
  if (missing > 0) memory.grow((missing + 65535) >> 16);
  bytes = new Uint8Array(memory.buffer);
  return start;
};
for (const f of JSON.parse(readFileSync(told, "utf8"))) {
  const ins = f.inputs.map((a) => room(a.bytes)), outs = f.outputs.map((a) => room(a.bytes)), arena = room(f.arena);
  const state = f.state ? [room(f.state)] : [];
  for (const place of state) if (instance.exports[f.name + "_start"](place, f.state)) process.exit(99);
  for (let i = 0; i < Number(calls); i++) {
    for (const [k, place] of ins.entries()) bytes.set(data.subarray(at, (at += f.inputs[k].bytes)), place);
    const code = instance.exports[f.name + "_run"](...state, ...ins, ...outs, arena, f.arena);
    if (code) process.exit(code);
    for (const [k, place] of outs.entries()) made.push(Buffer.from(bytes.slice(place, place + f.outputs[k].bytes)));
    for (const place of state) made.push(Buffer.from(bytes.slice(place, place + f.state)));
  }
}
const all = Buffer.concat(made);
for (let i = 0; i < all.length; ) i += writeSync(1, all, i);
