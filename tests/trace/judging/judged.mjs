// Judges traces by a judge of WebAssembly: node judged.mjs FOLDER TRACE OPTION… > code and line, as JSON
import { readFileSync } from "node:fs";
const [folder, trace, ...options] = process.argv.slice(2);
const { judge } = await import(`${folder}/judge.mjs`);
const [module, batches] = [`${folder}/wasm32/judge.wasm`, `${folder}/batches.bin`].map((name) => readFileSync(name));
console.log(JSON.stringify(await judge(module, readFileSync(trace), batches, options)));
