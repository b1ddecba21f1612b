// SPDX-License-Identifier: MIT
// The table of functions and the view of one function.

// ---- Functions.

const busy = data.busy_ns, allCalls = data.calls, waits = data.waited_ns > data.busy_ns / 10;
const byRank = timed ? "self" : "calls"; // functions are numbered in this order
const order = { key: byRank, down: true };
let picked = -1, shown = [];
const columns = [
  { title: "function", key: "name", width: "minmax(160px, 4fr)", style: "name", fill: text(f => nameOf(f) + (unreturned(f) && ` (${unreturned(f)})`)) },
  { title: "module", key: "module", dropOrder: 4, width: "minmax(96px, 1fr)", style: "module", fill: text(f => data.modules[F.module[f]]) },
  { title: "calls", key: "calls", dropOrder: 9, width: "110px", number: true, fill: text(f => F.calls[f] === null ? F.why[f] : callsOf(f)) },
];
if (timed) columns.push(
  { title: "total", key: "total", dropOrder: 8, width: "84px", number: true, about: "time including callees", fill: text(f => estimate(f, F.total[f], F.total_error[f])) },
  ...waits ? [{ title: "waited", key: "waited", dropOrder: 6, width: "84px", number: true, about: "part of the total in which the thread was not on a processor", fill: text(f => F.waited[f] ? time(F.waited[f]) : "") }] : [],
  { title: "self", key: "self", width: "84px", number: true, about: waits ? "processor time without callees" : "time without callees", fill: text(f => estimate(f, F.self[f], F.self_error[f])) },
  { title: "self %", dropOrder: 5, width: "74px", number: true, about: "of the threads' busy time", fill: share(f => F.self[f] || 0, busy) },
  { title: "p50", key: "p50", dropOrder: 1, width: "76px", number: true, fill: text(f => percentile(F.p50[f])) },
  { title: "p99", key: "p99", dropOrder: 2, width: "76px", number: true, fill: text(f => percentile(F.p99[f])) },
  { title: "max", key: "max", dropOrder: 3, width: "76px", number: true, fill(cell, f) {
    cell.textContent = F.max[f] ? time(F.max[f]) : "";
    if (data.slow_ns && F.max[f] >= data.slow_ns) cell.classList.add("hot");
  } });
const allocOf = (f, i) => F.alloc[f] ? F.alloc[f][i] : 0; // 0 to 3: with callees, 4 and 5: by the function itself
if (F.alloc) {
  columns.push(
    { title: "allocated", key: "allocated", dropOrder: 7, width: "92px", number: true, about: "allocated by the function itself", fill: text(f => bytes(allocOf(f, 4))) },
    { title: "with callees", key: "below", dropOrder: 6, width: "92px", number: true, about: "allocated by the function and its callees", fill: text(f => bytes(allocOf(f, 0))) });
}
if (!timed) columns.push(
  { title: "share", width: "90px", number: true, fill: share(f => F.calls[f] || 0, allCalls) });
const table = new Table($("table"), columns, sortBy, f => pick(f));

// Below 0: it is only known to be shorter.
function percentile(ns) {
  return !ns ? "" : ns < 0 ? "<" + time(-ns) : time(ns);
}

const collator = new Intl.Collator("en");
function compare(a, b) {
  const key = order.key, sign = order.down ? -1 : 1;
  if (key === "name") return sign * collator.compare(F.name[a], F.name[b]) || a - b;
  if (key === "module") return sign * collator.compare(data.modules[F.module[a]], data.modules[F.module[b]]) || a - b;
  const x = key === "allocated" ? allocOf(a, 4) : key === "below" ? allocOf(a, 0) : F[key][a];
  const y = key === "allocated" ? allocOf(b, 4) : key === "below" ? allocOf(b, 0) : F[key][b];
  if (x === null || y === null) return (x === null) - (y === null) || a - b; // functions without a value come last
  return sign * (Math.abs(x) - Math.abs(y)) || a - b;
}
// The texts that are searched, in lower case; made once, because a record may have 250,000 functions.
let hay = [];
function makeHay() {
  const modules = data.modules.map(m => " " + m.toLowerCase());
  for (let f = hay.length; f < F.name.length; f++) hay.push(F.name[f].toLowerCase() + modules[F.module[f]]);
}
function chooseFunctions(words, called) {
  const end = called ? data.called_count : FUNCTIONS, found = []; // functions that were called come first
  if (words.length) {
    needFunctions();
    makeHay();
  }
  for (let f = 0; f < end; f++) if (!words.length || words.every(w => hay[f].includes(w))) found.push(f);
  return found;
}
function listFunctions() {
  shown = chooseFunctions($("search").value.toLowerCase().split(/\s+/).filter(w => w), $("called").checked);
  if (order.key !== byRank || !order.down) {
    needFunctions();
    shown.sort(compare);
  }
  $("found").textContent = group(shown.length) + " of " + group(FUNCTIONS) + " functions";
  table.sorted(order.key, order.down);
  table.set(shown.length, rowFunction, f => "link" + (f === picked ? " picked" : "") + (F.calls[f] ? "" : " never"));
}
function rowFunction(i) {
  if (shown[i] >= F.name.length) needFunctions();
  return shown[i];
}
function sortBy(key) {
  const words = key === "name" || key === "module";
  order.down = order.key === key ? !order.down : !words;
  order.key = key;
  table.scroll.scrollTop = 0;
  listFunctions();
  setLink({ sort: order.key === byRank && order.down ? "" : order.key, up: order.down ? "" : "1" });
}

