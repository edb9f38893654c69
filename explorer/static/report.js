// Linked panes and fact tables, painted from payloads that Python computed. One ES module, no import.
// Items and links are numbers: links[i] lists the items that item i came from.

const make = (tag, css, text) => {
  const element = document.createElement(tag);
  if (css) element.className = css;
  if (text != null) element.textContent = text;
  return element;
};

const button = (css, text, onClick) => {
  const element = make("button", css, text);
  element.type = "button";
  element.addEventListener("click", onClick);
  return element;
};

// ------------------------------------------------------------------ links

export function invert(links) {
  const results = links.map(() => []);
  links.forEach((origins, item) => origins.forEach((origin) => results[origin].push(item)));
  return results;
}

function reach(start, edges, into) {
  const todo = [...start], seen = new Set(todo);
  while (todo.length) {
    for (const next of edges[todo.pop()]) {
      if (seen.has(next)) continue;
      seen.add(next);
      into.add(next);
      todo.push(next);
    }
  }
}

// What a selection lights: itself, all it came from and all it became; never a zig-zag.
export function lit(items, links, results) {
  const set = new Set(items);
  reach(items, links, set);
  reach(items, results, set);
  return set;
}

// ------------------------------------------------------------------ one pane

const BLOCK = 64; // lines drawn as one block that the browser may skip while it is off screen

function drawLines(pane) {
  const list = make("div", "ct-code");
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", `${pane.title} ${pane.detail}`);
  const rows = [];
  for (let first = 0; first < pane.lines.length; first += BLOCK) {
    const block = make("div", "ct-block");
    const part = pane.lines.slice(first, first + BLOCK);
    block.style.containIntrinsicSize = `auto 400px auto ${part.length * 19}px`;
    block.innerHTML = part.map((html, k) => {
      const line = first + k + 1, linked = pane.items[line] ? " linked" : "";
      return `<div class="ct-line${linked}" role="option" aria-selected="false" tabindex="-1" data-line="${line}">`
        + `<i>${pane.gutter[line - 1]}</i><span>${html || " "}</span></div>`;
    }).join("");
    rows.push(...block.children);
    list.append(block);
  }
  if (rows.length) rows[0].tabIndex = 0;
  return { list, rows };
}

// ------------------------------------------------------------------ all panes of one version

const FIRST_SHOWN = ["source", "joint", "fuse", "kernels", "ptx"];

