// The digest of a training state, as dgrr.runtime.state_digest defines it: SHA-256 of names, dtypes, shapes and elements.
// A NaN would need one form; a step never leaves one.

const number = (n) => new Uint8Array(new BigUint64Array([BigInt(n)]).buffer);
const text = (words) => {
  const bytes = new TextEncoder().encode(words);
  return [number(bytes.length), bytes];
};

async function stateDigest(parts, held, state) {
  const known = Object.fromEntries(held.map((array) => [array.name, array]));
  const pieces = [new TextEncoder().encode("dgrr state 1\n")];
  for (const names of parts) {
    pieces.push(number(names.length));
    for (const name of names) {
      const { dtype, shape, bytes } = known[name];
      const { buffer, byteOffset } = state[name];
      pieces.push(...text(name), ...text(dtype), number(shape.length), ...shape.map(number), number(bytes));
      pieces.push(new Uint8Array(buffer, byteOffset, bytes));
    }
  }
  const whole = await new Blob(pieces).arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
