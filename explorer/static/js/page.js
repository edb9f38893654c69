// The two doors: a page with one tab a program, and an anywidget.

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
    const tab = button("ct-tab", name, "", () => pick(k));
    tab.setAttribute("role", "tab");
    list.append(tab);
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], now = [...list.children].indexOf(document.activeElement);
    if (!step || now < 0) return;
    const next = (now + step + names.length) % names.length;
    list.children[next].focus();
    pick(next);
    event.preventDefault();
  });
  return { list, pick };
}

export async function mountReport(root, packed) {
  const programs = await unpack(packed), head = make("header", "ct-head"), views = programs.map(() => null), body = make("div");
  root.classList.add("ct", "ct-page");
  head.append(make("h1", "", "Cutaway"));
  const choice = tabs("programs", programs.map((p) => p.title), (k) => {
    const box = make("div", "ct-view");
    body.replaceChildren(views[k]?.box || box);
    views[k] ||= { box, view: mountView(box, programs[k]) };
    root.view = views[k].view;
  });
  if (programs.length > 1) head.append(choice.list);
  root.append(head, body);
  document.addEventListener("keydown", (event) => root.view?.onKey(event)); // focus may be nowhere
  if (programs.length) choice.pick(0);
  else body.append(make("p", "", "This report holds no recording."));
  requestAnimationFrame(() => requestAnimationFrame(() => { root.dataset.ready = performance.now().toFixed(0); }));
}

// anywidget: the payload is gzipped JSON, `selected` a list of handles, in step with Python.
async function render({ model, el }) {
  const box = make("div", "ct-widget");
  el.append(box);
  const view = mountView(box, await unpack(model.get("payload")), {
    onSelect: (handles) => { model.set("selected", handles); model.save_changes(); },
  });
  const follow = () => view.selectHandles(model.get("selected"));
  follow();
  model.on("change:selected", follow);
  box.dataset.ready = "1";
  return () => model.off("change:selected", follow);
}

export default { render };
