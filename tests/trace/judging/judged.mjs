// Judges traces by a judge of WebAssembly, and prints code and line of each as JSON:
// node judged.mjs FOLDER TARGET '[[TRACE, OPTION…], …]'
import { readFileSync } from "node:fs";
const [folder, target, given] = process.argv.slice(2);
const { judge } = await import(`${folder}/judge.mjs`);
const [module, batches] = [`${folder}/${target}/judge.wasm`, `${folder}/batches.bin`].map((name) => readFileSync(name));
const answers = [];
for (const [trace, ...options] of JSON.parse(given)) {
  const { code, text } = await judge(module, readFileSync(trace), batches, options);
  answers.push([code, text]);
}
console.log(JSON.stringify(answers));
