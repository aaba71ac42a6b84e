// Runs a judge that was compiled to WebAssembly, in a page or in node. It needs nothing else.

const NAMES = ["TRACE", "BATCHES"];

class Ended extends Error {
  constructor(code) {
    super(`the judge ended with code ${code}`);
    this.code = code;
  }
}

/** What judge.c asks for where there is no C library: see alone.h. */
class Host {
  text = "";
  #files;
  #memory;
  #top;

  constructor(files) {
    this.#files = files.map((bytes) => ({ bytes, at: 0 }));
  }

  enter({ memory, __heap_base }) {
    this.#memory = memory;
    this.#top = __heap_base.value;
  }

  bytes(at, count) {
    return new Uint8Array(this.#memory.buffer, at >>> 0, count >>> 0);
  }

  /** Zeros at a multiple of 64, or 0, which is NULL. */
  room(count) {
    const start = Math.ceil(this.#top / 64) * 64;
    const missing = start + (count >>> 0) - this.#memory.buffer.byteLength;
    try {
      if (missing > 0) this.#memory.grow(Math.ceil(missing / 65536));
    } catch {
      return 0;
    }
    this.#top = start + (count >>> 0);
    return start;
  }

  strings(words) {
    const places = words.map((word) => {
      const written = new TextEncoder().encode(`${word}\0`);
      const at = this.room(written.length);
      this.bytes(at, written.length).set(written);
      return at;
    });
    const table = this.room(4 * places.length);
    new Uint32Array(this.#memory.buffer, table, places.length).set(places);
    return table;
  }

  #open(name) {
    return NAMES.findIndex((known) => new TextDecoder().decode(this.bytes(name, known.length + 1)) === `${known}\0`);
  }

  #read(number, to, count) {
    const file = this.#files[number];
    const given = file.bytes.subarray(file.at, file.at + (count >>> 0));
    this.bytes(to, given.length).set(given);
    file.at += given.length;
    return given.length;
  }

  imports() {
    return {
      host_open: (name) => this.#open(name),
      host_size: (number) => this.#files[number].bytes.length,
      host_read: (number, to, count) => this.#read(number, to, count),
      host_room: (count) => this.room(count),
      host_say: (at, count) => (this.text += new TextDecoder().decode(this.bytes(at, count))),
      host_exit: (code) => {
        throw new Ended(code);
      },
    };
  }
}

/**
 * Judge a trace: the code and the line that the program answers with. `module`, `trace` and `batches` are bytes;
 * `options` are those of the program, as ["--from", "3"].
 */
export async function judge(module, trace, batches, options = []) {
  const host = new Host([trace, batches]);
  const { instance } = await WebAssembly.instantiate(module, { env: host.imports() });
  host.enter(instance.exports);
  const words = ["judge", ...NAMES, ...options];
  try {
    instance.exports.main(words.length, host.strings(words));
  } catch (error) {
    if (error instanceof Ended) return { code: error.code, text: host.text.trim() };
    throw error;
  }
}
