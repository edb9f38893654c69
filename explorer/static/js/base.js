// The explorer's script: painted from payloads that Python computed. The files of this folder are joined
// into one ES module in the order of explorer/assets.py; none imports another.

const NS = "http://www.w3.org/2000/svg";

const make = (tag, css, text) => {
  const element = document.createElement(tag);
  if (css) element.className = css;
  if (text != null) element.textContent = text;
  return element;
};

const draw = (tag, attributes) => {
  const element = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

const button = (css, text, label, onClick) => {
  const element = make("button", css, text);
  element.type = "button";
  if (label) {
    element.setAttribute("aria-label", label);
    element.title = label;
  }
  element.addEventListener("click", onClick);
  return element;
};

// Names from a program go into HTML only through this.
const escaped = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

const readable = (s) => s < 1e-3 ? `${(s * 1e6).toFixed(0)} µs` : s < 1 ? `${(s * 1e3).toFixed(1)} ms` : `${s.toFixed(2)} s`;

// Gzipped JSON, as bytes or as base64 text.
export async function unpack(packed) {
  const bytes = typeof packed === "string" ? Uint8Array.from(atob(packed), (c) => c.charCodeAt(0)) : packed;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}
