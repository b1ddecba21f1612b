// SPDX-License-Identifier: MIT
// Code that the page of a record and the page of the collector share: formatting, a table with
// elements for its visible rows only, the theme.  Untrusted texts are only assigned to textContent.
"use strict";
const $ = id => document.getElementById(id);
const ROW = 26;

// ---- Formatting of numbers and names.

const group = n => n === null ? "" : Math.round(n).toLocaleString("en-US");
function time(ns) {
  if (ns === null || ns === undefined) return "";
  for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"]])
    if (ns >= size * 0.9995) {
      const v = ns / size;
      return v.toFixed(v < 9.9995 ? 3 : v < 99.995 ? 2 : v < 999.95 ? 1 : 0) + " " + unit;
    }
  return Math.round(ns) + " ns";
}
const percent = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(1) + "%" : "";
function bytes(n) {
  for (const [size, unit] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]])
    if (n >= size * 0.9995) {
      const v = n / size;
      return v.toFixed(v < 9.9995 ? 3 : v < 99.995 ? 2 : v < 999.95 ? 1 : 0) + " " + unit;
    }
  return group(n) + " B";
}
const plural = (n, word) => group(n) + " " + word + (n === 1 ? "" : "s");
function make(tag, name, text) {
  const e = document.createElement(tag);
  if (name) e.className = name;
  if (text !== undefined) e.textContent = text;
  return e;
}
// Shorten long names as table_fold.c does: drop the return type and scopes, then fold the contents of the longest
// innermost pair of brackets; in a list of arguments, the first argument is folded last.  A page has room for the
// outermost scope too, so scopes between it and the class are dropped first.
const OPERATOR = /^operator(?!\w)(<=>|<<=|>>=|->\*|<<|>>|->|<=|>=|\(\)|<|>|)/;
function operatorLength(name, at) {
  if (name[at] !== "o" || /\w/.test(name[at - 1] || "")) return 0;
  const sign = OPERATOR.exec(name.slice(at, at + 11));
  return sign ? sign[0].length : 0;
}
function innermost(name) {
  const open = [];
  let found = null;
  for (let i = 0; i < name.length; i++) {
    const sign = operatorLength(name, i), c = name[i];
    if (sign) {
      i += sign - 1;
    } else if (c === "<" || c === "(") {
      open.push({ at: i, outer: false });
    } else if (c === ")" || (c === ">" && name[i - 1] !== "-")) {
      const bracket = open.pop();
      if (!bracket || name[bracket.at] !== (c === ")" ? "(" : "<")) return null;
      if (i - bracket.at < 4) continue;
      if (!bracket.outer && (!found || i - bracket.at > found[1] - found[0])) found = [bracket.at, i];
      if (open.length) open[open.length - 1].outer = true;
    }
  }
  return open.length ? null : found;
}
function findSecondArgument(name, begin, end) {
  for (let i = begin, depth = 0; i + 2 < end; i++) {
    if (name[i] === "<" || name[i] === "(") depth++;
    else if (depth && (name[i] === ">" || name[i] === ")")) depth--;
    else if (!depth && name[i] === "," && name[i + 1] === " ") return end - i - 2 > 3 ? i + 2 : begin;
  }
  return begin;
}
function skipElement(name, at) {
  let depth = 0, sign = operatorLength(name, at);
  if (sign) return at + sign;
  while (at < name.length) {
    const c = name[at];
    if ("<({[".includes(c)) depth++;
    else if (depth && ">)}]".includes(c) && !(c === ">" && name[at - 1] === "-")) depth--;
    at++;
    if (!depth) break;
    while ((sign = operatorLength(name, at))) at += sign;
  }
  return at;
}
function nextComponent(name, at) {
  for (let inOperator = false; at < name.length; at = skipElement(name, at)) {
    inOperator = operatorLength(name, at) > 0 || (inOperator && name[at] !== "(");
    if (!inOperator && name.startsWith("::", at)) return at + 2;
  }
  return 0;
}
// The positions of the named components of a qualified name; lambdas and closures have no names of their own.
function namedComponents(name) {
  const found = [];
  let at = 0;
  do {
    if (name[at] !== "{") found.push(at);
    at = nextComponent(name, at);
  } while (at);
  return found;
}
function qualifiedName(name) {
  let begin = 0, at = 0;
  for (; at < name.length && !operatorLength(name, at); at = skipElement(name, at)) {
    if (name[at] === "(" && !name.startsWith("(anonymous namespace)", at) && !/decltype ?$/.test(name.slice(Math.max(0, at - 9), at)))
      return at > begin ? begin : 0;
    if (name[at] === " ") begin = at + 1;
  }
  return at < name.length ? begin : 0;
}
function dropScopes(name, most) {
  const kept = (/^[^(<{:]*?( thunk to | for )/.exec(name) || [""])[0];
  let path = name.slice(kept.length);
  const isTooLong = () => kept.length + path.length > most;
  if (isTooLong()) path = path.slice(qualifiedName(path));
  const begins = isTooLong() ? namedComponents(path) : [];
  for (let i = 2; i + 1 < begins.length; i++) {
    const shorter = path.slice(0, begins[1]) + "\u2026::" + path.slice(begins[i]);
    if (kept.length + shorter.length <= most) return kept + shorter;
  }
  while (isTooLong() && namedComponents(path).length > 2) path = path.slice(nextComponent(path, 0));
  return kept + path;
}
function fold(name, most) {
  name = dropScopes(name, most);
  for (let pair; name.length > most && (pair = innermost(name));)
    name = name.slice(0, findSecondArgument(name, pair[0] + 1, pair[1])) + "\u2026" + name.slice(pair[1]);
  if (name.length <= most) return name;
  const last = namedComponents(name).pop() || 0, tail = name.length - last;
  if (last && tail + 4 <= most) return "\u2026" + name.slice(name.length - most + 1);
  name = name.slice(last);
  const head = Math.floor(most / 2);
  return name.length <= most || most < 1 ? name : name.slice(0, head) + "\u2026" + name.slice(name.length - most + 1 + head);
}
const LETTER = 7.9; // width in pixels of a letter in the font of names

// ---- A table that has elements only for its visible rows.

class Table {
  // columns: {title, key, number, width, dropOrder, when(), fill(cell, item)}; a column whose when() is false is not
  // shown; get(index) returns the item of a row
  constructor(box, columns, onSort, onPick) {
    this.columns = this.shown = columns;
    this.count = 0;
    this.head = make("div", "head");
    this.head.style.gridTemplateColumns = this.template = columns.map(c => c.width).join(" ");
    this.letters = columns.map(() => Infinity); // room for a name, measured once the table is visible
    for (const c of columns) {
      const cell = make("span", c.number ? "number" : "", c.title);
      cell.setAttribute("role", "columnheader");
      if (c.key) {
        cell.dataset.key = c.key;
        cell.tabIndex = 0;
        cell.onclick = () => onSort(c.key);
        cell.onkeydown = e => { if (e.key === "Enter") onSort(c.key); };
      }
      if (c.about) cell.title = c.about;
      this.head.append(cell);
    }
    this.scroll = make("div", "scroll");
    this.scroll.tabIndex = 0;
    this.space = make("div", "space");
    this.scroll.append(this.space);
    box.setAttribute("role", "table");
    this.head.setAttribute("role", "row");
    this.scroll.setAttribute("role", "rowgroup");
    box.replaceChildren(this.head, this.scroll);
    this.onPick = onPick;
    this.scroll.onscroll = () => this.draw();
    new ResizeObserver(() => this.draw()).observe(this.scroll);
  }
  set(count, get, classOf) {
    this.count = count;
    this.get = get;
    this.classOf = classOf || (() => "");
    // Browsers limit the height of an element to about 16 million pixels, so a longer list is scaled to fit.
    this.height = Math.min(count * ROW, 8000000);
    this.space.style.height = this.height + "px";
    this.draw();
  }
  // Drop columns by ascending dropOrder until the others fit; a column without dropOrder is always shown.
  chooseColumns() {
    const minWidth = c => parseInt(c.width.replace("minmax(", ""), 10) + 14;
    const room = this.scroll.clientWidth - 6;
    const dropped = new Set(this.columns.filter(c => c.when && !c.when()));
    let needed = this.columns.reduce((sum, c) => sum + (dropped.has(c) ? 0 : minWidth(c)), 0);
    for (const c of this.columns.filter(c => c.dropOrder && !dropped.has(c)).sort((a, b) => a.dropOrder - b.dropOrder)) {
      if (needed <= room) break;
      dropped.add(c);
      needed -= minWidth(c);
    }
    this.shown = this.columns.filter(c => !dropped.has(c));
    this.template = this.shown.map(c => c.width).join(" ");
    this.head.style.gridTemplateColumns = this.template;
    this.columns.forEach((c, i) => { this.head.children[i].hidden = dropped.has(c); });
    this.letters = this.columns.map((c, i) => Math.floor(this.head.children[i].clientWidth / LETTER));
  }
  draw() {
    if (this.scroll.clientWidth) this.chooseColumns();
    const view = this.scroll.clientHeight, room = this.height - view, top = this.scroll.scrollTop;
    const real = this.count * ROW, scaled = real > this.height && room > 0
      ? top / room * (real - view) : top;
    const first = Math.max(0, Math.floor(scaled / ROW) - 4);
    const last = Math.min(this.count, Math.ceil((scaled + view) / ROW) + 4);
    const rows = [];
    for (let i = first; i < last; i++) {
      const item = this.get(i), row = make("div", "row " + this.classOf(item));
      row.setAttribute("role", "row");
      row.style.gridTemplateColumns = this.template;
      row.style.top = (i * ROW - scaled + top) + "px";
      if (this.onPick) {
        row.tabIndex = 0;
        row.onclick = e => this.onPick(item, e);
        row.onkeydown = e => { if (e.key === "Enter") this.onPick(item, e); };
      }
      for (const c of this.shown) {
        const cell = make("span", c.number ? "number" : c.style || "");
        cell.setAttribute("role", "cell");
        c.fill(cell, item);
        if (c.style === "name") {
          const last = cell.lastElementChild || cell, before = parseFloat(cell.style.paddingLeft || 0) / LETTER + (last === cell ? 0 : 2);
          last.textContent = fold(last.textContent, this.letters[this.columns.indexOf(c)] - before);
        }
        row.append(cell);
      }
      rows.push(row);
    }
    this.space.replaceChildren(...rows);
    // The head has no scroll bar; padding of the same width keeps its columns above those of the rows.
    this.head.style.paddingRight = 10 + this.scroll.offsetWidth - this.scroll.clientWidth + "px";
  }
  sorted(key, down) {
    for (const cell of this.head.children) {
      const on = cell.dataset.key === key;
      cell.classList.toggle("sorted", on);
      cell.textContent = cell.textContent.replace(/ [\u25b2\u25bc]$/, "") + (on ? down ? " \u25bc" : " \u25b2" : "");
      if (on) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }
}
const text = get => (cell, item) => { cell.textContent = get(item); cell.title = cell.textContent; };
function share(part, whole) {
  return (cell, item) => {
    cell.className = "number share";
    const bar = make("i");
    bar.style.width = (whole > 0 ? Math.min(100, 100 * part(item) / whole) : 0) + "%";
    cell.append(bar, make("span", "", percent(part(item), whole)));
  };
}

// ---- Light and dark.

function store(key, value) { try { if (value === undefined) return localStorage.getItem(key); localStorage.setItem(key, value); } catch { return null; } return null; }
const system = window.matchMedia("(prefers-color-scheme: dark)");
let onTheme = () => {};
let theme = store("hotfn-theme") || "auto";
function setTheme() {
  document.documentElement.dataset.theme = theme === "auto" ? system.matches ? "dark" : "light" : theme;
  $("theme").textContent = { auto: "theme: auto", light: "theme: light", dark: "theme: dark" }[theme];
  onTheme();
}
$("theme").onclick = () => {
  theme = { auto: "light", light: "dark", dark: "auto" }[theme];
  store("hotfn-theme", theme);
  setTheme();
};
system.onchange = setTheme;