export function mountLinked(root, data, onStatus) {
  const results = invert(data.links);
  const stages = new Map();
  for (const pane of data.panes) {
    if (!stages.has(pane.stage)) stages.set(pane.stage, { name: pane.stage, panes: [], shown: null });
    stages.get(pane.stage).panes.push(pane);
  }
  const ribbon = make("nav", "ct-ribbon"), grid = make("div", "ct-grid");
  ribbon.setAttribute("aria-label", "stages");
  root.append(ribbon, grid);
  const fits = Math.max(2, Math.min(4, Math.floor(root.clientWidth / 330)));
  const open = FIRST_SHOWN.filter((name) => stages.has(name)).slice(0, fits);
  let selection = null, light = new Set();

  const linesLit = (pane) => Object.keys(pane.items).filter((line) => pane.items[line].some((i) => light.has(i)));

  function select(pane, line) {
    const items = pane && pane.items[line];
    selection = items ? { pane, line } : null;
    light = items ? lit(items, data.links, results) : new Set();
    for (const stage of stages.values()) preferLit(stage);
    paintRibbon();
    for (const name of open) paint(stages.get(name));
    onStatus(selection ? `${pane.title} line ${pane.gutter[line - 1]}: ${light.size - 1} linked items` : "Click a line to see what it came from and what it became.");
  }

  // A stage with several texts (kernels, targets) shows one that is lit, if any is.
  function preferLit(stage) {
    stage.shown ||= stage.panes[0];
    if (!light.size || linesLit(stage.shown).length) return;
    stage.shown = stage.panes.find((pane) => linesLit(pane).length) || stage.shown;
  }

  function paintRibbon() {
    ribbon.replaceChildren(...[...stages.values()].map((stage) => {
      const count = stage.panes.reduce((sum, pane) => sum + linesLit(pane).length, 0);
      const chip = button("ct-chip", stage.panes[0].title, () => toggle(stage.name));
      chip.setAttribute("aria-pressed", String(open.includes(stage.name)));
      chip.dataset.stage = stage.name;
      if (light.size) chip.append(make("b", count ? "" : "none", String(count)));
      return chip;
    }));
  }

  function toggle(name) {
    if (open.includes(name)) open.splice(open.indexOf(name), 1);
    else open.push(name);
    const order = [...stages.keys()];
    open.sort((a, b) => order.indexOf(a) - order.indexOf(b));
    layout();
  }

  function layout() {
    grid.replaceChildren(...open.map((name) => frame(stages.get(name))));
    paintRibbon();
    for (const name of open) paint(stages.get(name));
  }

  function frame(stage) {
    const section = make("section", "ct-pane"), title = make("header", "ct-title", stage.panes[0].title);
    section.dataset.stage = stage.name;
    if (stage.panes.length > 1) title.append(picker(stage));
    else if (stage.panes[0].detail) title.append(make("small", "", stage.panes[0].detail));
    stage.body = make("div", "ct-body");
    section.append(title, stage.body);
    stage.drawn = null;
    return section;
  }

  function picker(stage) {
    const choice = make("select");
    choice.setAttribute("aria-label", `${stage.panes[0].title}: which`);
    stage.panes.forEach((pane, k) => choice.append(new Option(pane.detail, k)));
    choice.addEventListener("change", () => { stage.shown = stage.panes[choice.value]; paint(stage); });
    stage.choice = choice;
    return choice;
  }

  function paint(stage) {
    const pane = stage.shown;
    if (stage.drawn !== pane) draw(stage, pane);
    let first = null;
    const marked = new Set(linesLit(pane));
    for (const row of stage.rows) {
      const line = row.dataset.line, hit = marked.has(line);
      const chosen = selection && selection.pane === pane && selection.line === line;
      row.classList.toggle("hit", hit);
      row.classList.toggle("chosen", Boolean(chosen));
      if (hit || row.ariaSelected === "true") row.setAttribute("aria-selected", String(hit));
      if (hit && !first) first = row;
    }
    if (first && !(selection && selection.pane === pane)) reveal(first, stage.body);
  }

  function draw(stage, pane) {
    const { list, rows } = drawLines(pane);
    stage.body.replaceChildren(list);
    stage.rows = rows;
    stage.drawn = pane;
    if (stage.choice) stage.choice.value = String(stage.panes.indexOf(pane));
    list.addEventListener("click", (event) => {
      const row = event.target.closest("[data-line]");
      if (row) select(pane, row.dataset.line);
    });
    list.addEventListener("keydown", (event) => onKey(event, pane, rows));
  }

  function onKey(event, pane, rows) {
    const row = event.target.closest("[data-line]");
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (step) move(row, rows[Math.max(0, Math.min(rows.length - 1, Number(row.dataset.line) - 1 + step))]);
    else if (event.key === "Enter" || event.key === " ") select(pane, row.dataset.line);
    else if (event.key === "Escape") select(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function move(from, to) {
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  }

  // Scroll inside the pane only; the page stays where the reader put it.
  function reveal(row, body) {
    const place = row.getBoundingClientRect(), box = body.getBoundingClientRect();
    if (place.top < box.top || place.bottom > box.bottom) body.scrollTop += place.top - box.top - box.height / 3;
  }

  for (const stage of stages.values()) stage.shown = stage.panes[0];
  layout();
  select(null);
  return { select: (stage, line) => select(stages.get(stage).shown, String(line)), lit: () => light };
}

// ------------------------------------------------------------------ tables and bars

function table(titles, rows) {
  const element = make("table", "ct-table"), head = element.createTHead().insertRow();
  titles.forEach((title) => { const cell = make("th", "", title); cell.scope = "col"; head.append(cell); });
  const body = element.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((text) => { line.insertCell().textContent = text; });
  }
  return element;
}

const readable = (s) => s < 1e-3 ? `${(s * 1e6).toFixed(0)} µs` : s < 1 ? `${(s * 1e3).toFixed(1)} ms` : `${s.toFixed(2)} s`;

function bars(timings) {
  const box = make("div", "ct-bars"), longest = Math.max(1e-9, ...timings.map((t) => t.seconds));
  for (const { phase, seconds } of timings) {
    const bar = make("span", "ct-bar");
    bar.style.width = `${Math.max(0.5, 100 * seconds / longest)}%`;
    const track = make("div");
    track.append(bar);
    box.append(make("span", "", phase), track, make("span", "ct-number", readable(seconds)));
  }
  return box;
}

function folded(title, count, content) {
  const details = make("details", "ct-facts"), summary = make("summary", "", title);
  summary.append(make("b", "", String(count)));
  details.append(summary, count ? content : make("p", "", "none"));
  return details;
}

// ------------------------------------------------------------------ the page

function mountVersion(root, version) {
  const status = make("p", "ct-status"), panes = make("div", "ct-linked");
  status.setAttribute("role", "status");
  status.setAttribute("aria-live", "polite");
  root.replaceChildren(status, panes);
  root.handle = mountLinked(panes, version.linked, (text) => { status.textContent = text; });
  root.append(
    folded("Guards", version.guards.length, table(["source", "kind", "expected", "line", "why"], version.guards)),
    folded("Decisions", version.decisions.length, table(["kind", "outcome", "reason", "about"], version.decisions)),
    folded("Time of each phase", version.timings.length, bars(version.timings)),
  );
}

function tabs(label, names, onPick) {
  const list = make("div", "ct-tabs");
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", label);
  const pick = (k) => {
    [...list.children].forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === k));
      tab.tabIndex = i === k ? 0 : -1;
    });
    onPick(k);
  };
  names.forEach((name, k) => {
    const tab = button("ct-tab", name, () => pick(k));
    tab.setAttribute("role", "tab");
    list.append(tab);
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], now = [...list.children].indexOf(document.activeElement);
    if (!step || now < 0) return;
    const next = (now + step + names.length) % names.length;
    list.children[next].focus();
    pick(next);
  });
  return { list, pick };
}

export function mountReport(root, programs) {
  const head = make("header", "ct-head"), body = make("div"), versions = make("div");
  head.append(make("h1", "", "Cutaway"));
  const view = make("div", "ct-view");
  const programTabs = tabs("programs", programs.map((p) => p.name), (k) => {
    const list = programs[k].versions;
    const inner = tabs("versions", list.map((v) => `${v.linked.title} · ${v.reason}`), (n) => mountVersion(view, list[n]));
    versions.replaceChildren(inner.list);
    versions.hidden = list.length < 2;
    if (list.length) inner.pick(0);
    else view.replaceChildren(make("p", "", "Nothing was compiled in this program."));
  });
  head.append(programTabs.list);
  body.append(versions, view);
  root.append(head, body);
  if (programs.length) programTabs.pick(0);
  else view.textContent = "This report holds no recording.";
  root.dataset.ready = "1";
  root.view = view;
}
