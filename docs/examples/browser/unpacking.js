// What the page holds, by name.

const find = (id) => document.getElementById(id);
const packed = JSON.parse(find("packed").textContent);

async function unpacked(name) {
  const bytes = Uint8Array.from(atob(packed[name]), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
