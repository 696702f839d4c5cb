// What stands around the graph: facts, search, modules, details and memory over time.
import {bytes_of, bytes_text, count_text, flops_text, shape_text} from './model.js';

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((c) => c !== null && c !== undefined));
  return made;
}

// ---- facts ----

export function show_facts(model) {
  const {data} = model;
  document.getElementById('title').textContent = data.title;
  const facts = [
    [`${count_text(model.root.calls)} calls`, `${data.dialect} dialect`],
    [`${count_text(data.parameters)} parameters`, data.weights !== undefined ? bytes_text(data.weights) : ''],
  ];
  if (data.flops !== undefined) facts.push([flops_text(data.flops), 'a call'], [bytes_text(data.peak), 'peak memory']);
  const place = document.getElementById('facts');
  for (const [strong, soft] of facts) place.append(element('span', {class: 'fact'}, element('b', {}, strong), soft ? ` ${soft}` : ''));
  for (const size of data.sizes)
    place.append(element('span', {class: 'fact size', title: 'a size that may differ from call to call, its range, and the value that costs are told for'}, element('b', {}, size.name), ` in ${size.range}`, size.value !== undefined ? `, here ${size.value}` : ''));
  if (data.no_cost) place.append(element('span', {class: 'fact warning', title: data.no_cost}, 'costs are not known: ', data.no_cost.split('\n')[0].slice(0, 120)));
}

// ---- search ----

export class Search {
  constructor(model, select) {
    this.model = model;
    this.select = select;
    this.input = document.getElementById('search');
    this.list = document.getElementById('found');
    this.current = -1;
    this.items = [...model.nodes, ...model.groups.filter((g) => !g.part && !g.only && g !== model.root)];
    this.input.addEventListener('input', () => this.update());
    this.input.addEventListener('focus', () => this.update());
    this.input.addEventListener('keydown', (event) => this.on_key(event));
    document.addEventListener('pointerdown', (event) => { if (!event.target.closest('.search')) this.list.hidden = true; });
  }

  text_of(item) {
    if (item.text === undefined)
      item.text = (item.kind === 'group' ? `${item.path} ${item.type}` : `${item.name} ${item.target} ${item.weight || ''} ${shape_text(item)} ${(item.owner || item.parent).path} ${this.model.data.sources[item.source] || ''}`).toLowerCase();
    return item.text;
  }

  find(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    const own = (item) => (item.kind === 'group' ? item.path : `${item.name} ${item.label}`).toLowerCase();
    const found = this.items.filter((item) => words.every((w) => this.text_of(item).includes(w)));
    // What is called so before what lies in something that is.
    const rank = (item) => own(item) === words[0] ? 0 : own(item).includes(words[0]) ? 1 : 2;
    return found.map((item, i) => [rank(item), i, item]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((row) => row[2]);
  }

  update() {
    const found = this.find(this.input.value);
    this.found = found.slice(0, 60);
    this.current = this.found.length ? 0 : -1;
    this.list.replaceChildren(...this.found.map((item, i) => element('li', {'data-name': item.name, onpointerdown: (e) => { e.preventDefault(); this.take(i); }},
      element('b', {}, item.kind === 'group' ? item.path : item.label), element('span', {}, item.kind === 'group' ? item.type.split('.').pop() : item.weight || [(item.owner || item.parent).path, item.name].filter(Boolean).join('  ')), element('i', {}, item.kind === 'group' ? '' : shape_text(item)))));
    if (found.length > 60) this.list.append(element('li', {class: 'more'}, `and ${count_text(found.length - 60)} more`));
    if (this.input.value.trim() && !found.length) this.list.append(element('li', {class: 'more'}, 'nothing found'));
    this.list.hidden = this.list.children.length === 0;
    this.mark();
  }

  mark() {
    [...this.list.children].forEach((li, i) => li.classList.toggle('current', i === this.current));
    this.list.children[this.current]?.scrollIntoView({block: 'nearest'});
  }

  take(i) {
    this.list.hidden = true;
    this.input.blur();
    if (this.found[i]) this.select(this.found[i]);
  }

  on_key(event) {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      this.current = Math.max(0, Math.min(this.found.length - 1, this.current + (event.key === 'ArrowDown' ? 1 : -1)));
      this.mark();
      event.preventDefault();
    } else if (event.key === 'Enter') {
      this.take(this.current);
    } else if (event.key === 'Escape') {
      this.list.hidden = true;
      this.input.blur();
    }
  }
}

