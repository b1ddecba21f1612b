// SPDX-License-Identifier: MIT
// The flame graph.  The root is at the top (an icicle graph); below it are callees, or callers.

const flame = { root: null, top: null, boxes: [], row: 20, thread: -1, by: "time", way: "callees", of: -1, folded: false, zoom: "" };

// ---- Colours: a hue for each of the modules with most of the weight, one for all others.

const HUES = [28, 205, 130, 345, 52, 180, 92];
let legend = []; // { module, own }, heaviest first
const hueOf = new Map();
function chooseHues() {
  const N = readNodes(), own = ownWeights(flame.by), sums = new Map();
  for (let i = 0; i < own.length; i++) {
    nameOf(N.function[i]); // reads the functions
    const module = F.module[N.function[i]];
    sums.set(module, (sums.get(module) || 0) + own[i]);
  }
  legend = [...sums].map(([module, sum]) => ({ module, sum })).sort((a, b) => b.sum - a.sum);
  if (!legend.length) legend = data.modules.map((_, module) => ({ module, sum: 0 }));
  hueOf.clear();
  legend.slice(0, HUES.length).forEach((entry, i) => hueOf.set(entry.module, HUES[i]));
}
// Functions of one scope (namespace or class) have the same shade of their module's colour.
function shade(f) {
  const name = nameOf(f).split(/[(<]/)[0].replace(/::[^:]*$/, "");
  let h = 2166136261;
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 16777619);
  h = Math.imul(h ^ h >>> 15, 0x2c1b3c6d);
  return ((h ^ h >>> 13) >>> 0) % 15 - 7;
}
function colour(f, pale, dark) {
  const hue = hueOf.get(F.module[f]), shift = shade(f);
  return `hsl(${(hue || 0) + shift} ${hue === undefined ? 8 : pale ? 22 : dark ? 50 : 80}% ${(dark ? 36 : 70) + shift / 2}%)`;
}
const overColour = dark => dark ? "#39414b" : "#d9dee5", hitColour = dark => dark ? "#a855f7" : "#c084fc";
function drawLegend(dark, isSearching) {
  const entries = legend.slice(0, HUES.length).map(({ module }) => [`hsl(${hueOf.get(module)} ${dark ? 50 : 80}% ${dark ? 36 : 70}%)`, data.modules[module]]);
  if (legend.length > HUES.length) entries.push([`hsl(0 8% ${dark ? 36 : 70}%)`, "other modules"]);
  entries.push([overColour(dark), "above the box that is zoomed in"]);
  if (isSearching) entries.push([hitColour(dark), "matches"]);
  $("flamelegend").replaceChildren(...entries.map(([background, name]) => {
    const entry = make("span"), swatch = make("i");
    swatch.style.background = background;
    entry.append(swatch, name);
    return entry;
  }));
}

// ---- Drawing.

const matchOf = word => { // a cached test of a function: does its name contain the word?
  const known = new Map();
  return f => {
    if (!known.has(f)) known.set(f, f >= 0 && nameOf(f).toLowerCase().includes(word));
    return known.get(f);
  };
};
// The weight at and below node that lies in matching boxes or below them; each part counts once.
function sumMatches(node, matches) {
  let sum = 0;
  const todo = [node];
  while (todo.length) {
    const at = todo.pop();
    if (matches(at.f)) sum += at.total;
    else if (at.total * 5000 > flame.root.total) for (const kid of kidsOf(at)) todo.push(kid);
  }
  return sum;
}
function placeBoxes(width) {
  const boxes = [], path = [];
  for (let n = flame.top.up; n; n = n.up) path.unshift(n);
  path.forEach((node, depth) => boxes.push({ node, x: 0, w: width, depth, over: true }));
  const todo = [[flame.top, 0, width, path.length]];
  while (todo.length) {
    const [node, x, w, depth] = todo.pop();
    boxes.push({ node, x, w, depth });
    let at = x;
    const whole = node.total || 1;
    for (const kid of kidsOf(node)) {
      const kidWidth = w * kid.total / whole;
      if (kidWidth < .4) break;
      todo.push([kid, at, Math.min(kidWidth, x + w - at), depth + 1]);
      at += kidWidth;
    }
  }
  return boxes;
}
const labelOf = node => node.f >= 0 ? nameOf(node.f) : `all (${measures[flame.by].word(node.total)})`;
function drawBox(g, b, dark, hit, isSearching, letterWidth) {
  const root = b.node.f < 0;
  g.fillStyle = b.over || root ? overColour(dark) : hit ? hitColour(dark) : colour(b.node.f, isSearching, dark);
  g.fillRect(b.x, b.depth * flame.row + 1, Math.max(.6, b.w - 1), flame.row - 1);
  const letters = Math.floor((b.w - 8) / letterWidth);
  if (letters > 2) {
    const name = fold(labelOf(b.node), letters);
    g.fillStyle = dark ? "#f4f5f7" : "#23180d";
    g.fillText(name.length > letters ? name.slice(0, letters - 1) + "\u2026" : name, b.x + 4, b.depth * flame.row + flame.row / 2 + 1);
  }
}
function drawFlame() {
  const canvas = $("flamecanvas"), width = $("flamebox").clientWidth, ratio = window.devicePixelRatio || 1;
  if (!flame.top || !width) return;
  const dark = document.documentElement.dataset.theme === "dark", word = $("flamesearch").value.toLowerCase();
  const boxes = placeBoxes(width), matches = matchOf(word);
  const deepest = boxes.reduce((most, b) => Math.max(most, b.depth), 0);
  const height = Math.max((deepest + 1) * flame.row + 8, 60);
  canvas.width = width * ratio;
  canvas.height = Math.min(height, 30000 / ratio) * ratio;
  canvas.style.height = height + "px";
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  g.font = "12px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
  g.textBaseline = "middle";
  const letterWidth = g.measureText("m").width;
  for (const b of boxes) drawBox(g, b, dark, word && matches(b.node.f), word !== "", letterWidth);
  flame.boxes = boxes;
  $("flamefound").textContent = word
    ? `${percent(sumMatches(flame.top, matches), flame.top.total) || "0.0%"} of ${flame.top.f < 0 ? "all" : "this box"} matches`
    : "click a box to zoom in, hover to read it";
  drawLegend(dark, word !== "");
}

