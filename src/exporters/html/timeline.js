// SPDX-License-Identifier: MIT
// Calls over time, from the events of a record: a lane for each thread, nested calls below their callers.

const line = { lanes: null, begin: 0, end: 1, view: null, row: 17, head: 20, boxes: [] };
// A lane has rows by depth; a row has the columns f, start and end, ascending.
function makeLane({ thread, events }) {
  const rows = [], open = [];
  let now = 0;
  for (let i = 0; i < events.length; i += 2) {
    now += events[i + 1];
    if (i === 0) line.begin = Math.min(line.begin, now);
    if (events[i] >= 0) {
      const row = rows[open.length] || (rows[open.length] = { f: [], start: [], end: [] });
      row.f.push(events[i]);
      row.start.push(now);
      open.push(row);
    } else if (open.length) {
      open.pop().end.push(now); // an exit without an entry: the call began before the events
    }
  }
  while (open.length) open.pop().end.push(now);
  line.end = Math.max(line.end, now);
  return { thread, rows };
}
function makeLanes() {
  line.begin = Infinity;
  line.end = -Infinity;
  line.lanes = readPart("events").threads.map(makeLane);
  if (line.begin > line.end) Object.assign(line, { begin: 0, end: 1 }); // no event of a known function
}
// The first index of an ascending column with a value above limit.
function firstAbove(column, limit) {
  let low = 0, high = column.length;
  while (low < high) {
    const middle = low + high >> 1;
    if (column[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}
// The boxes of a row that is visible; calls in one pixel become one box.
function rowBoxes(lane, row, y, width) {
  const [from, to] = line.view, scale = width / (to - from), boxes = [];
  for (let i = firstAbove(row.end, from - 1); i < row.f.length && row.start[i] <= to;) {
    const x = Math.max(0, (row.start[i] - from) * scale), right = Math.min(width, (row.end[i] - from) * scale);
    boxes.push({ lane, row, i, x, w: Math.max(1, right - x), y });
    i = right - x < 1 ? Math.max(i + 1, firstAbove(row.start, from + (x + 1) / scale)) : i + 1;
  }
  return boxes;
}

// ---- Drawing.

const laneHeight = lane => line.head + lane.rows.length * line.row + 6;
function threadName(index) {
  const t = data.threads[index];
  return t ? `${t.name || "thread"} (${t.tid})` : "thread";
}
function openCanvas(id, width, height) {
  const canvas = $(id), ratio = window.devicePixelRatio || 1, g = canvas.getContext("2d");
  canvas.width = width * ratio;
  canvas.height = Math.min(height, 30000 / ratio) * ratio;
  canvas.style.height = height + "px";
  g.scale(ratio, ratio);
  g.font = "12px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
  g.textBaseline = "middle";
  return g;
}
// A time since the start of the run, with as many digits as steps of this length need.
function axisTime(ns, step) {
  const [size, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]].find(([size]) => ns >= size) || [1, "ns"];
  return (ns / size).toFixed(Math.max(0, Math.ceil(Math.log10(size / step)))) + " " + unit;
}
function drawAxis(width, ink) {
  const [from, to] = line.view, g = openCanvas("lineaxis", width, 22), rough = (to - from) / Math.max(2, width / 130);
  const power = Math.pow(10, Math.floor(Math.log10(rough))), step = Math.max(1, [1, 2, 5, 10].map(n => n * power).find(n => n >= rough));
  g.fillStyle = ink;
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    const x = (t - from) / (to - from) * width;
    g.fillRect(x, 14, 1, 8);
    g.fillText(axisTime(t, step), x + 3, 9);
  }
}
function drawTimeline() {
  const width = $("linebox").clientWidth;
  if (!line.lanes || !width) return;
  const dark = document.documentElement.dataset.theme === "dark", ink = dark ? "#f4f5f7" : "#23180d";
  const word = $("linesearch").value.toLowerCase(), matches = matchOf(word), boxes = [];
  const g = openCanvas("linecanvas", width, line.lanes.reduce((sum, lane) => sum + laneHeight(lane), 0));
  const letter = g.measureText("m").width;
  let y = 0;
  for (const lane of line.lanes) {
    g.fillStyle = ink;
    g.fillText(threadName(lane.thread), 4, y + line.head / 2);
    lane.rows.forEach((row, depth) => boxes.push(...rowBoxes(lane, row, y + line.head + depth * line.row, width)));
    y += laneHeight(lane);
  }
  for (const b of boxes) {
    const f = b.row.f[b.i], letters = Math.floor((b.w - 6) / letter);
    g.fillStyle = word && matches(f) ? hitColour(dark) : colour(f, word, dark);
    g.fillRect(b.x, b.y, b.w > 2 ? b.w - .5 : b.w, line.row - 1);
    if (letters > 2) {
      g.fillStyle = ink;
      g.fillText(fold(nameOf(f), letters), b.x + 3, b.y + line.row / 2);
    }
  }
  line.boxes = boxes;
  drawAxis(width, ink);
  const lost = data.events_lost + readPart("events").omitted;
  $("linefound").textContent = `${time(line.view[1] - line.view[0])} of ${time(line.end - line.begin)}; the wheel zooms, dragging moves`
    + (lost ? `; ${plural(lost, "earlier event")} not kept` : "");
}

// ---- The view: zoomed and moved by the pointer or the keyboard.

function zoomTo(view, keep) {
  const whole = [line.begin, Math.max(line.end, line.begin + 1)];
  let [from, to] = view && view[1] > view[0] ? view : whole;
  const span = Math.min(Math.max(to - from, 1), whole[1] - whole[0]); // at least a nanosecond, at most everything
  from = Math.min(Math.max(from, whole[0]), whole[1] - span);
  line.view = [from, from + span];
  drawTimeline();
  const all = span === whole[1] - whole[0];
  if (!keep) setLink({ view: "timeline", from: all ? "" : from, to: all ? "" : from + span }, true);
}
function zoomAt(share, factor) {
  const [from, to] = line.view, fixed = from + (to - from) * share;
  zoomTo([fixed - (fixed - from) * factor, fixed + (to - fixed) * factor]);
}
function moveBy(share) {
  const step = (line.view[1] - line.view[0]) * share;
  zoomTo([line.view[0] + step, line.view[1] + step]);
}
function callAt(e) {
  const r = $("linecanvas").getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
  return line.boxes.find(b => y >= b.y && y < b.y + line.row && x >= b.x && x < b.x + b.w);
}
function showCall(e) {
  const b = callAt(e);
  if (!b) {
    $("tip").hidden = true;
    return;
  }
  const start = b.row.start[b.i];
  placeTip(e, make("b", "", nameOf(b.row.f[b.i])), make("div", "", `took ${time(b.row.end[b.i] - start)}, ${axisTime(start, 1000)} after the start`), make("div", "dim", threadName(b.lane.thread)));
}
function startDragging() {
  const canvas = $("linecanvas");
  let last = null, moved = 0;
  canvas.onpointerdown = e => { last = e; moved = 0; canvas.setPointerCapture(e.pointerId); };
  canvas.onpointermove = e => {
    if (!last) {
      showCall(e);
      return;
    }
    moved += Math.abs(e.clientX - last.clientX) + Math.abs(e.clientY - last.clientY);
    $("linebox").scrollTop -= e.clientY - last.clientY;
    moveBy((last.clientX - e.clientX) / canvas.clientWidth);
    last = e;
  };
  canvas.onpointerup = e => {
    const b = moved < 4 && callAt(e);
    last = null;
    if (b) zoomTo([b.row.start[b.i], b.row.end[b.i]]);
  };
  canvas.onpointercancel = () => { last = null; };
  canvas.onmouseleave = () => { $("tip").hidden = true; };
  canvas.ondblclick = e => { const b = callAt(e); if (b) { $("tip").hidden = true; pick(b.row.f[b.i], true); } };
}
function startTimeline() {
  makeLanes();
  if (!legend.length) chooseHues();
  startDragging();
  $("linebox").onwheel = e => {
    if (e.shiftKey) return; // scrolls
    e.preventDefault();
    const r = $("linecanvas").getBoundingClientRect();
    zoomAt((e.clientX - r.left) / r.width, Math.exp(Math.max(-1, Math.min(1, e.deltaY / 300))));
  };
  $("linebox").onkeydown = e => {
    const act = { ArrowLeft: () => moveBy(-.2), ArrowRight: () => moveBy(.2), "+": () => zoomAt(.5, .6), "-": () => zoomAt(.5, 1 / .6) }[e.key];
    if (act) { e.preventDefault(); act(); }
  };
  $("lineall").onclick = () => zoomTo(null);
  $("linesearch").oninput = () => { drawTimeline(); setLink({ mark: $("linesearch").value }, true); };
  new ResizeObserver(drawTimeline).observe($("linebox"));
  zoomTo(line.view, true);
}
