// SPDX-License-Identifier: MIT
// The data of a record, after common.js.  The page has it in parts, which are read when they are first needed;
// its texts are only ever assigned to textContent.

// The inverse of html_pack.c, which describes the format.  A part that is not packed begins with "{".
const DIGITS = 93, MARK = 0x7f;
function unpack(text) {
  if (text[0] === "{") return text;
  const from = new TextEncoder().encode(text), size = parseInt(text, 10), out = new Uint8Array(size);
  let at = text.indexOf("\n") + 1, to = 0;
  const digit = () => { const c = from[at++]; return c - 33 - (c > 60 ? 1 : 0); };
  while (to < size) {
    const c = from[at++];
    if (c !== MARK) {
      out[to++] = c;
    } else if (from[at] === 32) {
      out[to++] = MARK;
      at++;
    } else {
      const code = digit();
      let length = 5 + Math.floor(code / 3), distance = 0;
      for (let more = code < DIGITS - 3 ? 0 : DIGITS - 1; more === DIGITS - 1; length += more) more = digit();
      for (let i = 0; i < 2 + code % 3; i++) distance = distance * DIGITS + digit();
      if (distance >= 64 && distance >= length) {
        out.copyWithin(to, to - distance, to - distance + length);
        to += length;
      } else {
        for (const end = to + length; to < end; to++) out[to] = out[to - distance];
      }
    }
  }
  return new TextDecoder().decode(out);
}
const parts = {};
function readPart(id) {
  if (!parts[id]) {
    parts[id] = JSON.parse(unpack($(id).textContent));
    $(id).remove();
  }
  return parts[id];
}
const readNodes = () => readPart("nodes").nodes; // columns: parent[i] ...
const readEdges = () => readPart("links").edges;

// ---- Functions: F.name[f] ...  f is the function's rank; the first part has the functions that are shown first.

const data = readPart("data"), timed = data.timed, F = data.functions, FUNCTIONS = data.function_count;
let lastRva = 0;
function addFunctions(columns) {
  const begin = F === columns ? 0 : F.name.length, end = begin + columns.name.length;
  for (const key in F) {
    const to = F[key], from = columns[key];
    if (to !== from) for (let i = 0; i < from.length; i++) to.push(from[i]);
    while (to.length < end) to.push(null); // columns of times end at the last timed function
  }
  for (let f = begin; f < end; f++) lastRva = F.rva[f] += lastRva; // each is the difference to the one before
}
addFunctions(F);
function needFunctions() {
  if (F.name.length < FUNCTIONS) addFunctions(readPart("rest").functions);
}
function nameOf(f) {
  if (f >= F.name.length) needFunctions();
  return f < 0 ? "(outside)" : F.name[f];
}
// "~" marks a time with an error above 10 %, "<" an upper bound of a time that is too short to be measured.
const estimate = (i, ns, error) => error > 0 && (ns === 0 || data.ticks && F.timing[i] !== 2 && error >= ns) ? "<" + time(ns + error)
  : (ns !== null && (F.timing[i] === 2 || error > ns / 10) ? "~" : "") + time(ns);
const lowerBounds = new Set(data.at_least || []); // functions that were unhooked for a while: their counts are lower bounds
const callsOf = f => F.calls[f] === null ? "" : (lowerBounds.has(f) ? ">" : "") + group(F.calls[f]);
// Describe the calls of a function that were still open at the end of the record, as `hotfn report` does.
const unreturned = f => !timed || !F.open[f] ? "" : F.open[f] === 1 && F.calls[f] === 1 ? "did not return" : plural(F.open[f], "call") + " did not return";
