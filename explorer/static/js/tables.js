// Breaks, guards, decisions and times under the panes. A row that is about something selects it.

const SHORT = new Set(["kind", "line", "outcome", "graph"]); // columns of single words
const LONG = 24; // a word longer than this may go on in the next line, at a mark of its own

function table(titles, rows, label, onPick) {
  const element = make("table", "ct-table"), head = element.createTHead().insertRow(), body = element.createTBody();
  element.setAttribute("aria-label", label);
  titles.forEach((title) => { const cell = make("th", "", title); cell.scope = "col"; head.append(cell); });
  rows.forEach((row, k) => {
    const line = body.insertRow();
    fillRow(line, row, titles);
    if (onPick?.(k, true)) pickable(line, () => onPick(k, false));
  });
  return element;
}

function fillRow(line, row, titles) {
  row.forEach((text, n) => {
    const cell = line.insertCell();
    cell.append(...breakable(text));
    if (SHORT.has(titles[n])) cell.className = "short";
  });
}

// Text that breaks between words; inside of a long one only behind a mark (a dot, a bracket, an underscore).
function breakable(text) {
  return String(text).split(/(?<=\s)/).flatMap((word) => word.length <= LONG ? [word]
    : word.split(/(?<=[._/,(\[=])/).flatMap((part, k) => (k ? [make("wbr"), part] : [part])));
}

// Rows that say one thing together: a row for all of them, which opens. folds: [first, how many, version, words, why].
function fold(element, folds, trim) {
  const rows = [...element.tBodies[0].rows];
  for (const [first, count, version, words, why] of folds) {
    const hidden = rows.slice(first, first + count), line = make("tr", "ct-fold");
    fillRow(line, trim([version, "", "", why]), []);
    const toggle = button("", `▸ ${words}`, "", () => open(toggle.getAttribute("aria-expanded") !== "true"));
    const open = (yes) => {
      toggle.setAttribute("aria-expanded", String(yes));
      toggle.textContent = `${yes ? "▾" : "▸"} ${words}`;
      hidden.forEach((row) => { row.hidden = !yes; });
    };
    line.cells[trim([0, 1, 2, 3]).indexOf(1)].replaceChildren(toggle);
    hidden[0].before(line);
    open(false);
  }
  return element;
}

function pickable(element, pick) {
  element.classList.add("pick");
  element.tabIndex = 0;
  element.addEventListener("click", pick);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    pick();
    event.preventDefault();
    event.stopPropagation();
  });
}

// Version names are noise where there is one version.
function trimmed(titles, rows, versions) {
  return versions.length > 1 ? [titles, rows] : [titles.slice(1), rows.map((row) => row.slice(1))];
}

function bars(timings) {
  const box = make("div", "ct-bars"), longest = Math.max(1e-9, ...timings.map(([, seconds]) => seconds));
  for (const [phase, seconds] of timings) {
    const bar = make("span", "ct-phase"), track = make("div");
    bar.style.width = `${Math.max(0.5, 100 * seconds / longest)}%`;
    track.append(bar);
    box.append(make("span", "", phase), track, make("span", "ct-number", readable(seconds)));
  }
  return box;
}

// The raw check of a guard stands behind its row.
function guardTable(facts, guards, trim, onPick) {
  const element = table(...guards, "guards", onPick);
  facts.guards.forEach((row, k) => { element.tBodies[0].rows[k].title = `checked as: ${row[4]}`; });
  return fold(element, facts.folds, trim);
}

function breakCard(row, go) {
  const card = make("article", "ct-break"), head = make("header", "", "");
  const where = button("ct-where", row.place.split("/").at(-1) || "no place", `select ${row.place}`, () => go(row.place));
  head.append(make("b", "", `✂ ${row.reason}`), where, make("small", "", row.code));
  card.append(head);
  if (row.stack.length > 1) card.append(make("p", "", `in ${row.stack.join(" › ")}`));
  if (row.alive.length) card.append(make("p", "", `alive here: ${row.alive.join(", ")}`));
  if (row.hints.length) {
    const list = make("ul");
    list.append(...row.hints.map((hint) => make("li", "", hint)));
    card.append(list);
  }
  return card;
}

function folded(title, count, content, open = false) {
  const details = make("details", "ct-facts"), summary = make("summary", "", title);
  summary.append(make("b", "", String(count)));
  details.open = open && count > 0;
  details.append(summary, count ? content() : make("p", "", "none"));
  return details;
}

function factTables(facts, go, select) {
  const atPlace = (rows) => (k, ask) => ask ? go(rows[k], true) : go(rows[k]);
  const aboutItems = (k, ask) => facts.decisions[k][5].length > 0 && (ask || select(facts.decisions[k][5]) || true);
  const guards = trimmed(["version", "must hold", "line", "why"],
    facts.guards.map(([version, words, place, why]) => [version, words, place.split("/").at(-1), why]), facts.versions);
  const one = facts.versions.length > 1 ? (row) => row : (row) => row.slice(1);
  const decisions = trimmed(["version", "kind", "outcome", "reason", "about"], facts.decisions.map((row) => row.slice(0, 5)), facts.versions);
  const parts = [
    folded("Graph breaks", facts.breaks.length, () => { const box = make("div"); box.append(...facts.breaks.map((row) => breakCard(row, go))); return box; }, true),
    folded("Guards", facts.guards.length, () => guardTable(facts, guards, one, atPlace(facts.guards.map((row) => row[2])))),
    folded("Decisions", facts.decisions.length, () => table(...decisions, "decisions", aboutItems)),
    folded("Time of each phase", facts.timings.length, () => bars(facts.timings)),
  ];
  if (facts.versions.length > 1)
    parts.unshift(folded("Versions", facts.versions.length, () => table(["version", "graph", "function", "compiled because"], facts.versions, "versions")));
  if (facts.skipped.length) parts.push(folded("Left to eager", facts.skipped.length, () => table(["function", "why"], facts.skipped, "left to eager")));
  return parts;
}
