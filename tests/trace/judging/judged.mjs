// Judges traces by a judge of WebAssembly: node judged.mjs FOLDER '[[TRACE, OPTION…], …]' > code and line of each, as JSON
import { readFileSync } from "node:fs";
const [folder, given] = process.argv.slice(2);
const { judge } = await import(`${folder}/judge.mjs`);
const [module, batches] = [`${folder}/wasm32/judge.wasm`, `${folder}/batches.bin`].map((name) => readFileSync(name));
const answers = [];
for (const [trace, ...options] of JSON.parse(given)) {
  const { code, text } = await judge(module, readFileSync(trace), batches, options);
  answers.push([code, text]);
}
console.log(JSON.stringify(answers));