// ---- One function.

function bucketBegin(b) {
  const shift = b < 64 ? 0 : Math.floor(b / 32) - 1;
  return (b - shift * 32) * Math.pow(2, shift);
}
function histogram(f) {
  const pairs = readPart("links").histograms[f];
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
  const found = [], E = readEdges();
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
function closeDetail() {
  picked = -1;
  $("detail").replaceChildren();
  table.draw();
  setLink({ at: "" });
}
function pick(f, scroll) {
  if (f >= F.name.length) needFunctions();
  picked = f;
  const close = make("button", "close", "\u00d7"), list = make("dl");
  close.type = "button";
  close.setAttribute("aria-label", "close");
  close.onclick = closeDetail;
  fact(list, "calls", callsOf(f));
  if (timed && F.total[f] !== null) {
    fact(list, "total", estimate(f, F.total[f], F.total_error[f]));
    if (waits) fact(list, "of these, waited", time(F.waited[f]));
    fact(list, "self", estimate(f, F.self[f], F.self_error[f]));
    fact(list, "total, share of busy time", percent(F.total[f], busy));
    fact(list, "self, share of busy time", percent(F.self[f], busy));
    fact(list, "mean", F.calls[f] ? time(F.total[f] / F.calls[f]) : "");
    fact(list, "p50", percentile(F.p50[f]));
    fact(list, "p90", percentile(F.p90[f]));
    fact(list, "p99", percentile(F.p99[f]));
    fact(list, "max", F.max[f] ? time(F.max[f]) : "");
    if (F.alloc) {
      fact(list, "allocated by itself", bytes(allocOf(f, 4)) + " in " + group(allocOf(f, 5)));
      fact(list, "allocated with callees", bytes(allocOf(f, 0)) + " in " + group(allocOf(f, 1)));
      fact(list, "freed with callees", bytes(allocOf(f, 2)) + " in " + group(allocOf(f, 3)));
    }
  }
  const callers = make("button", "", "callers in the flame graph");
  callers.type = "button";
  callers.onclick = () => {
    Object.assign(flame, { way: "callers", of: f, zoom: "" });
    openTab("flame");
  };
  const parts = [close, make("h2", "", nameOf(f)), make("div", "dim", data.modules[F.module[f]] + "+0x" + F.rva[f].toString(16)), list];
  if (F.line[f]) parts.splice(3, 0, make("div", "source", F.line[f]));
  if (F.why[f]) parts.push(make("p", "dim", F.why[f]));
  if (unreturned(f)) parts.push(make("p", "dim", unreturned(f)));
  for (const c of changesOf(f)) parts.push(make("p", "dim", `at ${time(c.at_ns)}: ${c.from} \u2192 ${c.to}, ${whyOf(c)}`));
  const bars = timed && histogram(f);
  if (bars) parts.push(make("h3", "", "how long calls took (log scales)"), bars);
  const edges = timed && readEdges();
  if (timed) parts.push(...neighbours("called by (calls, total)", edges.callee, edges.caller, f), ...neighbours("calls (calls, total)", edges.caller, edges.callee, f));
  if (data.node_count && edges.callee.includes(f)) parts.push(callers);
  $("detail").replaceChildren(...parts);
  showTab("functions");
  setLink({ at: placeOf(f), view: "" });
  const at = shown.indexOf(f);
  if (scroll && at >= 0) table.scroll.scrollTop = Math.max(0, at * ROW - 120);
  table.draw();
}

// ---- The changes that were made to keep the budget.

const budget = data.budget;
const changesOf = f => budget ? budget.changes.filter(c => c.function === f) : [];
const whyOf = c => c.why === "over-budget" ? `${plural(c.calls_per_second, "call")} a second ${c.to === "unhooked" ? "took" : "would take"} ${(100 * c.cost).toFixed(1)}%` : "tried again";
