// HEAD
// For browsers, node and others that have WebAssembly with SIMD. It needs nothing else.

/** Sizes, places, names, numerics and digest, as in the JSON file. */
export const facts = FACTS;

const KINDS = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array, bool: Uint8Array };

// (param b, c) → b * b + c by relaxed_madd, in float32 and in float64.
const PROBE = new Uint8Array([BYTES]);

/** A call that failed: the code, its words, and the place of what is wrong (codes 1 and 2 have none). */
export class LibraryError extends Error {
  constructor(code, position) {
    super(facts.codes[code - 1].replace("{value}", "another").replace("{position}", position));
    this.name = "LibraryError";
    this.code = code;
    this.position = code > 2 ? position : null;
  }
}

/** Whether this engine's relaxed SIMD rounds a product with a sum once, as training does. */
export async function fuses() {
  if (!WebAssembly.validate(PROBE)) return false;
  const { instance } = await WebAssembly.instantiate(PROBE);
  const { single, double } = instance.exports;
  return single(1 + 2 ** -12, -1 - 2 ** -11) === 2 ** -24 && double(1 + 2 ** -27, -1 - 2 ** -26) === 2 ** -54;
}

/**
 * Load the module of target wasm32, or of wasm32-relaxed where it has the same bits: bytes, or what fetch gives.
 */
export async function load(software, relaxed) {
  const chosen = relaxed !== undefined && (await fuses());
  const given = await (chosen ? relaxed : software);
  const bytes = typeof given.arrayBuffer === "function" ? await given.arrayBuffer() : given;
  const { instance } = await WebAssembly.instantiate(bytes);
  return new Library(instance.exports, chosen);
}

class Library {
  #run;
  #start;
  #inputs;
  #outputs;
  #arena;

  constructor(exports, relaxed) {
    let top = exports.__heap_base.value;
    const room = (bytes) => {
      const start = (top + 63) & ~63;
      top = start + bytes;
      return start;
    };
    const state = room(facts.state);
    const places = [...facts.inputs, ...facts.outputs].map((array) => room(array.bytes));
    const arena = room(facts.arena);
    const { memory } = exports;
    const missing = top - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / 65536));
    const view = (array, at) => {
      const Kind = KINDS[array.dtype];
      return new Kind(memory.buffer, at, array.bytes / Kind.BYTES_PER_ELEMENT);
    };
    const named = (arrays, first) => arrays.map((array, k) => [array.name, view(array, places[first + k])]);
    const before = facts.state ? [state] : [];
    this.relaxed = relaxed;
    this.state = Object.fromEntries(facts.held.map((array) => [array.name, view(array, state + array.at)]));
    this.#inputs = named(facts.inputs, 0);
    this.#outputs = named(facts.outputs, facts.inputs.length);
    this.#arena = new BigInt64Array(memory.buffer, arena, 1);
    this.#run = () => exports[`${facts.name}_run`](...before, ...places, arena, facts.arena);
    this.#start = () => (facts.state ? exports[`${facts.name}_start`](state, facts.state) : 0);
    this.start();
  }

  start() {
    this.#check(this.#start());
  }

  run(inputs) {
    for (const [name, place] of this.#inputs) {
      const given = inputs[name];
      if (!(given instanceof place.constructor) || given.length !== place.length) {
        const found = given?.constructor ? `${given.constructor.name} of ${given.length}` : String(given);
        throw new TypeError(
          `${facts.name}: input '${name}': expected a ${place.constructor.name} of ${place.length} elements, got ${found}`,
        );
      }
      place.set(given);
    }
    this.#check(this.#run());
    return Object.fromEntries(this.#outputs.map(([name, place]) => [name, place.slice()]));
  }

  #check(code) {
    if (code) throw new LibraryError(code, this.#arena[0]);
  }
}
