// A graph as a picture: nodes and edges at the places that Python gave them. Above WINDOW nodes only
// those near the visible part stand in the page.

const WINDOW = 800;
const MARGIN = 12;

function pictureSurface(pane, label, body) {
  const { size: [width, height], nodes, edges, lanes } = pane.picture;
  const svg = draw("svg", { role: "listbox", "aria-label": `${label} as a picture`, "aria-multiselectable": "true" });
  const layers = { lanes: draw("g", {}), edges: draw("path", { class: "ct-edge" }), saved: draw("path", { class: "ct-edge saved" }),
    lit: draw("path", { class: "ct-edge lit" }), nodes: draw("g", { role: "presentation" }) };
  svg.append(...Object.values(layers));
  const live = new Map(), marks = { light: new Set(), selection: new Set(), found: new Set() };
  let zoom = 1, focus = 0, last = null;

  function setZoom(value) {
    zoom = Math.max(0.2, Math.min(2.5, value));
    const box = [-MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN];
    svg.setAttribute("viewBox", box.join(" "));
    svg.setAttribute("width", box[2] * zoom);
    svg.setAttribute("height", box[3] * zoom);
    window_(true);
  }

  function nodeAt(n) {
    const [item, name, type, kind, tip, x, y, w, h] = nodes[n];
    const group = draw("g", { class: `ct-node ${kind}`, transform: `translate(${x} ${y})`, role: "option", "aria-selected": "false",
      "aria-label": `${name}, ${kind}, ${tip}`, tabindex: n === focus ? 0 : -1 });
    group.dataset.node = n;
    group.dataset.item = item;
    const title = draw("title", {}), words = draw("text", { y: type ? -4 : 4 }), below = draw("text", { y: 11, class: "type" });
    title.textContent = tip;
    words.textContent = name;
    below.textContent = type;
    group.append(title, draw("rect", { x: -w / 2, y: -h / 2, width: w, height: h, rx: kind === "input" ? 17 : 5 }),
      draw("path", { class: "stripe", d: stripe(w, h, kind) }), words, below);
    paintNode(group, item);
    return group;
  }

  function paintNode(group, item) {
    const hit = marks.light.has(item);
    group.classList.toggle("hit", hit);
    group.classList.toggle("chosen", marks.selection.has(item));
    group.classList.toggle("found", marks.found.has(item));
    group.setAttribute("aria-selected", String(hit));
  }

  // Which nodes stand in the page now: all of a small picture, else those within a screen of the visible part.
  function window_(always) {
    const screen = (body.clientHeight || 480) / zoom, top = body.scrollTop / zoom - MARGIN;
    if (!always && last !== null && Math.abs(last - top) < screen / 2) return;
    last = top;
    const near = (y) => nodes.length <= WINDOW || (y > top - screen && y < top + 2 * screen);
    nodes.forEach((node, n) => {
      const wanted = near(node[6]);
      if (wanted && !live.has(n)) layers.nodes.append(live.set(n, nodeAt(n)).get(n));
      else if (!wanted && live.has(n)) { live.get(n).remove(); live.delete(n); }
    });
    const path = (some) => some.map((edge) => edgePath(edge, nodes, near)).join("");
    layers.edges.setAttribute("d", path(edges.filter((e) => !e[3])));
    layers.saved.setAttribute("d", path(edges.filter((e) => e[3])));
    paintLitEdges(near);
  }

  function paintLitEdges(near = () => true) {
    const between = edges.filter(([a, b]) => marks.light.has(nodes[a][0]) && marks.light.has(nodes[b][0]));
    layers.lit.setAttribute("d", between.map((edge) => edgePath(edge, nodes, near)).join(""));
  }

  function mark(light, selection, lines) {
    Object.assign(marks, { light, selection, found: new Set(lines.flatMap((line) => pane.items[line] || [])) });
    for (const [n, group] of live) paintNode(group, nodes[n][0]);
    paintLitEdges();
    const hit = nodes.find((node) => selection.has(node[0])) || nodes.find((node) => light.has(node[0]));
    return hit && placeOf(hit);
  }

  const placeOf = ([, , , , , x, y, w, h]) =>
    ({ x: (x - w / 2 + MARGIN) * zoom, y: (y - h / 2 + MARGIN) * zoom, width: w * zoom, height: h * zoom });

  function step(from, key) {
    const n = nearest(nodes, Number(from.closest("[data-node]").dataset.node), key, marks.light);
    if (n < 0) return null;
    focus = n;
    const place = placeOf(nodes[n]);
    if (!live.has(n)) { body.scrollTop = place.y - body.clientHeight / 2; window_(true); }
    return live.get(n);
  }

  for (const [title, x, w] of lanes) {
    const words = draw("text", { x: x + w / 2, y: 6, class: "ct-lane" });
    words.textContent = title;
    layers.lanes.append(words, draw("line", { x1: x, x2: x + w, y1: 14, y2: 14, class: "ct-lane-rule" }));
  }
  body.addEventListener("scroll", () => nodes.length > WINDOW && requestAnimationFrame(() => window_(false)), { passive: true });
  const fit = (least = 0.2) => setZoom(Math.max(least, Math.min(1, (body.clientWidth || 600) / (width + 2 * MARGIN))));
  fit(0.65); // small enough to see much, large enough to read
  return {
    element: svg, mark, step, fit,
    placeOfLine: (line) => {
      const node = nodes.find(([item]) => pane.items[line]?.includes(item));
      return node && placeOf(node);
    },
    zoomBy: (factor) => setZoom(zoom * factor),
    itemsOf: (target) => { const node = target.closest("[data-node]"); return node && [nodes[node.dataset.node][0]]; },
    nameOf: (target) => nodes[target.closest("[data-node]").dataset.node][1],
    placeOf: (group) => placeOf(nodes[group.dataset.node]),
  };
}

