// SPDX-License-Identifier: MIT
// Threads, slow calls and the budget.

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
  const names = [], N = readNodes();
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
