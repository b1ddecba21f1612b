// SPDX-License-Identifier: MIT
// The page of the collector, after common.js of the report's page.  What is shown is in the address behind
// "#", so that each view has a link.  Names come from strangers: they are only ever assigned to textContent.
(() => {
const PAGE = 200; // rows of a request
const METRICS = [["calls", "calls"], ["self", "self time"], ["total", "total time"]];
const AGGREGATES = [["sum", "sum"], ["average", "average per client"], ["average_called", "average per caller"],
  ["median", "median"], ["p95", "95th percentile"], ["max", "maximum"]];
const KINDS = [["", "all changes"], ["new", "new"], ["gone", "gone"], ["hotter", "hotter"], ["cooler", "cooler"], ["same", "unchanged"]];
const VIEWS = [["hot", "Hot functions"], ["diff", "Diff"], ["live", "Live"], ["clients", "Clients"], ["labels", "Labels"], ["builds", "Builds"], ["upload", "Upload"]];

// ---- The address, the token, requests.

let at = new URLSearchParams(location.hash.slice(1));
if (at.has("token")) {
  sessionStorage.setItem("hotfn-token", at.get("token"));
  at.delete("token");
  history.replaceState(null, "", "#" + at);
}
const view = () => at.get("view") || "hot";
function go(changes) {
  for (const [key, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === undefined) at.delete(key);
    else at.set(key, value);
  }
  history.pushState(null, "", "#" + at);
  show();
}
window.onpopstate = () => { at = new URLSearchParams(location.hash.slice(1)); show(); };

function report(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}
function authorization() {
  const token = sessionStorage.getItem("hotfn-token");
  return token ? { Authorization: "Bearer " + token } : {};
}
const address = (name, parameters) => "/api/v1/" + name + "?" + new URLSearchParams(
  Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined));
async function ask(name, parameters = {}) {
  let answer;
  try {
    answer = await fetch(address(name, parameters), { headers: authorization() });
  } catch {
    throw new Error("the collector does not answer");
  }
  const body = await answer.json();
  if (answer.status === 401) $("login").hidden = false;
  if (!answer.ok) throw new Error(answer.status === 401 && !authorization().Authorization ? "" : body.error);
  return body;
}
$("login").onsubmit = e => {
  e.preventDefault();
  sessionStorage.setItem("hotfn-token", $("token").value.trim());
  $("login").hidden = true;
  start();
};

// ---- The choices that all views have in common.

const selection = () => ({ app: at.get("app"), build: at.get("build"), label: at.get("label"), client: at.get("client") });
const chosen = (key, list) => list.some(([value]) => value === at.get(key)) ? at.get(key) : list[0][0];
function fill(select, list, value) {
  select.replaceChildren(...list.map(([key, title]) => {
    const option = make("option", "", title);
    option.value = key;
    return option;
  }));
  select.value = value;
}
const shortImage = b => b.build.replace(/^\d+-/, "").slice(0, 12);
// Two images may have one version.
const nameOf = (b, all) => b.version ? b.version + (all.filter(x => x.version === b.version).length > 1 ? " " + shortImage(b) : "") : shortImage(b);
async function fillChoices() {
  const apps = (await ask("apps")).apps.map(a => [a.name, a.name]);
  $("choices").hidden = !apps.length;
  if (!apps.length) return false;
  if (!at.get("app")) at.set("app", apps[0][0]);
  fill($("app"), apps, at.get("app"));
  const builds = (await ask("builds", { app: at.get("app") })).builds;
  if (builds.length && !at.get("build")) at.set("build", builds[0].build);
  const list = builds.map(b => [b.build, `${nameOf(b, builds)} (${plural(b.clients, "client")})`]);
  fill($("build"), list, at.get("build"));
  fill($("base"), [["", "none"], ...list.filter(([build]) => build !== at.get("build"))], at.get("base") || "");
  const labels = (await ask("labels", { app: at.get("app"), build: at.get("build"), limit: 1000 })).labels.map(l => l.key + "=" + l.value);
  if (at.get("label") && !labels.includes(at.get("label"))) labels.push(at.get("label"));
  fill($("label"), [["", "all"], ...labels.map(l => [l, l])], at.get("label") || "");
  $("client").hidden = !at.get("client");
  $("client").textContent = `client ${(at.get("client") || "").slice(0, 8)} \u00d7`;
  return builds.length > 0;
}
$("app").onchange = () => go({ app: $("app").value, build: "", base: "", label: "", client: "", function: "", view: "" });
$("build").onchange = () => go({ build: $("build").value, base: $("base").value === $("build").value ? "" : $("base").value, function: "", view: view() === "function" ? "hot" : view() });
$("base").onchange = () => go({ base: $("base").value });
$("label").onchange = () => go({ label: $("label").value });
$("client").onclick = () => go({ client: "" });
$("client").title = "show all clients";

// ---- A table that has a sentence in its place while it is empty.

class List extends Table {
  constructor(box, ...rest) {
    super(box, ...rest);
    this.box = box;
    this.none = make("p", "dim none");
    box.after(this.none);
  }
  set(count, get, classOf, none = "") {
    this.box.hidden = !count;
    this.none.hidden = !!count;
    this.none.textContent = none;
    super.set(count, get, classOf);
  }
}

// ---- A list whose rows are asked for when they become visible.

class Pages {
  constructor(table, classOf) { Object.assign(this, { table, classOf, asked: 0 }); }
  async set(load, onFirst, none) {
    const turn = ++this.asked, first = await load(0);
    if (turn !== this.asked) return; // a later question was answered first
    this.pages = new Map([[0, first.rows]]);
    this.load = load;
    onFirst(first);
    this.table.set(first.found, i => this.get(i, turn), this.classOf, none);
  }
  get(i, turn) {
    const number = Math.floor(i / PAGE), page = this.pages.get(number);
    if (page) return page[i % PAGE] || {};
    if (page === undefined) {
      this.pages.set(number, null);
      this.load(number * PAGE).then(answer => {
        if (turn !== this.asked) return;
        this.pages.set(number, answer.rows);
        this.table.draw();
      }, problem => { this.pages.delete(number); report(problem.message); });
    }
    return {};
  }
}
const shown = get => text(row => row.name === undefined ? "" : get(row));
const isTime = () => chosen("metric", METRICS) !== "calls";
const amount = n => n === null || n === undefined ? "" : isTime() ? time(n) : n < 100 && n % 1 ? n.toFixed(2) : group(n);

// ---- Hot functions.

let hot = { clients: 0, whole: 0 };
// Typing and paging ask for the rows of the moment that the table shows.
let snapshot = "";
const hotColumns = [
  { title: "rank", width: "52px", number: true, fill: shown(r => r.rank) },
  { title: "function", key: "name", width: "minmax(150px, 4fr)", style: "name", fill: shown(r => r.name) },
  { title: "module", key: "module", dropOrder: 6, width: "minmax(90px, 1fr)", style: "module", fill: shown(r => r.module) },
  { title: "calls", key: "calls", dropOrder: 9, width: "112px", number: true, fill: shown(r => r.calls === null ? "does not fit" : group(r.calls)) },
  { title: "calls/client", dropOrder: 4, width: "100px", number: true, fill: shown(r => r.calls === null ? "" : group(r.calls_per_client)) },
  { title: "self time", key: "self", dropOrder: 5, width: "80px", number: true, when: () => hot.timed_records > 0, about: "without callees, sum over all clients", fill: shown(r => r.self_ns === null ? "" : time(r.self_ns)) },
  { title: "value", key: "value", width: "100px", number: true, about: "what the table shows", fill: shown(r => r.overflow ? "does not fit" : amount(r.value)) },
  { title: "share", dropOrder: 3, width: "80px", number: true, fill(cell, r) { if (r.name !== undefined) share(x => x.share, 1)(cell, r); } },
  { title: "clients", key: "clients", dropOrder: 7, width: "84px", number: true, about: "that called it", fill: shown(r => `${r.clients} of ${hot.clients}`) },
  { title: "change", key: "change", dropOrder: 8, width: "76px", number: true, about: "of the value, against the other build", when: () => !!at.get("base"), fill(cell, r) {
    if (r.base_value === undefined || r.name === undefined) return;
    const change = r.base_value ? r.value / r.base_value - 1 : Infinity;
    cell.textContent = change === Infinity ? "new" : (change > 0 ? "+" : "") + (100 * change).toFixed(1) + "%";
    if (change > 0.1) cell.classList.add("up");
  } },
];
const hotTable = new List($("hottable"), hotColumns, key => {
  const down = at.get("sort") === key ? at.get("direction") !== "down" : !["name", "module"].includes(key);
  go({ sort: key, direction: down ? "down" : "up" });
}, row => { if (row.name !== undefined) go({ view: "function", function: row.function }); });
const hotPages = new Pages(hotTable, () => "link");
const hotQuestion = () => ({ ...selection(), base: at.get("base"), metric: chosen("metric", METRICS), agg: chosen("agg", AGGREGATES),
  sort: at.get("sort"), direction: at.get("direction"), q: at.get("q") });
// What ClickHouse did not return.
function missingText(m) {
  if (!m) return "";
  const parts = [];
  if (m.rows) parts.push(plural(m.rows, "row"));
  if (m.waiting_records) parts.push(`${plural(m.waiting_records, "record")} waiting to be moved`);
  return `; missing: ${parts.join(", ") || "nothing yet"}${m.servers ? ` (no answer from ${m.servers})` : ""}`;
}
async function showHot() {
  fill($("metric"), METRICS, chosen("metric", METRICS));
  fill($("agg"), AGGREGATES, chosen("agg", AGGREGATES));
  if (document.activeElement !== $("search")) $("search").value = at.get("q") || "";
  const sort = at.get("sort") || "value";
  await hotPages.set(offset => ask("hot", { ...hotQuestion(), snapshot, offset, limit: PAGE }), first => {
    hot = first;
    snapshot = first.snapshot;
    $("facts").replaceChildren(make("b", "", plural(first.clients, "client")), ", ", make("b", "", plural(first.records, "record")), ", ",
      make("b", "", group(first.called)), ` of ${group(first.functions)} functions called` + (first.timed_records ? `, ${plural(first.timed_records, "timed record")}` : ""), missingText(first.missing));
    $("found").textContent = `${group(first.found)} of ${group(first.called)} functions`;
    hotTable.sorted(sort, at.get("direction") ? at.get("direction") === "down" : !["name", "module"].includes(sort));
  }, at.get("q") ? "No function that was called matches the search." : "No function was called in this selection.");
}
let typing;
function onType(input, key) {
  input.oninput = () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      if (input.value) at.set(key, input.value); else at.delete(key);
      history.replaceState(null, "", "#" + at);
      showView();
    }, 80);
  };
}
onType($("search"), "q");
$("metric").onchange = () => go({ metric: $("metric").value });
$("agg").onchange = () => go({ agg: $("agg").value });
async function download(name, parameters) {
  const answer = await fetch(address(name, parameters), { headers: authorization() });
  if (!answer.ok) return report((await answer.json()).error);
  const link = make("a"), file = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition"));
  link.href = URL.createObjectURL(await answer.blob());
  link.download = file ? file[1] : "hotfn";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  return undefined;
}
for (const button of document.querySelectorAll("[data-format]")) {
  button.onclick = () => download("export", { ...hotQuestion(), snapshot, format: button.dataset.format });
}

