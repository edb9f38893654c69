// Items and links are numbers: links[i] lists the items that item i came from.

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