// ---- The pointer.

function boxAt(e) {
  const r = $("flamecanvas").getBoundingClientRect(), x = e.clientX - r.left, depth = Math.floor((e.clientY - r.top) / flame.row);
  return flame.boxes.find(b => b.depth === depth && x >= b.x && x < b.x + b.w);
}
function placeTip(e, ...lines) {
  const tip = $("tip");
  tip.replaceChildren(...lines);
  tip.hidden = false;
  tip.style.left = Math.max(4, Math.min(e.clientX + 14, window.innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.min(e.clientY + 16, window.innerHeight - tip.offsetHeight - 8) + "px";
}
function showTip(e, node) {
  const root = flame.root.total, word = measures[flame.by].word, lines = [make("b", "", labelOf(node))];
  if (node.f < 0) lines.push(make("div", "", flame.of < 0 ? "everything that was timed" : "all calls of " + nameOf(flame.of)));
  else if (flame.way === "callees") lines.push(make("div", "", `total ${word(node.total)} (${percent(node.total, root)}), self ${word(node.self)} (${percent(node.self, root)})`));
  else lines.push(make("div", "", `${word(node.total)} (${percent(node.total, root)}) in calls from here`));
  if (node.f >= 0) lines.push(make("div", "dim", `${group(node.calls)} calls on this path`));
  placeTip(e, ...lines);
}

// ---- The choices.

// The box that is zoomed in, for the link: its position among the children of each box above it.
function zoomOf(node) {
  const path = [];
  for (let n = node; n.up; n = n.up) path.unshift(kidsOf(n.up).indexOf(n));
  return path.join(".");
}
function boxOfZoom(zoom) {
  let n = flame.root;
  for (const position of zoom ? zoom.split(".") : []) {
    if (!kidsOf(n)[position]) break;
    n = kidsOf(n)[position];
  }
  return n;
}
function zoomFlame(node) {
  Object.assign(flame, { top: node, zoom: zoomOf(node) });
  drawFlame();
  setLink({ zoom: flame.zoom });
}
function setFlame(changes) {
  if (Object.keys(changes).length) flame.zoom = ""; // another tree
  Object.assign(flame, changes);
  if (flame.by !== "bytes" || !readNodes().bytes) flame.by = "time";
  if (flame.way !== "callers") Object.assign(flame, { way: "callees", of: -1 });
  const { thread, by, folded, way, of } = flame;
  flame.root = way === "callers" ? callersTree(thread, by, folded, of) : treeOf(thread, by, folded);
  flame.top = boxOfZoom(flame.zoom);
  chooseHues();
  $("flamethread").value = thread;
  $("flameby").value = by;
  $("flameway").value = way;
  $("flamefold").checked = folded;
  $("flameof").hidden = way !== "callers" || of < 0;
  $("flameof").textContent = of < 0 ? "" : `of ${fold(nameOf(of), 40)} \u00d7`;
  drawFlame();
  setLink({ view: "flame", thread: thread < 0 ? "" : thread, by: by === "time" ? "" : by, way: way === "callees" ? "" : way, of: placeOf(of), fold: folded ? "1" : "", zoom: flame.zoom });
}
function startFlame() {
  fillThreads($("flamethread"), thread => setFlame({ thread }));
  for (const [value, title] of [["time", "by time"], ["bytes", "by bytes allocated"]]) {
    const option = make("option", "", title);
    option.value = value;
    $("flameby").append(option);
  }
  $("flameby").hidden = !readNodes().bytes;
  $("flameby").onchange = () => setFlame({ by: $("flameby").value });
  $("flameway").onchange = () => setFlame({ way: $("flameway").value, of: -1 });
  $("flameof").onclick = () => setFlame({ of: -1 });
  $("flamefold").onchange = () => setFlame({ folded: $("flamefold").checked });
  $("flamecanvas").onmousemove = e => { const b = boxAt(e); if (b) showTip(e, b.node); else $("tip").hidden = true; };
  $("flamecanvas").onmouseleave = () => { $("tip").hidden = true; };
  $("flamecanvas").onclick = e => { const b = boxAt(e); if (b) zoomFlame(b.node); };
  $("flamecanvas").ondblclick = e => { const b = boxAt(e); if (b && b.node.f >= 0) { $("tip").hidden = true; pick(b.node.f, true); } };
  $("flamereset").onclick = () => zoomFlame(flame.root);
  $("flamesearch").oninput = () => { drawFlame(); setLink({ mark: $("flamesearch").value }, true); };
  new ResizeObserver(drawFlame).observe($("flamebox"));
  setFlame({});
}
