// SPDX-License-Identifier: MIT
// The tabs, and the start of the page.

// ---- The page.

const tabs = [["functions", "Functions"]];
if (timed && data.node_count) tabs.push(["flame", "Flame graph"], ["tree", "Call tree"]);
if (data.event_count) tabs.push(["timeline", "Time line"]);
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
    ({ flame: startFlame, tree: startTree, timeline: startTimeline, threads: startThreads, slow: startSlow, budget: startBudget, functions() {} })[id]();
  }
  else if (id === "flame") setFlame({});
}
function openTab(id) {
  showTab(id);
  setLink({ view: id === "functions" ? "" : id });
}
for (const [id, title] of tabs) {
  const tab = make("button", "", title);
  tab.id = "tab-" + id;
  tab.type = "button";
  tab.setAttribute("role", "tab");
  tab.onclick = () => openTab(id);
  $("tabs").append(tab);
}

onTheme = () => { if (started.flame) drawFlame(); if (started.timeline) drawTimeline(); };
setTheme();

document.title = data.command + " \u2013 hotfn";
$("command").textContent = data.command;
$("command").title = data.command;
const facts = [[data.state, ""], [data.wall_ns ? time(data.wall_ns) : "", " long"], [group(allCalls), allCalls === 1 ? " call" : " calls"], [timed ? time(busy) : "", " in timed functions"]].filter(f => f[0]);
facts.forEach(([bold, rest], i) => $("facts").append(i ? ", " : "", make("b", "", bold), rest));
$("notes").textContent = data.notes.join("  \u00b7  ");
let typing;
$("search").oninput = () => {
  clearTimeout(typing);
  typing = setTimeout(() => { listFunctions(); setLink({ q: $("search").value }, true); }, FUNCTIONS > 5000 ? 120 : 0);
};
$("called").onchange = () => { listFunctions(); setLink({ all: $("called").checked ? "" : "1" }); };
document.addEventListener("keydown", e => {
  if (e.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) { e.preventDefault(); openTab("functions"); $("search").focus(); }
});
showTab("functions");
listFunctions();
// The other parts follow in the page; until they are there, nothing can be asked for.
document.body.inert = true;
document.addEventListener("DOMContentLoaded", () => {
  document.body.inert = false;
  if (location.hash) followLink();
});
