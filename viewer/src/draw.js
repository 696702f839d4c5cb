// The graph on a canvas: only what is in sight is drawn, and text only where it can be read.
import {HEAD} from './layout.js';
import {count_text, flops_text, shape_text} from './model.js';

const FONT = '"Inter", "Segoe UI", system-ui, "DejaVu Sans", sans-serif';

export class Stage {
  constructor(canvas, model) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
    this.model = model;
    this.scene = {items: [], groups: [], edges: []};
    this.view = {x: 0, y: 0, scale: 1};
    this.selected = null;
    this.hover = null;
    this.read_colours();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { this.read_colours(); this.draw(); });
    new ResizeObserver(() => { this.resize(); this.draw(); }).observe(canvas.parentElement);
    this.resize();
  }

  measure(text, strong) {
    this.context.font = strong ? `600 13px ${FONT}` : `11px ${FONT}`;
    return this.context.measureText(text).width;
  }

  read_colours() {
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const names = ['page', 'group', 'line', 'text', 'soft', 'edge', 'accent', 'call', 'call-line', 'heavy', 'heavy-line', 'view', 'view-line', 'io', 'io-line', 'closed', 'closed-line'];
    this.colours = Object.fromEntries(names.map((n) => [n, this.colour(n)]));
  }

  resize() {
    const box = this.canvas.parentElement.getBoundingClientRect();
    this.ratio = window.devicePixelRatio || 1;
    this.width = box.width;
    this.height = box.height;
    this.canvas.width = Math.round(box.width * this.ratio);
    this.canvas.height = Math.round(box.height * this.ratio);
    this.canvas.style.width = `${box.width}px`;
    this.canvas.style.height = `${box.height}px`;
  }

  set_scene(scene) {
    this.scene = scene;
    this.draw();
  }

  /// At most one drawing for each frame of the screen.
  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw_now(); });
  }

  draw_now() {
    const started = performance.now();
    const c = this.context, {x, y, scale} = this.view;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = this.colours.page;
    c.fillRect(0, 0, this.width, this.height);
    c.setTransform(this.ratio * scale, 0, 0, this.ratio * scale, this.ratio * x, this.ratio * y);
    const sight = [-x / scale, -y / scale, (this.width - x) / scale, (this.height - y) / scale];
    const seen = (b) => b.x < sight[2] && b.y < sight[3] && b.x + b.width > sight[0] && b.y + b.height > sight[1];
    for (const group of this.scene.groups) if (seen(group.at)) this.draw_group(group, scale);
    this.draw_edges(sight, scale);
    const readable = scale > 0.32;
    for (const item of this.scene.items) if (seen(item.at)) this.draw_item(item, readable, scale);
    this.drawing_time = performance.now() - started;
  }

  draw_group(group, scale) {
    const c = this.context, b = group.at;
    if (group !== this.model.root) {
      c.globalAlpha = 0.55;
      c.fillStyle = this.colours.group;
      rounded(c, b, 8);
      c.fill();
      c.globalAlpha = 1;
      c.lineWidth = this.is_marked(group) ? 2 / Math.min(scale, 1) : 1;
      c.strokeStyle = this.is_marked(group) ? this.colours.accent : this.colours.line;
      c.stroke();
    }
    if (scale * HEAD < 9 || group === this.model.root) return;
    this.text(`\u2212  ${group.name}`, b.x + 10, b.y + 17, true, this.colours.text, b.width - 20);
    const name = this.measure(`\u2212  ${group.name}`, true);
    const note = group_note(group);
    if (name + this.measure(note, false) + 34 < b.width) this.text(note, b.x + name + 22, b.y + 17, false, this.colours.soft, b.width);
  }

  draw_edges([x0, y0, x1, y1], scale) {
    const c = this.context;
    const marked = [];
    c.strokeStyle = this.colours.edge;
    c.lineWidth = Math.max(1, 0.6 / scale);
    for (const numbers of [true, false]) {  // sizes and the like are there, but do not stand out
      c.globalAlpha = numbers ? 0.4 : 1;
      c.beginPath();
      for (const edge of this.scene.edges) {
        const b = edge.bounds;
        if (edge.is_number !== numbers || b[0] > x1 || b[2] < x0 || b[1] > y1 || b[3] < y0) continue;
        if (this.touches(edge)) marked.push(edge);
        else curve(c, edge.points);
      }
      c.stroke();
    }
    if (scale > 0.3) {
      c.fillStyle = this.colours.edge;
      for (const edge of this.scene.edges) if (!marked.includes(edge)) this.arrow(edge, x0, y0, x1, y1);
    }
    c.strokeStyle = c.fillStyle = this.colours.accent;
    c.lineWidth = Math.max(2, 1.2 / scale);
    for (const edge of marked) {
      c.beginPath();
      curve(c, edge.points);
      c.stroke();
      this.arrow(edge, x0, y0, x1, y1);
    }
  }

  arrow(edge, x0, y0, x1, y1) {
    const end = edge.points[edge.points.length - 1];
    if (end.x < x0 || end.x > x1 || end.y < y0 || end.y > y1) return;
    const c = this.context;
    c.beginPath();
    c.moveTo(end.x, end.y);
    c.lineTo(end.x - 3.5, end.y - 7);
    c.lineTo(end.x + 3.5, end.y - 7);
    c.fill();
  }

  draw_item(item, readable, scale) {
    const c = this.context, b = item.at;
    const style = style_of(item);
    c.fillStyle = this.colours[style];
    c.strokeStyle = this.is_marked(item) ? this.colours.accent : this.colours[`${style}-line`];
    c.lineWidth = this.is_marked(item) ? 2.5 / Math.min(scale, 1) : 1;
    rounded(c, b, style === 'io' ? b.height / 2 : 6);
    c.fill();
    if (readable || this.is_marked(item)) c.stroke();
    if (item.kind === 'group' && readable) {  // there is more inside
      c.strokeRect(b.x + 3, b.y + b.height + 2, b.width - 6, 0.5);
    }
    if (!readable) return;
    const second = item.kind === 'group' ? group_note(item) : shape_text(item);
    this.title(item, b, second ? 16 : 17);
    if (second) this.centred(second, b, 31, false, this.colours.soft);
  }

  /// The name of an item, after that of the module which it is all of.
  title(item, b, dy) {
    if (item.kind === 'group' || !item.caption) { this.centred(item.kind === 'group' ? `+  ${item.name}` : item.label, b, dy, true, this.colours.text); return; }
    const label = Math.min(this.measure(item.label, true), b.width - 12);
    const caption = Math.min(this.measure(item.caption, false), b.width - 12 - label - 7);
    const x = b.x + (b.width - label - caption - 7) / 2;
    if (caption > 10) this.text(item.caption, x, b.y + dy, false, this.colours.soft, caption + 0.5);
    this.text(item.label, x + caption + 7, b.y + dy, true, this.colours.text, label + 0.5);
  }

  centred(text, b, dy, strong, colour) {
    const width = Math.min(this.measure(text, strong), b.width - 12);
    this.text(text, b.x + (b.width - width) / 2, b.y + dy, strong, colour, b.width - 12);
  }

  text(text, x, y, strong, colour, width) {
    const c = this.context;
    c.font = strong ? `600 13px ${FONT}` : `11px ${FONT}`;
    c.fillStyle = colour;
    c.fillText(fitted(c, text, width), x, y);
  }

  is_marked(item) { return item === this.selected || item === this.hover; }
  touches(edge) {
    const s = this.selected;
    if (edge === this.hover) return true;
    return s && (edge.source === s || edge.ends.includes(s) || (s.kind === 'group' && (edge.start === s || edge.end === s)));
  }

  // ---- where things are ----

  to_page(point) { return {x: point.x * this.view.scale + this.view.x, y: point.y * this.view.scale + this.view.y}; }
  to_scene(x, y) { return {x: (x - this.view.x) / this.view.scale, y: (y - this.view.y) / this.view.scale}; }

  /// What is under a point of the canvas: an item, an edge, the innermost open group, or null. `head`: on a group's title.
  at(x, y) {
    const p = this.to_scene(x, y);
    const within = (b) => p.x >= b.x && p.x <= b.x + b.width && p.y >= b.y && p.y <= b.y + b.height;
    for (const item of this.scene.items) if (within(item.at)) return {item};
    const reach = 6 / this.view.scale;
    for (const edge of this.scene.edges) {
      const b = edge.bounds;
      if (p.x < b[0] - reach || p.x > b[2] + reach || p.y < b[1] - reach || p.y > b[3] + reach) continue;
      if (near(p, edge.points, reach)) return {edge, point: p};
    }
    for (let i = this.scene.groups.length - 1; i > 0; --i) {
      const group = this.scene.groups[i];
      if (within(group.at)) return {item: group, head: p.y < group.at.y + HEAD};
    }
    return null;
  }

  fit() {
    cancelAnimationFrame(this.moving);
    const b = this.model.root.at;
    const scale = Math.min(1.2, (this.width - 60) / b.width, (this.height - 60) / b.height);
    this.view = {scale, x: (this.width - b.width * scale) / 2 - b.x * scale, y: (this.height - b.height * scale) / 2 - b.y * scale};
    this.draw();
  }

  /// Shows the beginning of the program at a size that can be read.
  start() {
    cancelAnimationFrame(this.moving);
    const b = this.model.root.at;
    const scale = Math.max(0.55, Math.min(1, (this.width - 40) / b.width, (this.height - 40) / b.height));
    this.view = {scale, x: (this.width - b.width * scale) / 2, y: Math.max(0, Math.min(0, (this.height - b.height * scale) / 2))};
    this.draw();
  }

  zoom(factor, x, y) {
    cancelAnimationFrame(this.moving);
    const scale = Math.min(4, Math.max(0.004, this.view.scale * factor));
    const p = this.to_scene(x, y);
    this.view = {scale, x: x - p.x * scale, y: y - p.y * scale};
    this.draw();
  }

  pan(dx, dy) {
    cancelAnimationFrame(this.moving);
    this.view.x += dx;
    this.view.y += dy;
    this.draw();
  }

  /// Brings an item to the middle, by a short movement.
  go_to(item, at_once) {
    const b = item.at;
    const scale = Math.min(1.2, Math.max(this.view.scale, 0.7));
    const goal = {scale, x: this.width / 2 - (b.x + b.width / 2) * scale, y: this.height / 2 - (b.y + Math.min(b.height, this.height / scale) / 2) * scale};
    const from = {...this.view}, started = performance.now();
    cancelAnimationFrame(this.moving);
    if (at_once || matchMedia('(prefers-reduced-motion: reduce)').matches) { this.view = goal; this.draw(); return; }
    const step = (now) => {
      const t = Math.min(1, (now - started) / 220), e = 1 - (1 - t) ** 3;
      for (const k of ['x', 'y', 'scale']) this.view[k] = from[k] + (goal[k] - from[k]) * e;
      this.draw_now();
      if (t < 1) this.moving = requestAnimationFrame(step);
    };
    this.moving = requestAnimationFrame(step);
  }
}