// The mark at a node's left side: its form says the kind also without colour.
function stripe(w, h, kind) {
  const x = -w / 2, y = -h / 2;
  if (kind === "input") return "";
  const width = { product: 7, reduction: 5, shape: 2, pointwise: 4 }[kind];
  return `M${x + 1} ${y + 3}h${width}v${h - 6}h${-width}z`;
}

function edgePath([a, b, points, saved], nodes, near) {
  const [, , , , , ax, ay, , ah] = nodes[a], [, , , , , bx, by, , bh] = nodes[b];
  if (!near(ay) && !near(by)) return "";
  const up = by < ay ? -1 : 1;
  if (!points) // too long to draw: a stub at both ends
    return `M${ax} ${ay + up * ah / 2}v${up * 10}M${bx} ${by - up * (bh / 2 + 12)}v${up * 8}` + arrow(bx, by - up * (bh / 2 + 1), up);
  if (saved) {
    const [x0, y0, x1, y1] = points, bend = Math.max(30, (x1 - x0) / 2);
    return `M${x0} ${y0}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}M${x1 - 6} ${y1 - 4}L${x1} ${y1}L${x1 - 6} ${y1 + 4}`;
  }
  const q = points.slice(), end = q.length - 1;
  q[1] += up * ah / 2;
  q[end] -= up * (bh / 2 + 1);
  let d = `M${q[0]} ${q[1]}`;
  for (let i = 2; i < q.length; i += 2) {
    const middle = (q[i - 1] + q[i + 1]) / 2;
    d += `C${q[i - 2]} ${middle} ${q[i]} ${middle} ${q[i]} ${q[i + 1]}`;
  }
  return d + arrow(q[end - 1], q[end], up);
}

const arrow = (x, y, up) => `M${x - 4} ${y - up * 6}L${x} ${y}L${x + 4} ${y - up * 6}`;

// The node that an arrow key leads to; n and p lead to the next and previous lit one.
function nearest(nodes, from, key, light) {
  if (key === "n" || key === "p") {
    const hits = nodes.map((_, n) => n).filter((n) => light.has(nodes[n][0]));
    const order = key === "n" ? hits.filter((n) => n > from) : hits.filter((n) => n < from).reverse();
    return order.length ? order[0] : -1;
  }
  const way = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[key];
  if (!way) return { Home: 0, End: nodes.length - 1 }[key] ?? -1;
  const [, , , , , x, y] = nodes[from];
  let best = -1, least = Infinity;
  nodes.forEach(([, , , , , nx, ny], n) => {
    const along = (nx - x) * way[0] + (ny - y) * way[1], aside = Math.abs((nx - x) * way[1]) + Math.abs((ny - y) * way[0]);
    const cost = along + 3 * aside;
    if (n !== from && along > 1 && cost < least) { least = cost; best = n; }
  });
  return best;
}
