// A text as lines that can be selected; the ledger is a text with cells beside each line.
// A surface has: element, mark(light, selection, found lines) -> place of the first hit, itemsOf(element), focus moves.

const BLOCK = 64; // lines drawn as one block that the browser may skip while it is off screen
const LINE = 19; // px, as in the style sheet
const WORDS = { graphs: "graph", breaks: "break", guards: "guard", kernels: "kernel" };

function linesSurface(pane, label) {
  const element = make("div", "ct-code"), columns = shownColumns(pane), rows = [];
  element.setAttribute("role", "listbox");
  element.setAttribute("aria-multiselectable", "true");
  element.setAttribute("aria-label", label);
  for (let first = 0; first < pane.lines.length; first += BLOCK) {
    const block = make("div", pane.lines.length > 4 * BLOCK ? "ct-block" : ""), part = pane.lines.slice(first, first + BLOCK);
    block.setAttribute("role", "presentation");
    block.style.containIntrinsicSize = `auto 400px auto ${part.length * LINE}px`;
    block.innerHTML = part.map((html, k) => rowHtml(pane, first + k + 1, html, columns)).join("");
    rows.push(...block.children);
    element.append(block);
  }
  if (rows.length) rows[0].tabIndex = 0;
  const whole = make("div", "ct-text");
  if (columns.length) whole.append(ledgerHead(columns));
  whole.append(element);
  return {
    element: whole,
    rows,
    itemsOf: (target) => pane.items[target.closest("[data-line]")?.dataset.line],
    nameOf: (target) => `line ${pane.gutter?.[target.closest("[data-line]").dataset.line - 1] || target.closest("[data-line]").dataset.line}`,
    mark: (light, selection, found) => { markFound(rows, found); return markRows(rows, pane, light, selection); },
    rowOf: (line) => rows[line - 1],
    step: (from, key) => rows[nextRow(rows, Number(from.closest("[data-line]").dataset.line) - 1, key)],
    placeOf: (row) => ({ x: 0, y: row.offsetTop, width: 0, height: LINE }),
  };
}

// Columns in which no line has an entry would only take room.
function shownColumns(pane) {
  if (pane.kind !== "ledger") return [];
  return pane.columns.map((name, k) => ({ name, k })).filter(({ k }) => Object.values(pane.cells).some((cells) => cells[k]));
}

function ledgerHead(columns) {
  const head = make("div", "ct-ledger-head");
  head.setAttribute("aria-hidden", "true");
  head.append(make("i", "", "line"), ...columns.map(({ name }) => make("b", "", name)));
  return head;
}

function rowHtml(pane, line, html, columns) {
  const linked = pane.items[line] ? " linked" : "", number = pane.gutter ? pane.gutter[line - 1] : line;
  const cells = columns.map(({ name, k }) => cellHtml(name, pane.cells[line]?.[k] || "")).join("");
  return `<div class="ct-line${linked}${pane.gutter && !number ? " heading" : ""}" role="option" aria-selected="false" tabindex="-1" data-line="${line}">`
    + `<i>${number}</i>${cells}<span>${html || " "}</span></div>`;
}

function cellHtml(name, text) {
  if (!text) return "<b></b>";
  const word = name === "graphs" ? `in graph ${text}` : `${text} ${WORDS[name]}${text === "1" ? "" : "s"}`;
  return `<b class="${escaped(name)}" title="${escaped(word)}" aria-label="${escaped(word)}">${name === "breaks" ? "✂ " : ""}${escaped(text)}</b>`;
}

function markRows(rows, pane, light, selection) {
  let first = null, chosenFirst = null;
  for (const row of rows) {
    const items = pane.items[row.dataset.line];
    if (!items) continue;
    const hit = items.some((i) => light.has(i)), chosen = hit && items.some((i) => selection.has(i));
    if (hit !== row.classList.contains("hit")) {
      row.classList.toggle("hit", hit);
      row.setAttribute("aria-selected", String(hit));
    }
    row.classList.toggle("chosen", chosen);
    if (hit) first ||= row;
    if (chosen) chosenFirst ||= row;
  }
  const row = chosenFirst || first;
  return row && { x: 0, y: row.offsetTop, width: 0, height: LINE };
}

function markFound(rows, found) {
  const lines = new Set(found);
  rows.forEach((row, k) => row.classList.toggle("found", lines.has(k + 1)));
}

function nextRow(rows, now, key) {
  const last = rows.length - 1;
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -last, End: last }[key];
  if (step) return Math.max(0, Math.min(last, now + step));
  const to = key === "n" ? 1 : key === "p" ? -1 : 0; // the next and the previous lit line
  for (let k = now + to; to && k >= 0 && k <= last; k += to) if (rows[k].classList.contains("hit")) return k;
  return -1;
}
