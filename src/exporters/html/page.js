// SPDX-License-Identifier: MIT
// The script of the report's page, after common.js.  The data is read once from the JSON in the page; its
// texts are only ever assigned to textContent.
(() => {
const data = JSON.parse($("data").textContent);
const F = data.functions, N = data.nodes, E = data.edges, timed = data.timed; // columns: F.name[f], N.parent[i] ...
// "~" marks a time with an error above 10 %, "<" a time that is too short to be known.
const estimate = (i, ns, error) => ns === 0 && error > 0 ? "<" + time(error)
  : (ns !== null && (F.timing[i] === 2 || error > ns / 10) ? "~" : "") + time(ns);
const lowerBounds = new Set(data.at_least || []); // functions that were unhooked for a while: their counts are lower bounds
const callsOf = f => F.calls[f] === null ? "" : (lowerBounds.has(f) ? ">" : "") + group(F.calls[f]);
// Describe the calls of a function that were still open at the end of the record, as `hotfn report` does.
const unreturned = f => !timed || !F.open[f] ? "" : F.open[f] === 1 && F.calls[f] === 1 ? "did not return" : plural(F.open[f], "call") + " did not return";
const nameOf = f => f < 0 ? "(outside)" : F.name[f];

// ---- Functions.

const busy = data.busy_ns, allCalls = data.calls;
const order = { key: timed ? "self" : "calls", down: true };
let picked = -1, shown = [];
const columns = [
  { title: "function", key: "name", width: "minmax(160px, 4fr)", style: "name", fill: text(f => nameOf(f) + (unreturned(f) && ` (${unreturned(f)})`)) },
  { title: "module", key: "module", dropOrder: 4, width: "minmax(96px, 1fr)", style: "module", fill: text(f => data.modules[F.module[f]]) },
  { title: "calls", key: "calls", dropOrder: 9, width: "110px", number: true, fill: text(f => F.calls[f] === null ? F.why[f] : callsOf(f)) },
];
if (timed) columns.push(
  { title: "total", key: "total", dropOrder: 8, width: "84px", number: true, about: "time including callees", fill: text(f => estimate(f, F.total[f], F.total_error[f])) },
  { title: "self", key: "self", width: "84px", number: true, about: "time without callees", fill: text(f => estimate(f, F.self[f], F.self_error[f])) },
  { title: "self %", dropOrder: 5, width: "74px", number: true, about: "of the threads' busy time", fill: share(f => F.self[f] || 0, busy) },
  { title: "p50", key: "p50", dropOrder: 1, width: "76px", number: true, fill: text(f => F.p50[f] ? time(F.p50[f]) : "") },
  { title: "p99", key: "p99", dropOrder: 2, width: "76px", number: true, fill: text(f => F.p99[f] ? time(F.p99[f]) : "") },
  { title: "max", key: "max", dropOrder: 3, width: "76px", number: true, fill(cell, f) {
    cell.textContent = time(F.max[f]);
    if (data.slow_ns && F.max[f] >= data.slow_ns) cell.classList.add("hot");
  } });
if (timed && data.allocs) {
  F.allocated = data.allocs.map(a => a[4]);
  F.below = data.allocs.map(a => a[0]);
  columns.push(
    { title: "allocated", key: "allocated", dropOrder: 7, width: "92px", number: true, about: "allocated by the function itself", fill: text(f => bytes(F.allocated[f])) },
    { title: "with callees", key: "below", dropOrder: 6, width: "92px", number: true, about: "allocated by the function and its callees", fill: text(f => bytes(F.below[f])) });
}
if (!timed) columns.push(
  { title: "share", width: "90px", number: true, fill: share(f => F.calls[f] || 0, allCalls) });
const table = new Table($("table"), columns, sortBy, f => pick(f));

const collator = new Intl.Collator("en");
function compare(a, b) {
  const key = order.key, sign = order.down ? -1 : 1;
  if (key === "name") return sign * collator.compare(F.name[a], F.name[b]) || a - b;
  if (key === "module") return sign * collator.compare(data.modules[F.module[a]], data.modules[F.module[b]]) || a - b;
  const x = F[key][a], y = F[key][b];
  if (x === null || y === null) return (x === null) - (y === null) || a - b; // functions without a value come last
  return sign * (x - y) || a - b;
}
function listFunctions() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(w => w), called = $("called").checked;
  shown = [];
  for (let f = 0; f < F.name.length; f++) {
    if (called && !F.calls[f]) continue;
    const hay = words.length ? (F.name[f] + " " + data.modules[F.module[f]]).toLowerCase() : "";
    if (words.every(w => hay.includes(w))) shown.push(f);
  }
  shown.sort(compare);
  $("found").textContent = group(shown.length) + " of " + group(F.name.length) + " functions";
  table.sorted(order.key, order.down);
  table.set(shown.length, i => shown[i], f =>
    "link" + (f === picked ? " picked" : "") + (F.calls[f] ? "" : " never"));
}
function sortBy(key) {
  const words = key === "name" || key === "module";
  order.down = order.key === key ? !order.down : !words;
  order.key = key;
  table.scroll.scrollTop = 0;
  listFunctions();
}

// ---- One function.

function bucketBegin(b) {
  const shift = b < 64 ? 0 : Math.floor(b / 32) - 1;
  return (b - shift * 32) * Math.pow(2, shift);
}
function histogram(f) {
  const pairs = data.histograms[f];
  if (!pairs) return null;
  // eight bars for each factor of ten
  const bars = new Map();
  for (let i = 0; i < pairs.length; i += 2) {
    const ns = Math.max(1, (bucketBegin(pairs[i]) + bucketBegin(pairs[i] + 1)) / 2 * 1e9 / data.ticks_per_second);
    const at = Math.floor(Math.log10(ns) * 8);
    bars.set(at, (bars.get(at) || 0) + pairs[i + 1]);
  }
  const low = Math.min(...bars.keys()) - 1, high = Math.max(...bars.keys()) + 1;
  const most = Math.max(...bars.values()), width = 346, height = 110, step = width / (high - low + 1);
  const svgTag = "http://www.w3.org/2000/svg", svg = document.createElementNS(svgTag, "svg");
  const put = (tag, attributes, content) => {
    const e = document.createElementNS(svgTag, tag);
    for (const key in attributes) e.setAttribute(key, attributes[key]);
    if (content !== undefined) e.textContent = content;
    svg.append(e);
    return e;
  };
  svg.setAttribute("viewBox", `0 0 ${width} ${height + 16}`);
  svg.setAttribute("role", "img");
  let lastLabel = -99;
  for (let at = low; at <= high; at++) {
    const count = bars.get(at) || 0, x = (at - low) * step;
    if (count) {
      // Heights are logarithmic, so that a bar of few calls is visible.
      const tall = Math.max(3, height * Math.log1p(count) / Math.log1p(most));
      const bar = put("rect", { x: x + .5, y: height - tall, width: Math.max(1, step - 1), height: tall, rx: 1 });
      const title = document.createElementNS(svgTag, "title");
      title.textContent = `${plural(count, "call")} of ${time(Math.pow(10, at / 8))} to ${time(Math.pow(10, (at + 1) / 8))}`;
      bar.append(title);
    }
    if ((at % 8 === 0 || high - low < 12) && x - lastLabel > 52 && x < width - 30) {
      put("text", { x, y: height + 13 }, time(Math.pow(10, at / 8)));
      lastLabel = x;
    }
  }
  return svg;
}
function neighbours(title, mine, other, f) {
  const found = [];
  for (let i = 0; i < mine.length; i++) if (mine[i] === f) found.push(i);
  if (!found.length) return [];
  found.sort((a, b) => E.total[b] - E.total[a]);
  const parts = [make("h3", "", title + (found.length > 50 ? ` (50 of ${found.length})` : ""))];
  for (const i of found.slice(0, 50)) {
    const link = make("button", "link"), to = other[i];
    link.type = "button";
    link.append(make("span", "name", nameOf(to)), make("span", "number dim", group(E.calls[i])), make("span", "number", time(E.total[i])));
    link.title = nameOf(to);
    if (to >= 0) link.onclick = () => pick(to, true);
    parts.push(link);
  }
  return parts;
}
function fact(list, name, value) {
  if (value === "") return;
  const box = make("div");
  box.append(make("dt", "", name), make("dd", "", value));
  list.append(box);
}
function pick(f, scroll) {
  picked = f;
  const close = make("button", "close", "\u00d7"), list = make("dl");
  close.type = "button";
  close.setAttribute("aria-label", "close");
  close.onclick = () => { picked = -1; $("detail").replaceChildren(); table.draw(); };
  fact(list, "calls", callsOf(f));
  if (timed && F.total[f] !== null) {
    fact(list, "total", estimate(f, F.total[f], F.total_error[f]));
    fact(list, "self", estimate(f, F.self[f], F.self_error[f]));
    fact(list, "total, share of busy time", percent(F.total[f], busy));
    fact(list, "self, share of busy time", percent(F.self[f], busy));
    fact(list, "mean", F.calls[f] ? time(F.total[f] / F.calls[f]) : "");
    fact(list, "p50", F.p50[f] ? time(F.p50[f]) : "");
    fact(list, "p90", F.p90[f] ? time(F.p90[f]) : "");
    fact(list, "p99", F.p99[f] ? time(F.p99[f]) : "");
    fact(list, "max", time(F.max[f]));
    if (data.allocs) {
      fact(list, "allocated by itself", bytes(data.allocs[f][4]) + " in " + group(data.allocs[f][5]));
      fact(list, "allocated with callees", bytes(data.allocs[f][0]) + " in " + group(data.allocs[f][1]));
      fact(list, "freed with callees", bytes(data.allocs[f][2]) + " in " + group(data.allocs[f][3]));
    }
  }
  const parts = [close, make("h2", "", nameOf(f)), make("div", "dim", data.modules[F.module[f]] + "+0x" + F.rva[f].toString(16)), list];
  if (F.why[f]) parts.push(make("p", "dim", F.why[f]));
  if (unreturned(f)) parts.push(make("p", "dim", unreturned(f)));
  for (const c of changesOf(f)) parts.push(make("p", "dim", `at ${time(c.at_ns)}: ${c.from} \u2192 ${c.to}, ${whyOf(c)}`));
  const bars = timed && histogram(f);
  if (bars) parts.push(make("h3", "", "how long calls took (log scales)"), bars);
  if (timed) parts.push(...neighbours("called by (calls, total)", E.callee, E.caller, f), ...neighbours("calls (calls, total)", E.caller, E.callee, f));
  $("detail").replaceChildren(...parts);
  showTab("functions");
  const at = shown.indexOf(f);
  if (scroll && at >= 0) table.scroll.scrollTop = Math.max(0, at * ROW - 120);
  table.draw();
}

// ---- The changes that were made to keep the budget.

const budget = data.budget;
const changesOf = f => budget ? budget.changes.filter(c => c.function === f) : [];
const whyOf = c => c.why === "over-budget" ? `${plural(c.calls_per_second, "call")} a second ${c.to === "unhooked" ? "took" : "would take"} ${(100 * c.cost).toFixed(1)}%` : "tried again";

// ---- The call tree of one thread, or of all threads merged.  A node's weight is its time or its bytes.

const measures = { time: { self: N.self, whole: N.total, word: time }, bytes: { self: N.bytes, whole: N.below, word: bytes } };
const trees = new Map();
function treeOf(thread, by = "time") {
  const known = by + thread;
  if (trees.has(known)) return trees.get(known);
  const root = { f: -1, total: 0, self: 0, calls: 0, bytes: 0, kids: new Map(), depth: 0, up: null }, m = measures[by];
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
    node.self += m.self[i];
    node.total += m.whole[i];
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

// ---- Flame graph: the outermost function is at the top (an icicle graph).

const flame = { root: null, top: null, boxes: [], row: 20, thread: -1, by: "time" };
function hue(f) {
  let h = 2166136261;
  const name = nameOf(f).split(/[(<]/)[0].replace(/::[^:]*$/, "");
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 16777619);
  h = Math.imul(h ^ h >>> 15, 0x2c1b3c6d);
  return 8 + ((h ^ h >>> 13) >>> 0) % 46; // from red over orange to yellow
}
function drawFlame() {
  const canvas = $("flamecanvas"), width = $("flamebox").clientWidth, ratio = window.devicePixelRatio || 1;
  if (!flame.top || !width) return;
  const dark = document.documentElement.dataset.theme === "dark", boxes = [], word = $("flamesearch").value.toLowerCase();
  let deepest = 0, matched = 0;
  const path = [];
  for (let n = flame.top.up; n && n.up; n = n.up) path.unshift(n);
  path.forEach((node, depth) => boxes.push({ node, x: 0, w: width, depth, over: true }));
  const todo = [[flame.top, 0, width, path.length]];
  while (todo.length) {
    const [node, x, w, depth] = todo.pop();
    if (node.f >= 0) boxes.push({ node, x, w, depth });
    let at = x;
    const whole = node.total || 1;
    for (const kid of node.sorted) {
      const kidWidth = w * kid.total / whole;
      if (kidWidth < .4) break;
      todo.push([kid, at, Math.min(kidWidth, x + w - at), node.f >= 0 ? depth + 1 : depth]);
      at += kidWidth;
    }
  }
  for (const b of boxes) deepest = Math.max(deepest, b.depth);
  const height = Math.max((deepest + 1) * flame.row + 8, 60);
  canvas.width = width * ratio;
  canvas.height = Math.min(height, 30000 / ratio) * ratio;
  canvas.style.height = height + "px";
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  g.font = "12px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
  g.textBaseline = "middle";
  const letter = g.measureText("m").width;
  for (const b of boxes) {
    const hit = word && nameOf(b.node.f).toLowerCase().includes(word);
    matched += hit;
    g.fillStyle = b.over ? (dark ? "#39414b" : "#d9dee5") : hit ? (dark ? "#a855f7" : "#c084fc")
      : `hsl(${hue(b.node.f)} ${word ? 25 : dark ? 58 : 88}% ${dark ? 36 : 70}%)`;
    g.fillRect(b.x, b.depth * flame.row + 1, Math.max(.6, b.w - 1), flame.row - 1);
    const letters = Math.floor((b.w - 8) / letter);
    if (letters > 2) {
      const name = fold(nameOf(b.node.f), letters);
      g.fillStyle = dark ? "#f4f5f7" : "#23180d";
      g.fillText(name.length > letters ? name.slice(0, letters - 1) + "\u2026" : name, b.x + 4, b.depth * flame.row + flame.row / 2 + 1);
    }
  }
  flame.boxes = boxes;
  $("flamefound").textContent = word ? `${matched} boxes match` : "click a box to zoom in, hover to read it";
}
function boxAt(e) {
  const r = $("flamecanvas").getBoundingClientRect(), x = e.clientX - r.left, depth = Math.floor((e.clientY - r.top) / flame.row);
  return flame.boxes.find(b => b.depth === depth && x >= b.x && x < b.x + b.w);
}
function showTip(e, node) {
  const tip = $("tip"), root = flame.root.total, word = measures[flame.by].word;
  tip.replaceChildren(make("b", "", nameOf(node.f)), make("div", "", `total ${word(node.total)} (${percent(node.total, root)}), self ${word(node.self)} (${percent(node.self, root)})`), make("div", "dim", `${group(node.calls)} calls on this path`));
  tip.hidden = false;
  tip.style.left = Math.min(e.clientX + 14, window.innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(e.clientY + 16, window.innerHeight - tip.offsetHeight - 8) + "px";
}
function setFlame(thread, by) {
  Object.assign(flame, { thread, by });
  flame.root = flame.top = treeOf(thread, by);
  drawFlame();
}
function startFlame() {
  fillThreads($("flamethread"), thread => setFlame(thread, flame.by));
  if (N.bytes) {
    for (const [value, title] of [["time", "by time"], ["bytes", "by bytes allocated"]]) {
      const option = make("option", "", title);
      option.value = value;
      $("flameby").append(option);
    }
    $("flameby").hidden = false;
    $("flameby").onchange = () => setFlame(flame.thread, $("flameby").value);
  }
  $("flamecanvas").onmousemove = e => { const b = boxAt(e); if (b) showTip(e, b.node); else $("tip").hidden = true; };
  $("flamecanvas").onmouseleave = () => { $("tip").hidden = true; };
  $("flamecanvas").onclick = e => { const b = boxAt(e); if (b) { flame.top = b.node; drawFlame(); } };
  $("flamecanvas").ondblclick = e => { const b = boxAt(e); if (b) { $("tip").hidden = true; pick(b.node.f, true); } };
  $("flamereset").onclick = () => { flame.top = flame.root; drawFlame(); };
  $("flamesearch").oninput = drawFlame;
  new ResizeObserver(drawFlame).observe($("flamebox"));
  setFlame(-1, "time");
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
    ...(N.bytes ? [{ title: "allocated", width: "90px", number: true, about: "allocated by the function itself, on this path", fill: text(n => bytes(n.bytes)) }] : []),
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

// ---- Threads, slow calls.

function startThreads() {
  const most = data.threads.reduce((a, t) => Math.max(a, timed ? t.busy_ns : t.calls), 0);
  const list = data.threads.map((t, i) => i).sort((a, b) => timed ? data.threads[b].busy_ns - data.threads[a].busy_ns : data.threads[b].calls - data.threads[a].calls);
  const of = i => data.threads[i];
  const parts = [
    { title: "thread", width: "minmax(120px, 1fr)", fill: text(i => of(i).name || "thread") },
    { title: "tid", width: "90px", number: true, fill: text(i => of(i).tid) },
    { title: "process", width: "90px", number: true, fill: text(i => of(i).pid) },
    { title: "calls", width: "140px", number: true, fill: text(i => group(of(i).calls)) },
  ];
  if (timed) parts.push({ title: "busy", width: "100px", number: true, about: "in timed functions", fill: text(i => time(of(i).busy_ns)) });
  parts.push({ title: timed ? "relative to the busiest" : "relative to the most calls", width: "2fr", fill: share(i => timed ? of(i).busy_ns : of(i).calls, most) });
  new Table($("threadtable"), parts, () => {}).set(list.length, i => list[i]);
}
function callers(node) {
  const names = [];
  for (let at = node < 0 ? -1 : N.parent[node]; at >= 0; at = N.parent[at]) names.push(nameOf(N.function[at]));
  return names.join(" \u2190 ");
}
function startSlow() {
  const list = data.slow.map((s, i) => i).sort((a, b) => data.slow[b][3] - data.slow[a][3]);
  const of = i => data.slow[i];
  new Table($("slowtable"), [
    { title: "took", width: "90px", number: true, fill(cell, i) { cell.textContent = time(of(i)[3]); cell.classList.add("hot"); } },
    { title: "at", width: "100px", number: true, fill: text(i => time(of(i)[2])) },
    { title: "thread", width: "150px", fill: text(i => { const t = data.threads[of(i)[1]]; return t ? `${t.name} (${t.tid})` : ""; }) },
    { title: "function", width: "minmax(160px, 1fr)", style: "name", fill: text(i => nameOf(of(i)[0])) },
    { title: "called from", width: "minmax(160px, 2fr)", style: "module", fill: text(i => callers(of(i)[4])) },
  ], () => {}, i => { if (of(i)[0] >= 0) pick(of(i)[0], true); }).set(list.length, i => list[i], () => "link");
}

function startBudget() {
  const seconds = ns => (ns / 1e9).toFixed(3) + " s", parts = [
    `${(100 * budget.share).toFixed(1)}% allowed, ${(100 * budget.taken).toFixed(2)}% taken of ${time(budget.cpu_ns)}`,
    `${budget.count_cost_ns.toFixed(2)} ns a counted call`,
    `timed calls ${time(budget.timing_ns)}`, `installing the hooks ${time(budget.start_ns)}`, `stopped ${plural(budget.stops, "time")}, ${time(budget.stopped_ns)} in all`];
  if (budget.changes_lost) parts.push(`${plural(budget.changes_lost, "change")} not recorded for lack of room`);
  if (budget.note) parts.unshift("THE BUDGET WAS NOT KEPT: " + budget.note);
  $("budgetfacts").textContent = parts.join("  \u00b7  ");
  $("budgetfacts").classList.toggle("hot", budget.note !== "");
  const of = i => budget.changes[i];
  new Table($("budgettable"), [
    { title: "at", width: "100px", number: true, fill: text(i => seconds(of(i).at_ns)) },
    { title: "function", width: "minmax(160px, 2fr)", style: "name", fill: text(i => nameOf(of(i).function)) },
    { title: "before", width: "120px", fill: text(i => of(i).from) },
    { title: "after", width: "120px", fill: text(i => of(i).to) },
    { title: "why", width: "minmax(160px, 1fr)", fill: text(i => whyOf(of(i))) },
  ], () => {}, i => { if (of(i).function >= 0) pick(of(i).function, true); }).set(budget.changes.length, i => i, () => "link");
}

// ---- The page.

const tabs = [["functions", "Functions"]];
if (timed && N.parent.length) tabs.push(["flame", "Flame graph"], ["tree", "Call tree"]);
tabs.push(["threads", `Threads (${data.threads.length})`]);
if (data.slow.length) tabs.push(["slow", `Slow calls (${data.slow.length})`]);
if (budget) tabs.push(["budget", `Budget (${budget.changes.length})`]);
const started = {};
function showTab(id) {
  for (const [name] of tabs) {
    $(name).hidden = name !== id;
    $("tab-" + name).setAttribute("aria-selected", name === id);
  }
  if (!started[id]) {
    started[id] = true;
    ({ flame: startFlame, tree: startTree, threads: startThreads, slow: startSlow, budget: startBudget, functions() {} })[id]();
  }
  if (id === "flame") drawFlame();
}
for (const [id, title] of tabs) {
  const tab = make("button", "", title);
  tab.id = "tab-" + id;
  tab.type = "button";
  tab.setAttribute("role", "tab");
  tab.onclick = () => showTab(id);
  $("tabs").append(tab);
}

onTheme = () => { if (started.flame) drawFlame(); };
setTheme();

document.title = data.command + " \u2013 hotfn";
$("command").textContent = data.command;
$("command").title = data.command;
const facts = [[data.state, ""], [data.wall_ns ? time(data.wall_ns) : "", " long"], [group(allCalls), allCalls === 1 ? " call" : " calls"], [timed ? time(busy) : "", " in timed functions"]].filter(f => f[0]);
facts.forEach(([bold, rest], i) => $("facts").append(i ? ", " : "", make("b", "", bold), rest));
$("notes").textContent = data.notes.join("  \u00b7  ");
let typing;
$("search").oninput = () => { clearTimeout(typing); typing = setTimeout(listFunctions, F.name.length > 5000 ? 120 : 0); };
$("called").onchange = listFunctions;
document.addEventListener("keydown", e => {
  if (e.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) { e.preventDefault(); showTab("functions"); $("search").focus(); }
});
showTab("functions");
listFunctions();
})();
