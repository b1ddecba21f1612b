// SPDX-License-Identifier: MIT
// Call trees, and the view of a tree as a nested list.

// ---- The call tree of one thread, or of all threads merged.  A node's weight is its time or its bytes.

const measures = { time: { self: "self", whole: "total", word: time }, bytes: { self: "bytes", whole: "below", word: bytes } };
const trees = new Map();
function treeOf(thread, by = "time") {
  const known = by + thread;
  if (trees.has(known)) return trees.get(known);
  const root = { f: -1, total: 0, self: 0, calls: 0, bytes: 0, kids: new Map(), depth: 0, up: null }, N = readNodes(), self = N[measures[by].self], whole = N[measures[by].whole];
  const place = new Array(N.parent.length);
  for (let i = 0; i < N.parent.length; i++) {
    if (thread >= 0 && N.thread[i] !== thread) continue;
    const up = N.parent[i] < 0 ? root : place[N.parent[i]];
    if (!up) continue;
    let node = up.kids.get(N.function[i]);
    if (!node) {
      node = { f: N.function[i], total: 0, self: 0, calls: 0, bytes: 0, kids: new Map(), depth: up.depth + 1, up };
      up.kids.set(node.f, node);
    }
    node.self += self[i];
    node.total += whole[i];
    node.calls += N.calls[i];
    if (N.bytes) node.bytes += N.bytes[i];
    place[i] = node;
  }
  const finish = [root];
  while (finish.length) {
    const node = finish.pop();
    node.sorted = [...node.kids.values()].sort((a, b) => b.total - a.total);
    finish.push(...node.sorted);
  }
  root.total = root.sorted.reduce((sum, k) => sum + k.total, 0);
  trees.set(known, root);
  return root;
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

let treeRoot = null, treeRows = [], treeList = null;
function listTree() {
  treeRows = [];
  const todo = [...treeRoot.sorted].reverse();
  while (todo.length) {
    const node = todo.pop();
    treeRows.push(node);
    if (node.open) for (let i = node.sorted.length; i-- > 0;) todo.push(node.sorted[i]);
  }
  treeList.set(treeRows.length, i => treeRows[i], () => "link");
}
function toggle(node) {
  if (!node.sorted.length) return;
  node.open = !node.open;
  // A node with a single callee is opened together with that callee.
  for (let n = node; node.open && n.sorted.length === 1 && n.sorted[0].sorted.length; n = n.sorted[0]) n.sorted[0].open = true;
  listTree();
}
function setTree(thread) {
  treeRoot = treeOf(thread);
  listTree();
}
function startTree() {
  fillThreads($("treethread"), setTree);
  treeList = new Table($("treetable"), [
    { title: "total", width: "90px", number: true, fill: text(n => time(n.total)) },
    { title: "of thread", width: "90px", number: true, fill(cell, n) { share(x => x.total, treeRoot.total)(cell, n); } },
    { title: "self", width: "90px", number: true, fill: text(n => time(n.self)) },
    { title: "calls", width: "110px", number: true, fill: text(n => group(n.calls)) },
    ...(readNodes().bytes ? [{ title: "allocated", width: "90px", number: true, about: "allocated by the function itself, on this path", fill: text(n => bytes(n.bytes)) }] : []),
    { title: "function", width: "minmax(200px, 1fr)", style: "name", fill(cell, n) {
      cell.style.paddingLeft = Math.min(n.depth - 1, 60) * 16 + "px";
      cell.append(make("span", "twist", n.sorted.length ? n.open ? "\u25be" : "\u25b8" : ""), make("span", "", nameOf(n.f)));
      cell.title = nameOf(n.f);
    } },
  ], () => {}, (node, e) => { if (e.detail > 1) pick(node.f, true); else toggle(node); });
  $("treeall").onclick = () => {
    for (let n = treeRoot; n.sorted.length; n = n.sorted[0]) n.open = true;
    listTree();
  };
  $("treenone").onclick = () => {
    const todo = [treeRoot];
    while (todo.length) { const n = todo.pop(); n.open = false; todo.push(...n.sorted); }
    listTree();
  };
  setTree(-1);
}
