// Places: every open group is laid out by itself, its open groups being boxes in it, so that opening one moves only what
// stands around it. Edges that cross the border of a group pass through a port on it.
import dagre from '@dagrejs/dagre';
import {shape_text} from './model.js';

export const HEAD = 26;
const PAD = 14;
const PORT = 6;

let measure_text;
export function set_measure(measure) { measure_text = measure; }

function size_of(item) {
  if (item.kind === 'group' && item.open) return {width: item.box.width, height: item.box.height};
  if (item.size) return item.size;
  const second = item.kind === 'group' ? '0,000 calls  000.0 MFLOP' : shape_text(item);
  const first = item.kind === 'group' ? `+  ${item.name}` : item.caption ? `${item.caption}  ${item.label}` : item.label;
  const width = Math.max(measure_text(first, true) + 24, measure_text(second, false) + 20, 60);
  item.size = {width: Math.min(Math.ceil(width), 320), height: second ? 40 : 26};
  return item.size;
}

/// The groups around an item, outermost first.
function chain(item) {
  const groups = [];
  for (let group = item.parent; group; group = group.parent) groups.unshift(group);
  return groups;
}

/// Lays out the root and all that is open below it, and gives the scene at the end. It stops after each group that had to
/// be laid out: a large program takes a while.
export function* lay_out(model) {
  const segments = segments_of(model);
  yield* place_group(model.root, segments);
  const scene = {items: [], groups: [], edges: []};
  spread(model.root, 0, 0, 0, scene);
  join(segments, scene);
  return scene;
}

/// What edges do inside of each open group: [from, to] where either may be a port of the group.
function segments_of(model) {
  const by_group = new Map();
  const edges = new Map();
  const inside = (group) => {
    if (!by_group.has(group)) by_group.set(group, new Map());
    return by_group.get(group);
  };
  const add = (group, from, to, edge) => {
    const key = `${end_key(from)}>${end_key(to)}`;
    const all = inside(group);
    if (!all.has(key)) all.set(key, {from, to, edges: []});
    const segment = all.get(key);
    segment.edges.push(edge);
    edge.segments.push(segment);
  };
  for (const target of model.nodes) {
    if (target.weight_input) continue;
    const end = model.shown(target);
    for (const source of target.inputs) {
      if (source.weight_input) continue;
      const start = model.shown(source);
      if (start === end) continue;
      // Calls that give one value to several things in one closed group share an edge.
      const key = `${source.index}>${id_of(end)}`;
      const known = edges.get(key);
      if (known) { known.ends.push(target); continue; }
      const edge = {source, ends: [target], start, end, segments: [], is_number: source.values?.[0]?.dtype === 'number'};
      edges.set(key, edge);
      const from = chain(start), to = chain(end);
      let common = 0;
      while (common < from.length && common < to.length && from[common] === to[common]) ++common;
      let at = start;
      for (let i = from.length - 1; i >= common; --i) {
        const port = {id: `o${source.index}@${id_of(from[i])}`, port: 'out', group: from[i]};
        add(from[i], at, port, edge);
        at = {item: from[i], port_id: port.id, id: id_of(from[i]) + port.id};
      }
      const entries = to.slice(common);
      const outer = to[common - 1];
      let goal = end;
      if (entries.length) goal = {item: entries[0], port_id: `i${source.index}@${id_of(entries[0])}`, id: id_of(entries[0]) + `i${source.index}`};
      add(outer, at, goal, edge);
      for (let i = 0; i < entries.length; ++i) {
        const port = {id: `i${source.index}@${id_of(entries[i])}`, port: 'in', group: entries[i]};
        const next = entries[i + 1];
        add(entries[i], port, next ? {item: next, port_id: `i${source.index}@${id_of(next)}`, id: id_of(next) + `i${source.index}`} : end, edge);
      }
    }
  }
  return {by_group, edges};
}

export function id_of(item) { return item.kind === 'group' ? `g${item.index}` : `n${item.index}`; }

const end_key = (end) => end.id ?? id_of(end);
const child_id = (end) => end.port ? end.id : id_of(end.item || end);

// Layouts by what they are made of. The layers of a network are alike: most are laid out once.
const known_layouts = new Map();

/// Boxes of the group's children and the ways between them, relative to the group's corner.
function* place_group(group, segments) {
  for (const child of group.children) if (child.kind === 'group' && child.open) yield* place_group(child, segments);
  const inside = [...(segments.by_group.get(group) || new Map()).values()];
  const ports = new Map();
  for (const {from, to} of inside)
    for (const end of [from, to])
      if (end.port && !ports.has(end.id)) ports.set(end.id, {...end, number: `${end.port}${ports.size}`});
  const numbers = new Map(group.children.map((child, i) => [id_of(child), String(i)]));
  const number = (end) => end.port ? ports.get(end.id).number : numbers.get(id_of(end.item || end));
  const shape = {
    sizes: group.children.map(size_of), ports: [...ports.values()].map((p) => p.number), edges: inside.map((s) => [number(s.from), number(s.to)]),
    head: Math.min(420, Math.ceil(measure_text(`-  ${group.name}`, true) + measure_text('0,000 calls  000.0 MFLOP', false) + 50)),
  };
  const key = JSON.stringify(shape);
  let layout = known_layouts.get(key);
  if (!layout) {
    layout = run_dagre(shape);
    known_layouts.set(key, layout);
    yield;
  }
  group.box = layout.box;
  group.places = new Map(group.children.map((child, i) => [child, layout.places[i]]));
  group.ports = new Map([...ports.keys()].map((id, i) => [id, layout.ports[i]]));
  inside.forEach((s, i) => { s.route = layout.routes[i]; });
}

