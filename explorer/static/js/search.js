// Searching all panes at once: lines that hold the words are marked, stages count them, Enter goes on.

// The text of a pane's lines, without the colours; made at the first search.
function plainLines(pane) {
  const marks = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&amp;": "&" };
  pane.plain ||= pane.lines.map((html) => html.replace(/<[^>]*>/g, "").replace(/&(lt|gt|quot|#x27|amp);/g, (m) => marks[m]).toLowerCase());
  return pane.plain;
}

// Line numbers (from 1) of a pane that hold the words, in order.
function linesWith(pane, words) {
  return words ? plainLines(pane).flatMap((text, k) => (text.includes(words) ? [k + 1] : [])) : [];
}

class Search {
  constructor(view) {
    Object.assign(this, { view, words: "", found: new Map(), at: -1 });
    this.field = make("input", "ct-search");
    Object.assign(this.field, { type: "search", placeholder: "search all panes", title: "search all panes (/)", spellcheck: false });
    this.field.setAttribute("aria-label", "search all panes (/)");
    this.field.addEventListener("input", () => this.look());
    this.field.addEventListener("keydown", (event) => this.onKey(event));
  }

  onKey(event) {
    event.stopPropagation(); // keys of the field are the field's
    if (event.key === "Enter") this.go(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") this.leave();
    else return;
    event.preventDefault();
  }

  leave() {
    if (!this.field.value) this.field.blur();
    this.field.value = "";
    this.look();
  }

  look() {
    this.words = this.field.value.toLowerCase();
    this.at = -1;
    this.found = new Map(this.view.data.panes.map((pane) => [pane, linesWith(pane, this.words)]));
    this.view.paint();
    this.tell();
  }

  linesOf(pane) { return this.found.get(pane) || []; }

  countOf(stage) { return stage.panes.reduce((sum, pane) => sum + this.linesOf(pane).length, 0); }

  // Every place, in the order of the open panes; of no open pane, the first stage that has some is opened.
  places() {
    const within = (names) => names.flatMap((name) => this.view.stages.get(name).panes.flatMap((pane) => this.linesOf(pane).map((line) => ({ name, pane, line }))));
    const open = within(this.view.open);
    if (open.length) return open;
    const other = [...this.view.stages.keys()].find((name) => this.countOf(this.view.stages.get(name)));
    if (!other) return [];
    this.view.toggle(other);
    return within([other]);
  }

  go(by) {
    const places = this.places();
    if (!places.length) return this.tell();
    this.at = this.at < 0 ? (by > 0 ? 0 : places.length - 1) : (this.at + by + places.length) % places.length;
    const { name, pane, line } = places[this.at], stage = this.view.stages.get(name);
    stage.showLine(pane, line);
    this.field.focus();
    this.view.say(`${stage.title}, line ${pane.gutter?.[line - 1] || line}: ${this.at + 1} of ${places.length}`);
  }

  tell() {
    const counts = [...this.view.stages.values()].map((stage) => this.countOf(stage)).filter(Boolean);
    const lines = counts.reduce((a, b) => a + b, 0);
    if (!this.words) this.view.say(HINT);
    else if (!lines) this.view.say("no line holds this");
    else this.view.say(`${lines} line${lines === 1 ? "" : "s"} in ${counts.length} stage${counts.length === 1 ? "" : "s"}; Enter: next`);
  }
}
