// SPDX-License-Identifier: MIT
// Call trees, and the view of a tree as a nested list.

// ---- Trees.  The weight of a node is its time or its bytes; its callees are made when they are first needed.

const measures = { time: { self: "self", whole: "total", word: time }, bytes: { self: "bytes", whole: "below", word: bytes } };
const weights = {};
// By node: the weight of the node alone, so that a node and all nodes below it have their total together.
function ownWeights(by) {
  if (!weights[by]) {
    const N = readNodes(), own = Array.from(N[measures[by].whole]), whole = N[measures[by].whole];
    for (let i = 0; i < own.length; i++) if (N.parent[i] >= 0) own[N.parent[i]] -= whole[i];
    weights[by] = own.map(w => Math.max(0, w));
  }
  return weights[by];
}
const makeNode = (f, up) => ({ f, total: 0, self: 0, calls: 0, bytes: 0, up, depth: up ? up.depth + 1 : 0, kids: null });
const heaviestFirst = (a, b) => b.total - a.total;
function isOnPath(node, f) {
  while (node && node.f !== f) node = node.up;
  return node;
}
// The tree of one thread (-1: of all threads).  With folded, a call below a call of the same function joins it.
const trees = new Map();
function treeOf(thread, by, folded) {
  const known = [thread, by, folded].join();
  if (trees.has(known)) return trees.get(known);
  const root = makeNode(-1, null), N = readNodes(), own = ownWeights(by), self = N[measures[by].self];
  const place = [], all = [root], kids = new Map([[root, new Map()]]);
  for (let i = 0; i < N.parent.length; i++) {
    if (thread >= 0 && N.thread[i] !== thread) continue;
    const up = N.parent[i] < 0 ? root : place[N.parent[i]], f = N.function[i];
    if (!up) continue;
    let node = folded && isOnPath(up, f) || kids.get(up).get(f);
    if (!node) {
      node = makeNode(f, up);
      kids.get(up).set(f, node);
      kids.set(node, new Map());
      all.push(node);
    }
    node.total += own[i];
    node.self += self[i];
    node.calls += N.calls[i];
    if (N.bytes) node.bytes += N.bytes[i];
    place[i] = node;
  }
  for (let i = all.length; i-- > 0;) {
    const node = all[i];
    if (node.up) node.up.total += node.total;
    node.kids = [...kids.get(node).values()].sort(heaviestFirst);
  }
  trees.set(known, root);
  return root;
}
// The tree from functions to their callers.  Its root has all functions, by the weight that they have alone; or
// only function f, by its total.  from: [the innermost caller of the path so far, its weight, its calls].
function callersTree(thread, by, folded, f) {
  const root = makeNode(-1, null), N = readNodes(), own = ownWeights(by), whole = N[measures[by].whole], from = [];
  const inside = new Uint8Array(N.parent.length);
  for (let i = 0; i < N.parent.length; i++) {
    const up = N.parent[i];
    inside[i] = up >= 0 && (inside[up] || N.function[up] === f) ? 1 : 0;
    if ((thread < 0 || N.thread[i] === thread) && (f < 0 || (N.function[i] === f && !inside[i])))
      from.push([i, f < 0 ? own[i] : whole[i], N.calls[i]]);
  }
  root.folded = folded;
  addCallers(root, from);
  root.total = root.kids.reduce((sum, kid) => sum + kid.total, 0);
  return root;
}
function addCallers(node, from) {
  const N = readNodes(), kids = new Map();
  for (const [i, weight, calls] of from) {
    let kid = kids.get(N.function[i]);
    if (!kid) kids.set(N.function[i], kid = Object.assign(makeNode(N.function[i], node), { from: [], folded: node.folded }));
    kid.total += weight;
    kid.calls += calls;
    let up = N.parent[i];
    while (node.folded && up >= 0 && isOnPath(kid, N.function[up])) up = N.parent[up];
    if (up >= 0) kid.from.push([up, weight, calls]);
    else kid.self += weight; // here the path ends
  }
  node.kids = [...kids.values()].filter(kid => kid.total > 0).sort(heaviestFirst);
}
function kidsOf(node) {
  if (!node.kids) addCallers(node, node.from);
  return node.kids;
}
function fillThreads(select, onChange) {
  const all = make("option", "", "all threads");
  all.value = -1;
  select.append(all);
  data.threads.forEach((t, i) => {
    const option = make("option", "", `${t.name || "thread"} (${t.tid})`);
    option.value = i;
    select.append(option);
  });
  select.onchange = () => onChange(Number(select.value));
}

// ---- The call tree as a nested list.

let treeRoot = null, treeRows = [], treeDepth = 0, treeList = null;
function listTree() {
  treeRows = [];
  const todo = [...treeRoot.kids].reverse();
  while (todo.length) {
    const node = todo.pop();
    treeRows.push(node);
    if (node.open) for (let i = node.kids.length; i-- > 0;) todo.push(node.kids[i]);
  }
  treeDepth = treeRows.reduce((most, n) => Math.max(most, n.depth - 1), 0);
  treeList.set(treeRows.length, i => treeRows[i], () => "link");
}
function toggle(node) {
  if (!node.kids.length) return;
  node.open = !node.open;
  // A node with a single callee is opened together with that callee.
  for (let n = node; node.open && n.kids.length === 1 && n.kids[0].kids.length; n = n.kids[0]) n.kids[0].open = true;
  listTree();
}
function setTree(thread) {
  if (flame.thread !== thread) flame.zoom = "";
  $("treethread").value = flame.thread = thread;
  setLink({ view: "tree", thread: thread < 0 ? "" : thread });
  treeRoot = treeOf(thread, "time", false);
  listTree();
}
// Indentation takes at most half of the column of names, however deep the tree is open.
function treeStep() {
  const room = treeList.scroll.clientWidth - (treeList.shown.length - 1) * 104;
  return Math.min(16, room / 2 / Math.max(1, treeDepth));
}
function startTree() {
  fillThreads($("treethread"), setTree);
  treeList = new Table($("treetable"), [
    { title: "total", width: "90px", number: true, fill: text(n => time(n.total)) },
    { title: "of thread", width: "90px", number: true, fill(cell, n) { share(x => x.total, treeRoot.total)(cell, n); } },
    { title: "self", dropOrder: 3, width: "90px", number: true, fill: text(n => time(n.self)) },
    { title: "calls", dropOrder: 2, width: "110px", number: true, fill: text(n => group(n.calls)) },
    ...(readNodes().bytes ? [{ title: "allocated", dropOrder: 1, width: "90px", number: true, about: "allocated by the function itself, on this path", fill: text(n => bytes(n.bytes)) }] : []),
    { title: "function", width: "minmax(200px, 1fr)", style: "name", fill(cell, n) {
      cell.style.paddingLeft = (n.depth - 1) * treeStep() + "px";
      cell.append(make("span", "twist", n.kids.length ? n.open ? "\u25be" : "\u25b8" : ""), make("span", "", nameOf(n.f)));
      cell.title = nameOf(n.f);
    } },
  ], () => {}, (node, e) => { if (e.detail > 1) pick(node.f, true); else toggle(node); });
  $("treeall").onclick = () => {
    for (let n = treeRoot; n.kids.length; n = n.kids[0]) n.open = true;
    listTree();
  };
  $("treenone").onclick = () => {
    const todo = [treeRoot];
    while (todo.length) { const n = todo.pop(); n.open = false; todo.push(...n.kids); }
    listTree();
  };
  setTree(flame.thread);
}