function run_dagre({sizes, ports, edges, head}) {
  const graph = new dagre.graphlib.Graph({multigraph: true});
  graph.setGraph({rankdir: 'TB', nodesep: 22, ranksep: 30, edgesep: 10, ranker: sizes.length > 60 ? 'longest-path' : 'network-simplex'});
  graph.setDefaultEdgeLabel(() => ({}));
  sizes.forEach((size, i) => graph.setNode(String(i), {...size}));
  for (const port of ports) graph.setNode(port, {width: PORT, height: 1});
  const is_port = (end) => end.startsWith('in') || end.startsWith('out');
  edges.forEach(([from, to], i) => graph.setEdge(from, to, {weight: is_port(from) || is_port(to) ? 1 : 2}, String(i)));
  keep_ports_outside(graph, sizes.length, ports);
  dagre.layout(graph);
  const way = (i) => graph.edge(edges[i][0], edges[i][1], String(i)).points;
  let left = Infinity, top = Infinity, right = -Infinity, bottom = -Infinity;
  const extend = (x0, y0, x1, y1) => { left = Math.min(left, x0); top = Math.min(top, y0); right = Math.max(right, x1); bottom = Math.max(bottom, y1); };
  sizes.forEach((size, i) => { const n = graph.node(String(i)); extend(n.x - size.width / 2, n.y - size.height / 2, n.x + size.width / 2, n.y + size.height / 2); });
  for (const port of ports) { const n = graph.node(port); extend(n.x - 4, Infinity, n.x + 4, -Infinity); }
  edges.forEach(([from, to], i) => { if (!is_port(from) && !is_port(to)) for (const p of way(i)) extend(p.x, Infinity, p.x, -Infinity); });
  if (!Number.isFinite(top)) { left = top = 0; right = bottom = 10; }
  const box = {width: Math.max(right - left + 2 * PAD, head), height: bottom - top + 2 * PAD + HEAD};
  const dx = (box.width - right - left) / 2, dy = HEAD + PAD - top;
  return {
    box,
    places: sizes.map((size, i) => { const n = graph.node(String(i)); return {x: n.x - size.width / 2 + dx, y: n.y - size.height / 2 + dy}; }),
    ports: ports.map((port) => ({x: graph.node(port).x + dx, y: port.startsWith('in') ? 0 : box.height})),
    routes: edges.map((_, i) => way(i).map((p) => ({x: p.x + dx, y: p.y + dy}))),
  };
}

/// Entries stand in the first row, exits in the last.
function keep_ports_outside(graph, count, ports) {
  const tie = (end, wanted, edge) => {
    const some = ports.filter((port) => port.startsWith(wanted));
    if (!some.length || !count) return;
    graph.setNode(end, {width: 1, height: 1});
    for (const port of some) edge(port, {weight: 4, minlen: 1});
    for (let i = 0; i < count; ++i) edge(String(i), {weight: 0, minlen: 2});
  };
  tie('^', 'in', (node, label) => { if (!graph.inEdges(node).length) graph.setEdge('^', node, label); });
  tie('$', 'out', (node, label) => { if (!graph.outEdges(node).length) graph.setEdge(node, '$', label); });
}

/// Absolute places.
function spread(group, x, y, depth, scene) {
  group.at = {x, y, ...group.box, depth};
  scene.groups.push(group);
  for (const child of group.children) {
    const place = group.places.get(child);
    if (child.kind === 'group' && child.open) { spread(child, x + place.x, y + place.y, depth + 1, scene); continue; }
    child.at = {x: x + place.x, y: y + place.y, ...size_of(child), depth: depth + 1};
    scene.items.push(child);
  }
}

/// The points of every edge, from the source's lower to the target's upper border.
function join(segments, scene) {
  for (const edge of segments.edges.values()) {
    const points = [];
    for (const segment of edge.segments) {
      const group = segment.from.group || segment.to.group || (segment.from.item || segment.from).parent;
      const corner = group.at;
      const route = segment.route.map((p) => ({x: p.x + corner.x, y: p.y + corner.y}));
      route[0] = leave(segment.from, group, route[1]);
      route[route.length - 1] = enter(segment.to, group, route[route.length - 2]);
      for (const p of points.length ? route.slice(1) : route) points.push(p);
    }
    if (points.length < 2) continue;
    let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity;
    for (const p of points) { x0 = Math.min(x0, p.x); x1 = Math.max(x1, p.x); y0 = Math.min(y0, p.y); y1 = Math.max(y1, p.y); }
    scene.edges.push({...edge, points, bounds: [x0, y0, x1, y1]});
  }
}

/// Where an edge begins: at a port, or at the lower border of an item, near the way's next point.
function leave(end, group, next) {
  if (end.port) { const p = group.ports.get(end.id); return {x: group.at.x + p.x, y: group.at.y + p.y}; }
  if (end.item) { const p = end.item.ports.get(end.port_id); return {x: end.item.at.x + p.x, y: end.item.at.y + end.item.at.height}; }
  return {x: beside(end.at, next.x), y: end.at.y + end.at.height};
}

/// Where it ends: at a port, or at an upper border.
function enter(end, group, previous) {
  if (end.port) { const p = group.ports.get(end.id); return {x: group.at.x + p.x, y: group.at.y + p.y}; }
  if (end.item) { const p = end.item.ports.get(end.port_id); return {x: end.item.at.x + p.x, y: end.item.at.y}; }
  return {x: beside(end.at, previous.x), y: end.at.y};
}

function beside(box, x) { return Math.max(box.x + box.width * 0.25, Math.min(box.x + box.width * 0.75, x)); }
