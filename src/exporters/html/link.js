// SPDX-License-Identifier: MIT
// The address of what is shown: the text behind "#" has the view, the function, the filters, the zoom.  A link that is
// shared shows the same, and the browser's back button works.

const at = { link: new URLSearchParams(location.hash.slice(1)), following: false };
// Put values into the address; "" removes one.  With replace, the back button skips the present address.
function setLink(changes, replace) {
  if (at.following) return;
  for (const [key, value] of Object.entries(changes)) {
    if (value === "") at.link.delete(key);
    else at.link.set(key, value);
  }
  const hash = String(at.link);
  if (hash === location.hash.slice(1)) return;
  history[replace ? "replaceState" : "pushState"](null, "", "#" + hash);
}
// A function by its place, which names of other functions cannot equal.
const placeOf = f => f < 0 ? "" : `${data.modules[F.module[f]]}+0x${F.rva[f].toString(16)}`;
function functionAt(place) {
  const plus = place.lastIndexOf("+0x"), module = place.slice(0, plus), rva = parseInt(place.slice(plus + 3), 16);
  const search = begin => {
    for (let f = begin; f < F.name.length; f++) if (F.rva[f] === rva && data.modules[F.module[f]] === module) return f;
    return -1;
  };
  if (plus < 0 || Number.isNaN(rva)) return -1;
  const first = F.name.length, f = search(0);
  if (f >= 0 || first === FUNCTIONS) return f;
  needFunctions();
  return search(first);
}
const threadOf = text => text !== "" && data.threads[text] ? Number(text) : -1;
// Show what the address says; what it does not mention gets its default.
function followLink() {
  const get = key => at.link.get(key) || "", view = get("view");
  at.following = true;
  $("search").value = get("q");
  $("called").checked = get("all") !== "1";
  order.key = columns.some(c => c.key === get("sort")) ? get("sort") : byRank;
  order.down = get("sort") ? get("up") !== "1" : true;
  listFunctions();
  const of = functionAt(get("of"));
  Object.assign(flame, { thread: threadOf(get("thread")), by: get("by") || "time", way: get("way") || "callees", of, folded: get("fold") === "1", zoom: get("zoom") });
  $("flamesearch").value = get("mark");
  $("linesearch").value = get("mark");
  if (data.event_count) line.view = get("from") && get("to") ? [Number(get("from")), Number(get("to"))] : null;
  if (started.timeline) zoomTo(line.view);
  const f = functionAt(get("at"));
  if (f >= 0) pick(f, true);
  else closeDetail();
  if (started.tree) setTree(flame.thread);
  showTab(tabs.some(([id]) => id === view) ? view : "functions");
  at.following = false;
}
window.onpopstate = () => {
  at.link = new URLSearchParams(location.hash.slice(1));
  followLink();
};