export function group_note(group) {
  const calls = `${count_text(group.calls)} call${group.calls === 1 ? '' : 's'}`;
  return group.flops ? `${calls}  ${flops_text(group.flops)}` : calls;
}

function style_of(item) {
  if (item.kind === 'group') return 'closed';
  if (item.op === 'placeholder' || item.op === 'output' || item.op === 'get_attr') return 'io';
  return item.flops ? 'heavy' : item.quiet ? 'view' : 'call';
}

function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}\u2026`).width <= width) low = middle; else high = middle - 1;
  }
  return `${text.slice(0, low)}\u2026`;
}

function rounded(c, b, radius) {
  c.beginPath();
  c.roundRect(b.x, b.y, b.width, b.height, radius);
}

/// A smooth line through the middles of the way's pieces.
function curve(c, points) {
  c.moveTo(points[0].x, points[0].y);
  if (points.length === 2) { c.lineTo(points[1].x, points[1].y); return; }
  for (let i = 1; i < points.length - 1; ++i) {
    const p = points[i], q = points[i + 1], last = i === points.length - 2;
    c.quadraticCurveTo(p.x, p.y, last ? q.x : (p.x + q.x) / 2, last ? q.y : (p.y + q.y) / 2);
  }
}

function near(p, points, reach) {
  for (let i = 0; i + 1 < points.length; ++i) {
    const a = points[i], b = points[i + 1], dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy || 1;
    const t = Math.max(0, Math.min(1, ((p.x - a.x) * dx + (p.y - a.y) * dy) / length));
    if (Math.hypot(p.x - a.x - t * dx, p.y - a.y - t * dy) < reach) return true;
  }
  return false;
}