// ---- modules ----

/// A tree of modules with what each costs, in rows that are made when their module is unfolded.
export class Modules {
  constructor(model, select) {
    this.model = model;
    this.select = select;
    this.rows = new Map();
    this.place = document.getElementById('modules');
    this.by_flops = model.root.flops > 0;
    this.below = new Map();  // groups by the one around them, those of one call included
    for (const group of model.groups) {
      if (!group.parent || group.calls === undefined) continue;
      this.below.set(group.parent, [...(this.below.get(group.parent) || []), group]);
    }
    this.place.append(element('h2', {}, 'Modules', element('small', {}, this.by_flops ? 'share of operations' : 'calls')));
    const list = element('ul', {role: 'tree'});
    this.place.append(list);
    list.append(this.row(model.root, 0, true));
  }

  row(group, depth, open) {
    const groups = this.below.get(group) || [];
    const share = this.by_flops ? group.flops / this.model.root.flops : group.calls / Math.max(1, this.model.root.calls);
    const fold = element('span', {class: 'fold'}, groups.length ? (open ? '\u25be' : '\u25b8') : '');
    const line = element('div', {class: 'row', title: `${group.path || group.name}\n${group.type}\n${count_text(group.calls)} calls, ${flops_text(group.flops)}, weights ${bytes_text(group.weight_bytes)}`, style: `padding-left:${8 + depth * 12}px`},
      fold, element('span', {class: 'name'}, group.name), element('span', {class: 'bar'}, element('span', {style: `width:${(100 * share).toFixed(1)}%`})),
      element('span', {class: 'cost'}, this.by_flops ? (group.flops ? flops_text(group.flops) : '') : count_text(group.calls)));
    const item = element('li', {role: 'treeitem', 'data-path': group.path}, line);
    const list = element('ul', {role: 'group'});
    let filled = false;
    const unfold = (yes) => {
      if (yes && !filled) { groups.forEach((g) => list.append(this.row(g, depth + 1, false))); filled = true; }
      list.hidden = !yes;
      if (groups.length) fold.textContent = yes ? '\u25be' : '\u25b8';
    };
    unfold(open);
    fold.addEventListener('click', (event) => { event.stopPropagation(); unfold(list.hidden); });
    line.addEventListener('click', () => this.select(group));
    item.append(list);
    this.rows.set(group, {line, unfold});
    return item;
  }

  mark(item) {
    this.place.querySelector('.row.current')?.classList.remove('current');
    const group = item && item.kind === 'group' ? item : item?.owner || item?.parent;
    const chain = [];
    for (let g = group; g; g = g.parent) chain.unshift(g);
    for (const g of chain.slice(0, -1)) this.rows.get(g)?.unfold(true);
    const row = this.rows.get(group);
    row?.line.classList.add('current');
    row?.line.scrollIntoView({block: 'nearest'});
  }
}

// ---- details ----

export function show_details(model, item, {select, toggle}) {
  const place = document.getElementById('details');
  place.replaceChildren();
  place.scrollTop = 0;
  if (!item) { place.append(...help()); return; }
  place.append(...(item.kind === 'group' ? group_details(model, item, select, toggle) : node_details(model, item, select)));
}

function help() {
  const line = (keys, what) => element('tr', {}, element('td', {}, element('kbd', {}, keys)), element('td', {}, what));
  return [element('h2', {}, 'Nothing selected'), element('table', {class: 'help'},
    line('click', 'a call or module: what it is'), line('click', 'an edge: go to its other end'), line('double click', 'open or close a module'), line('wheel', 'zoom; drag to move'),
    line('/', 'search'), line('e  c  f', 'open, close a level; fit'), line('\u2190 \u2192', 'follow the first input or user of what is selected'), line('Esc', 'select nothing'))];
}

