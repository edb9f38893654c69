// One stage's pane: a frame with a title, a choice among its texts, and a surface (lines or a picture).

class Stage {
  constructor(name, view) {
    Object.assign(this, { name, view, panes: [], shown: null, surface: null, asPicture: true });
  }

  get title() { return this.panes[0].title; }

  // What the stage would like to have, in px.
  get height() {
    const lines = Math.max(...this.panes.map((pane) => pane.lines.length)) * LINE;
    return 70 + (this.asPicture && this.shown.picture ? this.shown.picture.size[1] : lines);
  }

  add(pane) {
    pane.entries = Object.entries(pane.items);
    this.panes.push(pane);
    this.shown ||= pane;
  }

  countOf(pane, light) {
    let count = 0;
    for (const [, items] of pane.entries) if (items.some((i) => light.has(i))) count++;
    return count;
  }

  // Of several texts (kernels, targets, graphs) show one that is lit, if any is; after a selection in
  // another stage the one of which the largest share is lit: where the selected line did most.
  preferLit(light, from) {
    if (!light.size) return;
    const share = (pane) => this.countOf(pane, light) / Math.max(1, pane.entries.length);
    const elsewhere = from && from !== this;
    if (!elsewhere && share(this.shown)) return;
    const best = this.panes.reduce((a, b) => (share(b) > share(a) ? b : a));
    if (share(best) > share(this.shown)) this.shown = best;
  }

  frame() {
    const section = make("section", "ct-pane"), head = make("header", "ct-title");
    section.dataset.stage = this.name;
    section.style.setProperty("--ct-height", `${this.height}px`);
    section.classList.toggle("wide", this.panes.some((pane) => pane.picture?.lanes.length));
    section.setAttribute("aria-label", this.title);
    this.tools = make("span", "ct-tools");
    head.append(make("span", "ct-name", this.title));
    if (this.panes.length > 1) head.append(this.picker());
    else if (this.shown.detail) head.append(make("small", "", this.shown.detail));
    head.append(this.tools);
    this.body = make("div", "ct-scroll");
    this.body.addEventListener("click", (event) => this.onClick(event));
    this.body.addEventListener("keydown", (event) => this.onKey(event));
    section.append(head, this.body);
    this.drawn = null;
    return section;
  }

  picker() {
    const choice = make("select");
    choice.setAttribute("aria-label", `${this.title}: which one ([ and ])`);
    this.panes.forEach((pane, k) => choice.append(new Option(pane.detail || `${k + 1}`, k)));
    choice.addEventListener("change", () => this.show(this.panes[choice.value]));
    this.choice = choice;
    return choice;
  }

  show(pane) {
    this.shown = pane;
    this.paint(this.view.light, this.view.selection);
  }

  draw() {
    const label = `${this.title} ${this.shown.detail}`.trim(), isPicture = this.asPicture && this.shown.picture;
    this.body.replaceChildren();
    this.body.scrollTo(0, 0);
    this.surface = isPicture ? pictureSurface(this.shown, label, this.body) : linesSurface(this.shown, label);
    this.body.append(this.surface.element);
    this.body.classList.toggle("picture", Boolean(isPicture));
    this.drawn = this.shown;
    if (this.choice) this.choice.value = String(this.panes.indexOf(this.shown));
    this.tools.replaceChildren(...this.buttons(isPicture));
  }

  buttons(isPicture) {
    if (!this.shown.picture) return [];
    const toggle = button("ct-tool wide", isPicture ? "text" : "picture", `show as ${isPicture ? "text" : "a picture"} (t)`, () => this.toggle());
    if (!isPicture) return [toggle];
    return [button("ct-tool", "−", "smaller (-)", () => this.surface.zoomBy(1 / 1.25)), button("ct-tool", "+", "larger (+)", () => this.surface.zoomBy(1.25)),
      button("ct-tool", "⤢", "fit the width (0)", () => this.surface.fit()), toggle];
  }

  toggle() {
    if (!this.shown.picture) return;
    this.asPicture = !this.asPicture;
    this.drawn = null;
    this.paint(this.view.light, this.view.selection);
    this.body.querySelector("[tabindex='0']")?.focus({ preventScroll: true });
  }

  // Marks first, scrolling later: reading places between writes would lay out the page again and again.
  paint(light, selection) {
    this.mark(light, selection);
    this.reveal();
  }

  mark(light, selection) {
    if (this.drawn !== this.shown) this.draw();
    this.hit = this.surface.mark(light, selection, this.view.search.linesOf(this.shown));
  }

  // Scroll inside the pane only; the page stays where the reader put it.
  reveal(place = this.hit) {
    if (!place) return;
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.body;
    if (place.y < scrollTop || place.y + place.height > scrollTop + clientHeight) this.body.scrollTop = place.y - clientHeight / 3;
    if (place === this.hit && !place.width) this.body.scrollLeft = 0; // a line is read from its beginning
    if (place.width && (place.x < scrollLeft || place.x + place.width > scrollLeft + clientWidth)) this.body.scrollLeft = place.x - clientWidth / 3;
  }

  // A found line, in whichever text of the stage it is.
  showLine(pane, line) {
    if (pane !== this.shown) this.show(pane);
    this.body.querySelectorAll(".current").forEach((row) => row.classList.remove("current"));
    const row = this.surface.rowOf?.(line);
    row?.classList.add("current");
    this.reveal(row ? this.surface.placeOf(row) : this.surface.placeOfLine(line));
  }

  onClick(event) {
    const target = event.target.closest("[data-line], [data-node]");
    if (target) this.choose(target, event.shiftKey || event.ctrlKey || event.metaKey);
  }

  choose(target, adds) {
    this.focus(target);
    this.view.select(this.surface.itemsOf(target) || [], { adds, name: `${this.title}, ${this.surface.nameOf(target)}`, from: this });
  }

  focus(target) {
    const before = this.body.querySelector("[tabindex='0']");
    if (before) before.setAttribute("tabindex", "-1");
    target.setAttribute("tabindex", "0");
    target.focus({ preventScroll: true });
  }

  onKey(event) {
    const target = event.target.closest("[data-line], [data-node]");
    if (!target || event.ctrlKey || event.metaKey || event.altKey || !this.act(event, target)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  act(event, target) {
    const to = this.surface.step(target, event.key);
    if (to) {
      this.focus(to);
      this.reveal(this.surface.placeOf(to));
      return true;
    }
    const action = {
      Enter: () => this.choose(target, event.shiftKey), " ": () => this.choose(target, event.shiftKey),
      t: () => this.toggle(),
      "+": () => this.surface.zoomBy?.(1.25), "-": () => this.surface.zoomBy?.(1 / 1.25), 0: () => this.surface.fit?.(),
      "[": () => this.turn(-1), "]": () => this.turn(1),
    }[event.key];
    action?.();
    return Boolean(action) || event.key.startsWith("Arrow");
  }

  turn(by) {
    const now = this.panes.indexOf(this.shown), next = this.panes[now + by];
    if (!next) return;
    this.show(next);
    this.body.querySelector("[tabindex='0']")?.focus({ preventScroll: true });
  }
}
