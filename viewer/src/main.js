// The page of `umbra view`.
import {Stage, group_note} from './draw.js';
import {lay_out, set_measure} from './layout.js';
import {Model, shape_text} from './model.js';
import {Memory, Modules, Search, show_details, show_facts} from './panels.js';

const model = new Model(JSON.parse(document.getElementById('program').textContent));
const canvas = document.getElementById('graph'), tip = document.getElementById('tip'), busy = document.getElementById('busy');
const stage = new Stage(canvas, model);
set_measure((text, strong) => stage.measure(text, strong));

let selected = null;

let layout_run = 0;

/// Lays the graph out and then does what is to be done with it: at once where that is quick, else in pieces, so that the
/// page goes on answering.
function update(then = () => {}) {
  const run = ++layout_run, steps = lay_out(model);
  let done = 0;
  const advance = () => {
    if (run !== layout_run) return;
    const started = performance.now();
    while (performance.now() - started < 60) {
      const step = steps.next();
      if (step.done) {
        busy.hidden = true;
        stage.set_scene(step.value);
        then();
        return;
      }
      ++done;
    }
    busy.hidden = false;
    busy.textContent = `Placing modules: ${done}`;
    setTimeout(advance);
  };
  advance();
}

function show(item) {
  stage.selected = item && item.kind === 'node' && item.weight_input ? null : item;
  selected = item;
  show_details(model, item, {select, toggle});
  modules.mark(item && item.weight_input ? null : item);
  memory.mark(item);
  stage.draw();
}

/// Selects a call, weight or module, and brings it into sight.
function select(item, at_once) {
  if (!item) { show(null); return; }
  if (item.only) { select(item.only, at_once); return; }
  const drawn = item.weight_input ? null : item;
  if (drawn) {
    const before = drawn.at, closed = model.shown(drawn) !== drawn;
    model.reveal(drawn);
    if (closed || !before) update(() => stage.go_to(drawn, at_once));
    else if (drawn === model.root) stage.fit();
    else stage.go_to(drawn, at_once);
  }
  show(item);
  if (location.protocol !== 'about:')  // a notebook's frame has no address of its own
    history.replaceState(null, '', `#${item.kind === 'group' ? `module=${encodeURIComponent(item.path)}` : `node=${encodeURIComponent(item.name)}`}`);
}

/// Opens or closes a module; what was under the pointer stays there.
function toggle(group) {
  if (group === model.root || group.only) return;
  model.reveal(group);
  const before = group.at && stage.to_page({x: group.at.x, y: group.at.y});
  group.open = !group.open;
  update(() => {
    const after = stage.to_page({x: group.at.x, y: group.at.y});
    if (before) stage.pan(before.x - after.x, before.y - after.y);
  });
  show(group);
}

function level(change) {
  change();
  update(() => stage.fit());
}

show_facts(model);
const modules = new Modules(model, (group) => select(group));
const memory = new Memory(model, (node) => select(node));
const search = new Search(model, (item) => select(item));

// ---- the mouse ----

let pressed = null;
canvas.addEventListener('pointerdown', (event) => {
  pressed = {x: event.offsetX, y: event.offsetY, moved: false};
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener('pointermove', (event) => {
  if (pressed && (pressed.moved || Math.hypot(event.offsetX - pressed.x, event.offsetY - pressed.y) > 4)) {
    pressed.moved = true;
    stage.pan(event.movementX, event.movementY);
    tip.hidden = true;
    return;
  }
  const under = stage.at(event.offsetX, event.offsetY);
  const hover = under?.edge || (under?.item && (under.head !== false || !under.item.open) ? under.item : null);
  if (hover !== stage.hover) { stage.hover = hover; stage.draw(); }
  canvas.style.cursor = hover ? 'pointer' : 'default';
  show_tip(under, event.offsetX, event.offsetY);
});
canvas.addEventListener('pointerleave', () => { stage.hover = null; tip.hidden = true; stage.draw(); });
canvas.addEventListener('pointerup', (event) => {
  const press = pressed;
  pressed = null;
  if (!press || press.moved) return;
  const under = stage.at(event.offsetX, event.offsetY);
  if (!under) { show(null); return; }
  if (under.edge) { select(far_end(under.edge, under.point)); return; }
  if (under.item.kind === 'group' && under.item.open && !under.head) { show(null); return; }
  show(under.item);
});
canvas.addEventListener('dblclick', (event) => {
  const under = stage.at(event.offsetX, event.offsetY);
  if (under?.item?.kind === 'group' && (under.head || !under.item.open)) toggle(under.item);
});
canvas.addEventListener('wheel', (event) => {
  event.preventDefault();
  const lines = event.deltaMode === 1 ? 16 : 1;
  if (event.ctrlKey || Math.abs(event.deltaY) >= Math.abs(event.deltaX)) stage.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016)), event.offsetX, event.offsetY);
  else stage.pan(-event.deltaX * lines, 0);
}, {passive: false});