const link = (item, select) => element('button', {class: 'link', 'data-name': item.name, onclick: () => select(item)},
  element('b', {}, item.kind === 'group' ? item.path || item.name : item.weight || item.name), element('span', {}, item.kind === 'node' ? shape_text(item) : ''));

function section(title, ...contents) {
  return element('section', {}, element('h3', {}, title), ...contents);
}

function node_details(model, node, select) {
  const out = [element('h2', {}, node.weight || node.name), element('code', {class: 'target'}, node.op === 'call' ? node.target : `${node.op}${node.input ? `: ${node.input}` : ''}`)];
  const rows = (node.values || []).map((v) => element('tr', {}, element('td', {}, v.dtype === 'number' ? v.shape : `${v.dtype} ${v.shape}`), element('td', {}, v.bytes !== undefined ? bytes_text(v.bytes) : '')));
  if (rows.length) out.push(section(rows.length > 1 ? `Gives ${rows.length} values` : 'Gives', element('table', {}, ...rows)));
  const cost = [];
  if (node.flops) cost.push(['operations', `${flops_text(node.flops)} (${(100 * node.flops / Math.max(1, model.root.flops)).toFixed(1)}%)`]);
  if (node.in_use !== undefined) cost.push(['memory in use after it', bytes_text(node.in_use)]);
  if (node.op === 'call' && bytes_of(node)) cost.push([node.view ? 'a view of' : 'result', bytes_text(bytes_of(node))]);
  if (cost.length) out.push(section('Costs', element('table', {}, ...cost.map(([a, b]) => element('tr', {}, element('td', {}, a), element('td', {}, b))))));
  const values = node.inputs.filter((n) => !n.weight_input), weights = node.inputs.filter((n) => n.weight_input);
  if (values.length) out.push(section('Takes', element('div', {id: 'inputs', class: 'links'}, ...values.map((n) => link(n, select)))));
  if (weights.length) out.push(section('Weights', element('div', {id: 'weights', class: 'links'}, ...weights.map((n) => link(n, select)))));
  if (node.users.length) out.push(section('Taken by', element('div', {id: 'users', class: 'links'}, ...node.users.slice(0, 100).map((n) => link(n, select)))));
  if (node.args) out.push(section('Call', element('pre', {}, `${node.label}(${node.args})`)));
  const module = node.owner || node.parent;
  if (module !== model.root && !node.weight_input) out.push(section('Module', element('div', {class: 'links'}, link(module, select)), element('p', {class: 'soft'}, module.type)));
  if (node.source !== undefined) out.push(section('Source', element('pre', {id: 'source'}, model.data.sources[node.source])));
  return out;
}

function group_details(model, group, select, toggle) {
  const rows = [['calls', count_text(group.calls)], ['operations', group.flops ? `${flops_text(group.flops)} (${(100 * group.flops / Math.max(1, model.root.flops)).toFixed(1)}%)` : ''], ['weights', bytes_text(group.weight_bytes)]].filter((r) => r[1]);
  const out = [element('h2', {}, group.part ? group.name : group.path || model.data.title), element('code', {class: 'target'}, group.type),
    element('p', {}, element('button', {id: 'toggle', onclick: () => toggle(group)}, group.open ? 'Close' : 'Open')),
    section('Costs', element('table', {}, ...rows.map(([a, b]) => element('tr', {}, element('td', {}, a), element('td', {}, b)))))];
  const heavy = [];
  const collect = (g) => g.children.forEach((c) => c.kind === 'group' ? collect(c) : c.flops && heavy.push(c));
  collect(group);
  heavy.sort((a, b) => b.flops - a.flops);
  if (heavy.length) out.push(section('Most operations', element('div', {class: 'links'}, ...heavy.slice(0, 8).map((n) => element('button', {class: 'link', onclick: () => select(n)}, element('b', {}, n.name), element('span', {}, flops_text(n.flops)))))));
  const weights = [...group.weights];
  if (weights.length) out.push(section('Weights', element('div', {class: 'links'}, ...weights.slice(0, 60).map((n) => link(n, select)))));
  return out;
}

