// SPDX-License-Identifier: MIT
// A run of node: workers, promises, streams, zlib, crypto, regular expressions, typed arrays, wasm.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto');
const zlib = require('zlib');
const fs = require('fs');

function sieve(limit) {
  const marks = new Uint8Array(limit + 1);
  let count = 0;
  for (let i = 2; i <= limit; i++) {
    if (marks[i]) continue;
    count++;
    for (let j = i * 2; j <= limit; j += i) marks[j] = 1;
  }
  return count;
}

if (!isMainThread) {
  const { from, limit } = workerData;
  let sum = sieve(limit);
  for (let i = 0; i < 50; i++) {
    try { JSON.parse('{' + i); } catch (e) { sum += e.name.length; }
  }
  parentPort.postMessage([from, sum]);
} else {
  main().catch((e) => { console.error(e); process.exit(1); });
}

function inWorker(from) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: { from, limit: 200000 + from } });
    worker.on('message', resolve);
    worker.on('error', reject);
  });
}

async function main() {
  const answers = await Promise.all([0, 1, 2, 3, 4, 5].map(inWorker));
  console.log('workers', answers.sort((a, b) => a[0] - b[0]).map((a) => a[1]).join(' '));

  const text = fs.readFileSync(__filename, 'utf8').repeat(40);
  const packed = zlib.gzipSync(text);
  console.log('zlib', packed.length, zlib.gunzipSync(packed).toString() === text);
  console.log('sha256', crypto.createHash('sha256').update(text).digest('hex'));
  console.log('words', (text.match(/\b[a-z]{6}\b/g) || []).length);

  const map = new Map();
  for (let i = 0; i < 200000; i++) map.set('k' + (i * 7919) % 5003, i);
  console.log('map', map.size, [...map.keys()].sort()[77]);

  const list = Array.from({ length: 100000 }, (_, i) => (i * 7919) % 100003);
  list.sort((a, b) => a - b);
  console.log('sorted', list[0], list[50000], list[99999]);

  class Point { constructor(x) { this.x = x; } get twice() { return this.x * 2; } }
  let total = 0;
  for (let i = 0; i < 2000000; i++) total += new Point(i & 255).twice;
  console.log('points', total);

  // (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add)
  const wasm = Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0,
    7, 7, 1, 3, 97, 100, 100, 0, 0, 10, 9, 1, 7, 0, 32, 0, 32, 1, 106, 11]);
  const { instance } = await WebAssembly.instantiate(wasm);
  let wasmSum = 0;
  for (let i = 0; i < 10000; i++) wasmSum = instance.exports.add(wasmSum, i);
  console.log('wasm', wasmSum);

  async function* ticks() { for (let i = 0; i < 200; i++) { await null; yield i; } }
  let ticked = 0;
  for await (const tick of ticks()) ticked += tick;
  console.log('ticks', ticked, await new Promise((r) => setTimeout(() => r('timer'), 5)));
  fs.promises.stat(__filename).then((s) => console.log('file', s.isFile()));
}
