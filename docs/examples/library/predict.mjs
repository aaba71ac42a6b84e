// Scores of an image by the library "digits" in a folder: node predict.mjs library
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const folder = resolve(process.argv[2], "wasm32");
const { load } = await import(pathToFileURL(`${folder}/digits.mjs`));
const digits = await load(readFile(`${folder}/digits.wasm`));
const image = Float32Array.from({ length: 64 }, (_, i) => i / 64);
console.log(digits.run({ in0: image }).out.join("\n"));