// ---- One function.

const SVG = "http://www.w3.org/2000/svg";
function draw(label, width, height, bars) {
  const svg = document.createElementNS(SVG, "svg"), most = Math.max(1e-9, ...bars.map(b => b.value));
  svg.setAttribute("viewBox", `0 0 ${width} ${height + 18}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  const put = (tag, attributes, content) => {
    const e = document.createElementNS(SVG, tag);
    for (const key in attributes) e.setAttribute(key, attributes[key]);
    if (content !== undefined) e.textContent = content;
    svg.append(e);
    return e;
  };
  const step = width / Math.max(bars.length, 1), every = Math.ceil(bars.length / 10);
  bars.forEach((b, i) => {
    const tall = b.value > 0 ? Math.max(2, height * b.value / most) : 0;
    const title = document.createElementNS(SVG, "title");
    title.textContent = b.about;
    put("rect", { x: i * step + 1, y: height - tall, width: Math.max(1, Math.min(60, step - 2)), height: tall, rx: 1 }).append(title);
    if (i % every === 0) put("text", { x: i * step + 1, y: height + 13 }, b.title);
  });
  return svg;
}
// Bars of equal ratio from the smallest value to the largest.  Before them are the clients that did not call it, and
// those whose time is too short to be known, which is 0.
function histogram(f) {
  const values = f.values.filter(v => v > 0), unknown = f.values.length - values.length;
  const low = values.length ? Math.min(...values) : 1, high = Math.max(...values, low), count = high > low ? 16 : 1;
  const bars = Array.from({ length: count }, (_, i) => ({ value: 0, from: low * Math.pow(high / low, i / count), to: low * Math.pow(high / low, (i + 1) / count) }));
  for (const v of values) bars[count === 1 ? 0 : Math.min(count - 1, Math.floor(Math.log(v / low) / Math.log(high / low) * count))].value++;
  for (const b of bars) {
    b.title = amount(b.from);
    b.about = `${plural(b.value, "client")} with ${amount(b.from)} to ${amount(b.to)}`;
  }
  const none = f.of_clients - f.called_by;
  const first = [{ value: none, title: "none", about: `${plural(none, "client")} without a call` }];
  if (unknown) first.push({ value: unknown, title: "short", about: `${plural(unknown, "client")} with times too short to be known` });
  return [...first, ...bars];
}
function listButtons(title, rows) {
  const box = make("div"), list = make("div", "list");
  for (const [name, value, onClick] of rows) {
    const button = make("button");
    button.type = "button";
    button.append(make("span", "name", fold(name, 90)), make("span", "number", value));
    button.title = name;
    if (onClick) button.onclick = onClick; else button.disabled = true;
    list.append(button);
  }
  box.append(make("h3", "", title), rows.length ? list : make("p", "dim", "none is known"));
  return box;
}
async function showFunction() {
  const f = await ask("function", { ...selection(), metric: chosen("metric", METRICS), function: at.get("function") });
  const facts = make("dl"), page = $("functionpage"), sum = f.values.reduce((a, b) => a + b, 0), columns = make("div", "columns");
  for (const [name, value] of [["module", f.module], ["offset", "0x" + f.rva.toString(16)], ["bytes", group(f.bytes)], ["clients", `${f.called_by} of ${f.of_clients}`],
    [f.metric === "calls" ? "calls" : f.metric + " time", amount(sum)], ["per client", amount(f.of_clients ? sum / f.of_clients : 0)]]) {
    const box = make("div");
    box.append(make("dt", "", name), make("dd", "", value));
    facts.append(box);
  }
  const other = e => e.function === null ? null : () => go({ function: e.function });
  columns.append(listButtons(`Callers (${f.callers.length})`, f.callers.map(e => [e.name, group(e.calls), other(e)])),
    listButtons(`Callees (${f.callees.length})`, f.callees.map(e => [e.name, group(e.calls), other(e)])),
    listButtons("Clients, largest first", f.clients.slice(0, 20).map(c => [c.client, amount(c.value), () => go({ client: c.client, view: "hot" })])));
  page.replaceChildren(make("h2", "", f.name), facts, make("h3", "", "Distribution over clients"), draw("distribution over clients", 720, 110, histogram(f)),
    make("h3", "", "Average per client, by build"), draw("trend over builds", 720, 90, f.trend.map(t => ({ value: t.average, title: nameOf(t, f.trend).slice(0, Math.max(8, Math.floor(110 / f.trend.length))),
      about: `${nameOf(t, f.trend)}: ${amount(t.average)} for each of ${plural(t.clients, "client")}` }))), columns);
}

// ---- Diff, clients, labels, builds.

const ratioOf = r => !r.base_value ? "new" : !r.head_value ? "gone" : (r.head_value > r.base_value ? "+" : "") + (100 * (r.head_value / r.base_value - 1)).toFixed(1) + "%";
const diffTable = new List($("difftable"), [
  { title: "change", width: "84px", number: true, fill(cell, r) { if (r.name === undefined) return; cell.textContent = ratioOf(r); if (r.head_value > r.base_value) cell.classList.add("up"); } },
  { title: "function", width: "minmax(180px, 4fr)", style: "name", fill: shown(r => r.name) },
  { title: "module", dropOrder: 2, width: "minmax(90px, 1fr)", style: "module", fill: shown(r => r.module) },
  { title: "before", dropOrder: 3, width: "110px", number: true, about: "per client, in the other build", fill: shown(r => amount(r.base_value)) },
  { title: "now", width: "110px", number: true, about: "per client", fill: shown(r => amount(r.head_value)) },
  { title: "largest client", dropOrder: 1, width: "140px", number: true, about: "the client with the largest part of it", fill: shown(r => r.top_client ? `${r.top_client.slice(0, 8)}: ${percent(r.top_share, 1)}` : "") },
], () => {}, r => { if (r.function !== null && r.name !== undefined) go({ view: "function", function: r.function }); });
const diffPages = new Pages(diffTable, () => "link");
async function showDiff() {
  fill($("kind"), KINDS, chosen("kind", KINDS));
  if (document.activeElement !== $("diffsearch")) $("diffsearch").value = at.get("q") || "";
  if (!at.get("base")) {
    diffTable.set(0, () => ({}), () => "", "Choose the build to compare with in the line above.");
    $("difffound").textContent = "";
    return;
  }
  await diffPages.set(offset => ask("diff", { ...selection(), base: at.get("base"), metric: chosen("metric", METRICS), kind: at.get("kind"), q: at.get("q"), snapshot, offset, limit: PAGE }), first => {
    snapshot = first.snapshot;
    $("difffound").textContent = `${first.new} new, ${first.gone} gone, ${first.hotter} hotter, ${first.cooler} cooler, ${first.same} unchanged; average per client, ${first.base_clients} and ${first.head_clients} clients`;
  }, at.get("q") || at.get("kind") ? "No function matches." : "No function differs between these builds.");
}
onType($("diffsearch"), "q");
$("kind").onchange = () => go({ kind: $("kind").value });

const when = ns => ns === null ? "" : new Date(ns / 1e6).toISOString().slice(0, 16).replace("T", " ");
const column = (title, width, get, rest = {}) => ({ title, width, fill: text(get), ...rest });
const clientTable = new List($("clienttable"), [
  column("client", "minmax(120px, 2fr)", c => c.client, { style: "module" }),
  column("runs", "80px", c => group(c.runs), { number: true }),
  column("increments lost", "100px", c => group(c.lost_increments), { number: true, dropOrder: 1 }),
  column("ended by a signal", "110px", c => group(c.killed_runs), { number: true, dropOrder: 1 }),
  column("first run (UTC)", "130px", c => when(c.first_ns), { number: true, dropOrder: 2 }),
  column("last end (UTC)", "130px", c => when(c.last_ns), { number: true, dropOrder: 5 }),
  column("hooked", "80px", c => group(c.hooked), { number: true, dropOrder: 4 }),
  column("not hooked", "80px", c => group(c.unhooked), { number: true, dropOrder: 3 }),
], () => {}, c => go({ client: c.client, view: "hot" }));
async function showClients() {
  const list = (await ask("clients", { ...selection(), limit: 5000 })).clients;
  clientTable.set(list.length, i => list[i], () => "link", "No client has sent a record of this selection.");
}
// ---- Programs that run now.

const LIVE_MS = 2000, LIVE_ROWS = 20;
const ago = ns => plural(Math.max(0, Math.round((Date.now() - ns / 1e6) / 1000)), "second") + " ago";
const liveTable = new List($("livetable"), [
  column("client", "minmax(90px, 1fr)", l => l.client.slice(0, 8), { style: "module" }),
  column("program", "minmax(90px, 1fr)", l => l.file, { dropOrder: 6 }),
  column("version", "minmax(80px, 1fr)", l => l.version || l.build.replace(/^\d+-/, "").slice(0, 12)),
  column("labels", "minmax(90px, 2fr)", l => l.labels, { dropOrder: 2 }),
  column("started (UTC)", "150px", l => when(l.start_ns), { dropOrder: 2 }),
  column("last increment", "140px", l => ago(l.last_ns) + (l.overdue ? ", late" : "")),
  column("increments", "100px", l => group(l.increments), { number: true, dropOrder: 1 }),
  column("lost", "60px", l => group(l.lost_increments), { number: true, dropOrder: 5 }),
  column("hooked", "90px", l => group(l.hooked), { number: true, dropOrder: 4 }),
  column("not hooked", "100px", l => group(l.unhooked), { number: true, dropOrder: 3 }),
], () => {}, l => go({ client: l.client, build: l.build, view: "hot" }));
const liveHot = new List($("livehot"), [
  column("function", "minmax(150px, 4fr)", r => r.name, { style: "name" }),
  column("module", "minmax(90px, 1fr)", r => r.module, { style: "module", dropOrder: 1 }),
  column("calls", "150px", r => r.calls === null ? "does not fit" : group(r.calls), { number: true }),
  column("since the last update", "140px", r => r.grown === null ? "" : "+" + group(r.grown), { number: true }),
], () => {}, r => go({ view: "function", function: r.function }));
let liveTimer = 0, liveBefore = new Map();
async function showLive() {
  clearTimeout(liveTimer);
  const runs = (await ask("live", { app: at.get("app") })).live;
  const rows = (await ask("hot", { ...selection(), sort: "calls", direction: "down", limit: LIVE_ROWS })).rows;
  for (const r of rows) r.grown = liveBefore.has(r.function) && r.calls !== null ? r.calls - liveBefore.get(r.function) : null;
  liveBefore = new Map(rows.map(r => [r.function, r.calls]));
  $("livefacts").textContent = `${plural(runs.length, "program")} of ${plural(new Set(runs.map(l => l.client)).size, "client")} run now`;
  liveTable.set(runs.length, i => runs[i], () => "link", "A program that is started by hotfn run --push URL --push-every 10s is listed here while it runs.");
  liveHot.set(rows.length, i => rows[i], () => "link", "No function was called in this selection.");
  liveTimer = setTimeout(() => { if (view() === "live" && !document.hidden) showView(); }, LIVE_MS);
}
document.addEventListener("visibilitychange", () => { if (view() === "live" && !document.hidden) showView(); });
const labelTable = new List($("labeltable"), [
  column("label", "minmax(120px, 1fr)", l => l.key), column("value", "minmax(160px, 2fr)", l => l.value),
  column("clients", "100px", l => group(l.clients), { number: true }), column("runs", "100px", l => group(l.runs), { number: true }),
], () => {}, l => go({ label: l.key + "=" + l.value, view: "hot" }));
async function showLabels() {
  const list = (await ask("labels", { ...selection(), limit: 5000 })).labels;
  labelTable.set(list.length, i => list[i], () => "link", "No record of this selection has a label: hotfn push --label KEY=VALUE gives it one.");
}
const buildTable = new List($("buildtable"), [
  column("version", "minmax(100px, 1fr)", b => b.version), column("image id", "minmax(150px, 2fr)", b => b.build, { style: "module" }),
  column("file", "minmax(100px, 1fr)", b => b.file, { dropOrder: 1 }), column("functions", "90px", b => group(b.functions), { number: true, dropOrder: 2 }),
  column("clients", "80px", b => group(b.clients), { number: true, dropOrder: 5 }), column("runs", "80px", b => group(b.runs), { number: true, dropOrder: 3 }),
  column("last run (UTC)", "130px", b => when(b.last_ns), { number: true, dropOrder: 4 }),
  { title: "kit", width: "80px", about: "what a tester needs to count this build (hotfn kit)", fill(cell, b) {
    if (!b.kit) return;
    const button = make("button", "", "download");
    button.type = "button";
    button.onclick = e => { e.stopPropagation(); download("kit", { app: at.get("app"), build: b.build }); };
    cell.append(button);
  } },
], () => {}, b => go({ build: b.build, base: at.get("base") === b.build ? "" : at.get("base"), view: "hot" }));
async function showBuilds() {
  const list = (await ask("builds", { app: at.get("app") })).builds;
  buildTable.set(list.length, i => list[i], () => "link");
}

// ---- Upload.

function send(name, parameters, body, item, title) {
  return new Promise(resolve => {
    const request = new XMLHttpRequest();
    request.open("POST", address(name, { app: $("uploadapp").value.trim() || at.get("app"), ...parameters }));
    for (const [key, value] of Object.entries(authorization())) request.setRequestHeader(key, value);
    $("progress").hidden = false;
    request.upload.onprogress = e => { if (e.lengthComputable) $("progress").value = e.loaded / e.total; };
    request.onloadend = () => {
      let body = {};
      try { body = JSON.parse(request.responseText); } catch { body.error = "the collector does not answer"; }
      item.textContent = `${title}: ` + (request.status === 201 ? "stored" + (body.names === undefined ? "" : `, ${plural(body.names, "name")}`)
        : request.status === 200 ? "was stored before" : body.error);
      $("progress").value = 1;
      resolve();
    };
    request.send(body);
  });
}
const kindOf = file => /\.hfr$/i.test(file.name) ? "record" : /\.pdb$/i.test(file.name) ? "pdb" : /\.map$/i.test(file.name) ? "map" : "image";
// Records one by one; the files of a build together.
async function sendAll(files) {
  const form = new FormData(), build = [];
  for (const file of files) {
    if (kindOf(file) === "record") continue;
    form.set(kindOf(file), file);
    build.push(file.name);
  }
  const add = title => {
    const item = make("li", "", `${title} \u2026`);
    $("uploads").append(item);
    return item;
  };
  if (build.length) {
    const title = build.join(", ");
    await send("symbols", { version: $("uploadversion").value.trim() }, form, add(title), title);
  }
  for (const file of files) {
    if (kindOf(file) === "record") await send("records", {}, file, add(file.name), file.name);
  }
  await fillChoices().catch(problem => report(problem.message));
}
$("drop").onsubmit = e => e.preventDefault();
$("drop").ondragover = e => { e.preventDefault(); $("drop").classList.add("over"); };
$("drop").ondragleave = () => $("drop").classList.remove("over");
$("drop").ondrop = e => { e.preventDefault(); $("drop").classList.remove("over"); sendAll([...e.dataTransfer.files]); };
$("files").onchange = () => sendAll([...$("files").files]);
async function showUpload() { if (!$("uploadapp").value) $("uploadapp").value = at.get("app") || ""; }

// ---- The page.

const showers = { hot: showHot, function: showFunction, diff: showDiff, live: showLive, clients: showClients, labels: showLabels, builds: showBuilds, upload: showUpload };
for (const [id, title] of VIEWS) {
  const tab = make("button", "", title);
  tab.id = "tab-" + id;
  tab.type = "button";
  tab.setAttribute("role", "tab");
  tab.onclick = () => go({ view: id === "hot" ? "" : id });
  $("tabs").append(tab);
}
// note: what is reported if nothing is wrong.
async function showView(note = "") {
  const id = showers[view()] ? view() : "hot";
  for (const name of Object.keys(showers)) $(name).hidden = name !== id;
  for (const [name] of VIEWS) $("tab-" + name).setAttribute("aria-selected", name === id || (id === "function" && name === "hot"));
  try {
    await showers[id]();
    report(note);
  } catch (problem) {
    report(problem.message);
  }
  document.body.dataset.shown = id;
}
async function show() {
  const main = document.querySelector("main");
  let note = "";
  snapshot = "";
  document.body.dataset.shown = "";
  try {
    if (!await fillChoices()) {
      note = "No record has arrived yet: send one with hotfn push, or upload it.";
      at.set("view", "upload");
    }
    main.hidden = false;
  } catch (problem) {
    report(problem.message);
    main.hidden = true; // it would have nothing, or what was chosen before
    document.body.dataset.shown = "problem";
    return;
  }
  await showView(note);
}
const start = () => show();
document.addEventListener("keydown", e => {
  if (e.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) {
    e.preventDefault();
    if (view() !== "hot" && view() !== "diff") go({ view: "" });
    $(view() === "diff" ? "diffsearch" : "search").focus();
  }
});
setTheme();
start();
})();