/// The end of an edge that is farther from where it was clicked.
function far_end(edge, point) {
  const a = edge.points[0], b = edge.points[edge.points.length - 1];
  const to_source = Math.hypot(point.x - a.x, point.y - a.y) > Math.hypot(point.x - b.x, point.y - b.y);
  return to_source ? edge.source : edge.ends[0];
}

function show_tip(under, x, y) {
  const text = !under ? '' : under.edge ? `${under.edge.source.name}  ${shape_text(under.edge.source)}\n\u2192 ${under.edge.ends.map((n) => n.name).slice(0, 4).join(', ')}`
    : under.item.kind === 'group' ? (under.item.open && !under.head ? '' : `${under.item.path || under.item.name}\n${under.item.type}\n${group_note(under.item)}`) : `${under.item.name}\n${under.item.target}\n${shape_text(under.item)}`;
  tip.hidden = !text;
  tip.textContent = text;
  tip.style.left = `${Math.min(x + 14, stage.width - 260)}px`;
  tip.style.top = `${y + 16}px`;
}

// ---- the keyboard ----

document.addEventListener('keydown', (event) => {
  if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return;
  const follow = (list) => { const next = selected?.kind === 'node' && list.find((n) => !n.weight_input); if (next) select(next); };
  const keys = {
    '/': () => document.getElementById('search').focus(), e: () => level(() => model.open_level()), c: () => level(() => model.close_level()), f: () => stage.fit(),
    Escape: () => show(null), '+': () => stage.zoom(1.25, stage.width / 2, stage.height / 2), '-': () => stage.zoom(0.8, stage.width / 2, stage.height / 2),
    ArrowLeft: () => selected && follow(selected.inputs || []), ArrowRight: () => selected && follow(selected.users || []),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
document.getElementById('open').addEventListener('click', () => level(() => model.open_level()));
document.getElementById('close').addEventListener('click', () => level(() => model.close_level()));
document.getElementById('fit').addEventListener('click', () => stage.fit());

// ---- the beginning ----

/// Opens levels as long as what is shown can be taken in at a glance.
function open_some() {
  const shown = (group) => group.children.reduce((sum, c) => sum + (c.kind === 'group' && c.open ? shown(c) : 1), 0);
  for (;;) {
    const closed = model.frontier(model.root);
    const grown = shown(model.root) + closed.reduce((sum, g) => sum + g.children.length - 1, 0);
    if (!closed.length || (grown > 40 && shown(model.root) > 4) || grown > 120) return;
    closed.forEach((group) => { group.open = true; });
  }
}

open_some();
update(() => stage.start());
const [kind, wanted] = decodeURIComponent(location.hash.slice(1)).split(/=(.*)/s);
const asked = kind === 'node' ? model.nodes.find((n) => n.name === wanted) : kind === 'module' ? model.groups.find((g) => g.path === wanted) : null;
if (asked) select(asked, true); else show(null);

/// For tests and for the console: what the page does, without a mouse.
window.umbra = {
  model, stage, select: (name) => select(model.nodes.find((n) => n.name === name), true), toggle: (path) => toggle(model.groups.find((g) => g.path === path)),
  shown: () => stage.scene.items.map((item) => item.name), selected: () => selected?.name,
  position: (name) => { const item = stage.scene.items.find((i) => i.name === name); return item && stage.to_page({x: item.at.x + item.at.width / 2, y: item.at.y + item.at.height / 2}); },
  open_all: () => new Promise((done) => { model.groups.forEach((g) => { g.open = true; }); update(() => { stage.fit(); done(); }); }),
};
