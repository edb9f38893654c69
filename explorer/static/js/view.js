// All panes of one recording, with one selection: a set of items, by number inside and by handle outside.

const FIRST = ["source", "joint", "kernels", "ptx", "capture", "bytecode"];
const KEYS = [["arrows", "move"], ["Enter", "select"], ["Shift+Enter", "add to the selection"], ["Esc", "clear"], ["/", "search all panes"], ["Enter", "in the search: next place"], ["n p", "next, previous lit"],
  ["t", "text or picture"], ["+ - 0", "zoom"], ["[ ]", "other text of the stage"], ["Tab", "next pane or button"], ["?", "this list"]];
const HINT = "Select a line or node to see what it came from and became. Keys: ?";

class View {
  constructor(root, data, { onSelect } = {}) {
    Object.assign(this, { data, onSelect, selection: new Set(), light: new Set(), stages: new Map() });
    this.results = invert(data.links);
    this.numbers = null;
    for (const pane of data.panes) this.stageOf(pane.stage).add(pane);
    this.search = new Search(this);
    this.parts(root);
    this.open = this.firstOpen(root.clientWidth || 1000);
    this.layout();
    this.say(HINT);
  }

  stageOf(name) {
    if (!this.stages.has(name)) this.stages.set(name, new Stage(name, this));
    return this.stages.get(name);
  }

  parts(root) {
    const bar = make("div", "ct-bar");
    this.status = make("p", "ct-status");
    this.status.setAttribute("role", "status");
    this.status.setAttribute("aria-live", "polite");
    this.ribbon = make("nav", "ct-ribbon");
    this.ribbon.setAttribute("aria-label", "stages");
    this.grid = make("div", "ct-grid");
    this.keys = make("dl", "ct-keys");
    this.keys.hidden = true;
    for (const [key, what] of KEYS) this.keys.append(make("dt", "", key), make("dd", "", what));
    bar.append(make("strong", "", this.data.title), make("span", "ct-summary", this.data.facts.summary), this.search.field, this.status,
      button("ct-tool", "?", "keys (?)", () => this.help()));
    root.append(bar, this.keys, this.ribbon, this.grid,
      ...factTables(this.data.facts, (place, ask) => this.go(place, ask), (items) => this.select(items, { name: "decision" })));
  }

  firstOpen(width) {
    const asked = this.data.show.filter((name) => this.stages.has(name));
    const fits = 1 + [640, 1020, 1600].filter((least) => width >= least).length;
    return asked.length ? asked : FIRST.filter((name) => this.stages.has(name)).slice(0, fits);
  }

  layout() {
    const order = [...this.stages.keys()];
    this.open.sort((a, b) => order.indexOf(a) - order.indexOf(b));
    this.grid.replaceChildren(...this.open.map((name) => this.stages.get(name).frame()));
    this.paint();
  }

  toggle(name) {
    this.open = this.open.includes(name) ? this.open.filter((other) => other !== name) : [...this.open, name];
    this.layout();
    this.ribbon.querySelector(`[data-stage="${CSS.escape(name)}"]`)?.focus();
  }

  paint(from) {
    const open = this.open.map((name) => this.stages.get(name));
    for (const stage of this.stages.values()) stage.preferLit(this.light, from);
    for (const stage of open) stage.mark(this.light, this.selection);
    for (const stage of open) if (stage !== from) stage.reveal();
    this.paintRibbon();
  }

  paintRibbon() {
    this.ribbon.replaceChildren(...[...this.stages.values()].map((stage) => {
      const count = stage.panes.reduce((sum, pane) => sum + stage.countOf(pane, this.light), 0);
      const chip = button("ct-chip", stage.title, "", () => this.toggle(stage.name));
      chip.setAttribute("aria-pressed", String(this.open.includes(stage.name)));
      chip.dataset.stage = stage.name;
      if (this.light.size) chip.append(make("b", count ? "" : "none", String(count)));
      const places = this.search.countOf(stage);
      if (places) chip.append(make("b", "found", `⌕ ${places}`));
      return chip;
    }));
  }

  // Selecting what is selected clears it; `adds` takes an item in or out.
  select(items, { adds = false, name = "", from = null, quiet = false } = {}) {
    const all = items.length > 0 && items.every((i) => this.selection.has(i));
    if (adds) for (const i of items) all ? this.selection.delete(i) : this.selection.add(i);
    else this.selection = new Set(all && this.selection.size === items.length ? [] : items);
    this.light = lit(this.selection, this.data.links, this.results);
    this.paint(from);
    this.tell(items, name);
    if (!quiet) this.onSelect?.(this.handles());
  }

  handles() { return [...this.selection].map((i) => this.data.handles[i]).sort(); }

  selectHandles(handles) {
    if (JSON.stringify([...handles].sort()) === JSON.stringify(this.handles())) return;
    this.numbers ||= new Map(this.data.handles.map((handle, i) => [handle, i]));
    const items = handles.map((handle) => this.numbers.get(handle)).filter((i) => i !== undefined);
    this.selection = new Set();
    this.select(items, { name: `${items.length} item${items.length === 1 ? "" : "s"}`, quiet: true });
  }

  tell(items, name) {
    if (this.selection.size) this.say(`${name}: ${this.light.size - this.selection.size} linked items`);
    else this.say(name && !items.length ? `${name} became nothing: it is not part of a graph.` : HINT);
  }

  say(text) { this.status.textContent = text; }

  // Keys that work wherever the focus is, except in a field where one types.
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, [contenteditable]")) return;
    const action = { "?": () => this.help(), "/": () => this.search.field.focus(), Escape: () => this.escape() }[event.key];
    if (!action) return;
    action();
    event.preventDefault();
    event.stopPropagation();
  }

  // What was opened last goes first: the list of keys, then the search, then the selection.
  escape() {
    if (!this.keys.hidden) this.help();
    else if (this.search.words) this.search.leave();
    else this.select([]);
  }

  help() { this.keys.hidden = !this.keys.hidden; }

  // Select a place of the program, `file:line`; with `ask`, say whether there is something to select.
  go(place, ask = false) {
    const ledger = this.data.panes[0], line = ledger.places?.[place], items = ledger.items[line];
    if (ask || !items) return Boolean(items);
    if (!this.open.includes("source")) this.toggle("source");
    this.select(items, { name: `Source, line ${ledger.gutter[line - 1]}` });
    return true;
  }
}

export function mountView(root, data, options) {
  root.classList.add("ct");
  root.dataset.lmSuppressShortcuts = "true"; // JupyterLab keeps its one-letter commands to itself
  const view = new View(root, data, options);
  root.addEventListener("keydown", (event) => view.onKey(event));
  root.tabIndex = -1; // a click anywhere inside takes the focus, and so the keys
  return view;
}