// ---- memory over time ----

export class Memory {
  constructor(model, select) {
    this.model = model;
    this.points = model.data.memory || [];
    if (this.points.length < 2) return;
    const figure = document.getElementById('memory');
    figure.hidden = false;
    this.canvas = document.getElementById('timeline');
    this.caption = figure.querySelector('figcaption');
    this.points.forEach(([bytes, node]) => { if (node >= 0) model.nodes[node].in_use = bytes; });
    this.first = new Map();
    this.points.forEach(([, node], i) => { if (!this.first.has(node)) this.first.set(node, i); });
    const point_at = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return Math.max(0, Math.min(this.points.length - 1, Math.round((event.clientX - box.left) / box.width * (this.points.length - 1))));
    };
    this.canvas.addEventListener('pointermove', (event) => { this.hover = point_at(event); this.draw(); });
    this.canvas.addEventListener('pointerleave', () => { this.hover = undefined; this.draw(); });
    this.canvas.addEventListener('click', (event) => { const node = this.points[point_at(event)][1]; if (node >= 0) select(model.nodes[node]); });
    new ResizeObserver(() => this.draw()).observe(figure);
  }

  mark(item) {
    if (!this.canvas) return;
    const indices = item ? (item.kind === 'group' ? this.range(item) : [this.first.get(item.index)]) : [];
    this.marked = indices.filter((i) => i !== undefined);
    this.draw();
  }

  range(group) {
    let low = Infinity, high = -Infinity;
    const visit = (g) => g.children.forEach((c) => {
      if (c.kind === 'group') { visit(c); return; }
      const at = this.first.get(c.index);
      if (at !== undefined) { low = Math.min(low, at); high = Math.max(high, at); }
    });
    visit(group);
    return low <= high ? [low, high] : [];
  }

  draw() {
    const {canvas, points} = this, box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    const c = canvas.getContext('2d'), style = getComputedStyle(document.documentElement), colour = (n) => style.getPropertyValue(`--${n}`).trim();
    c.scale(ratio, ratio);
    const {width, height} = box, peak = this.model.data.peak || 1;
    const x = (i) => i / (points.length - 1) * width, y = (bytes) => height - 2 - bytes / peak * (height - 8);
    if (this.marked?.length === 2) { c.fillStyle = colour('mark'); c.fillRect(x(this.marked[0]), 0, Math.max(2, x(this.marked[1]) - x(this.marked[0])), height); }
    const weights = this.model.data.weights || 0;
    c.globalAlpha = 0.5;
    c.fillStyle = colour('line');
    c.fillRect(0, y(weights), width, height - y(weights));
    c.beginPath();
    c.moveTo(0, y(weights));
    points.forEach(([bytes], i) => c.lineTo(x(i), y(bytes)));
    c.lineTo(width, y(weights));
    c.fillStyle = colour('memory');
    c.globalAlpha = 0.45;
    c.fill();
    c.globalAlpha = 1;
    c.beginPath();
    points.forEach(([bytes], i) => i ? c.lineTo(x(i), y(bytes)) : c.moveTo(x(i), y(bytes)));
    c.strokeStyle = colour('memory');
    c.lineWidth = 1.2;
    c.stroke();
    const line = (i, name) => { c.fillStyle = colour(name); c.fillRect(x(i) - 1, 0, 2, height); };
    if (this.marked?.length === 1) line(this.marked[0], 'accent');
    if (this.hover !== undefined) line(this.hover, 'soft');
    const at = this.hover ?? (this.marked?.length === 1 ? this.marked[0] : undefined);
    const node = at !== undefined && points[at][1] >= 0 ? this.model.nodes[points[at][1]] : null;
    this.caption.textContent = at !== undefined ? `${bytes_text(points[at][0])} in use${node ? ` at ${node.name}` : ''}` : `Memory over a call: ${bytes_text(peak)} at the peak, ${bytes_text(weights)} of them weights (grey)`;
  }
}
