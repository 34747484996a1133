// A netlist in the fragment of an address: packed with deflate, written in base64url. A fragment is sent to nobody.

const KEY = "netlist=";
const MOST_BYTES = 4 << 20; // of a text that is unpacked: a link may come from anybody

async function through(stream, bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MOST_BYTES) throw new Error("the netlist in the link is larger than 4 MiB");
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** The fragment of a text, without `#`. */
export async function toFragment(text) {
  const packed = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(text));
  let binary = "";
  for (const byte of packed) binary += String.fromCharCode(byte);
  return KEY + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The text of a fragment; null where it holds none. Throws for a damaged one. */
export async function fromFragment(fragment) {
  const start = fragment.replace(/^#/, "");
  if (!start.startsWith(KEY)) return null;
  const binary = atob(start.slice(KEY.length).replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  return new TextDecoder("utf-8", { fatal: true }).decode(await through(new DecompressionStream("deflate-raw"), bytes));
}
