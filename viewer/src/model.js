// The program as a tree of groups (modules) whose leaves are nodes.

// A group of more children than this is shown in parts of consecutive calls: a layout of thousands takes seconds.
const LARGEST = 120;

export class Model {
  constructor(data) {
    this.data = data;
    this.nodes = data.nodes.map((row, index) => ({...row, index, kind: 'node', users: [], flops: row.flops || 0, label: label_of(row)}));
    for (const node of this.nodes) {
      node.inputs = node.in.map((i) => this.nodes[i]);
      for (const input of node.inputs) input.users.push(node);
      node.quiet = !!node.view || /assert|sym_|getitem|^_operator|detach/.test(node.target);
      node.weight_input = node.op === 'placeholder' && node.input !== undefined && node.weight !== undefined;
    }
    this.groups = data.modules.map((row, index) => ({...row, index, kind: 'group', children: [], open: false}));
    this.groups.forEach((group) => { group.parent = group.parent >= 0 ? this.groups[group.parent] : null; });
    this.root = this.groups[0];
    this.root.open = true;
    this.root.name = data.title;
    this.fill();
    this.inline(this.root);
    this.split(this.root);
    this.measure(this.root);
    for (const group of this.groups)
      if (group.only) {
        Object.assign(group, {calls: group.only.op === 'call' ? 1 : 0, flops: group.only.flops});
        this.note(group, new Set(group.only.inputs.filter((n) => n.weight_input)));
      }
  }

  /// Puts nodes and groups below their groups, in the order of the calls. Weights are shown with the calls that take them.
  fill() {
    const placed = new Set([this.root]);
    for (const node of this.nodes) {
      node.parent = this.groups[node.module];
      if (node.weight_input) continue;
      node.parent.children.push(node);
      for (let group = node.parent; !placed.has(group); group = group.parent) {
        placed.add(group);
        group.parent.children.push(group);
      }
    }
    // A group's children came in the order of their first calls only where groups were met before their nodes.
    for (const group of this.groups) group.children.sort((a, b) => first_call(a) - first_call(b));
  }

  /// A module of one call is shown as that call, under both names.
  inline(group) {
    group.children = group.children.map((child) => {
      if (child.kind !== 'group') return child;
      this.inline(child);
      const [only] = child.children;
      if (child.children.length !== 1 || only.kind !== 'node') return child;
      only.caption = only.caption ? `${child.name}.${only.caption}` : child.name;
      only.owner = only.owner || child;
      only.parent = group;
      child.only = only;
      return only;
    });
  }

  split(group) {
    for (const child of [...group.children]) if (child.kind === 'group') this.split(child);
    if (group.children.length <= LARGEST) return;
    const children = group.children, count = Math.min(LARGEST, Math.ceil(children.length / (LARGEST / 2)));
    const size = Math.ceil(children.length / count);
    group.children = [];
    for (let at = 0; at < children.length; at += size) {
      const some = children.slice(at, at + size);
      const part = {kind: 'group', name: `calls ${at + 1} to ${at + some.length}`, path: group.path, type: 'a part', part: true, parent: group, children: some, open: false, index: this.groups.length};
      for (const child of some) child.parent = part;
      this.groups.push(part);
      group.children.push(part);
    }
    for (const part of group.children) this.split(part);
  }

  /// Calls, operations and bytes of weights below each group.
  measure(group) {
    group.calls = 0;
    group.flops = 0;
    const weights = new Set();
    for (const child of group.children) {
      if (child.kind === 'group') {
        this.measure(child);
        group.calls += child.calls;
        child.weights.forEach((w) => weights.add(w));
      } else {
        if (child.op === 'call') ++group.calls;
        for (const input of child.inputs) if (input.weight_input) weights.add(input);
      }
      group.flops += child.flops;
    }
    this.note(group, weights);
  }

  note(group, weights) {
    group.weights = weights;
    group.weight_bytes = [...weights].reduce((sum, w) => sum + bytes_of(w), 0);
  }

  /// The innermost thing on the page that holds a node: itself, or the outermost closed group around it.
  shown(node) {
    let seen = node;
    for (let group = node.parent; group; group = group.parent) if (!group.open) seen = group;
    return seen;
  }

  reveal(item) {
    for (let group = item.parent; group; group = group.parent) group.open = true;
  }

  /// Opens or closes the outermost closed, or the innermost open groups.
  open_level() {
    const closed = this.frontier(this.root);
    closed.forEach((group) => { group.open = true; });
    return closed.length > 0;
  }

  close_level() {
    const depth = (group) => group.open ? 1 + Math.max(0, ...group.children.map((c) => c.kind === 'group' ? depth(c) : 0)) : 0;
    const deepest = depth(this.root);
    const close = (group, level) => {
      if (!group.open) return;
      if (level === deepest && group !== this.root) group.open = false;
      group.children.forEach((c) => c.kind === 'group' && close(c, level + 1));
    };
    close(this.root, 1);
  }

  frontier(group) {
    if (!group.open) return [group];
    return group.children.flatMap((c) => c.kind === 'group' ? this.frontier(c) : []);
  }
}

function first_call(item) {
  if (item.kind === 'node') return item.index;
  if (item.first === undefined) item.first = Math.min(...item.children.map(first_call), Infinity);
  return item.first;
}

function label_of(row) {
  if (row.op === 'output') return 'output';
  if (row.op !== 'call') return row.name;
  const parts = row.target.replace(/^torch\.ops\./, '').split('.');
  return parts[0] === 'aten' ? parts[1] : parts.length > 2 && parts[parts.length - 1] === 'default' ? parts.slice(0, -1).join('.') : parts.join('.');
}

export function bytes_of(node) {
  return (node.values || []).reduce((sum, value) => sum + (value.bytes || 0), 0);
}

export function shape_text(node) {
  const values = node.values || [];
  if (values.length === 0) return '';
  const first = values[0].dtype === 'number' ? values[0].shape : `${values[0].dtype}${values[0].shape}`;
  return values.length > 1 ? `${first} and ${values.length - 1} more` : first;
}

export function bytes_text(bytes) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let unit = 0;
  while (bytes >= 1000 && unit + 1 < units.length) { bytes /= 1000; ++unit; }
  return `${unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

export function flops_text(flops) {
  const units = ['', 'k', 'M', 'G', 'T', 'P', 'E'];
  let unit = 0;
  while (flops >= 1000 && unit + 1 < units.length) { flops /= 1000; ++unit; }
  return `${unit && flops < 100 ? flops.toFixed(1) : Math.round(flops)} ${units[unit]}FLOP`;
}

export function count_text(count) {
  return count.toLocaleString('en-US');
}
