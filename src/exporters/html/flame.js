// SPDX-License-Identifier: MIT
// The flame graph.

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
  if (readNodes().bytes) {
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
